"""The command; see the package."""

from __future__ import annotations

import tempfile

import typer

from dagster_streamtables import Lake
from qa.tpc.generated import generated, texts
from qa.tpc.run import Run
from qa.tpc.sources import Sources
from qa.tpc.trial import Trial
from qa.tpcds.queries import queries_of
from qa.tpcds.shop import WINDOWS, Shop
from qa.tpcds.wanted import wanted


def main(
    scale: float = 0.01,
    windows: int = 4,
    queries: str = "",
    seed: int = 1,
    full_every: int = 4,
    verbose: bool = False,
) -> None:
    """Refresh the queries differentially over windows of changes, and compare with plain Spark.

    Args:
        scale: The scale factor; at 0.01 there are 29,000 sales of the store.
        windows: How many times the sources change, and the tables are refreshed and compared.
        queries: Their numbers, with commas between; all of them if empty.
        seed: Of the changes.
        full_every: A recomputation is measured after so many windows.
        verbose: Print a line for each refresh.
    """
    with tempfile.TemporaryDirectory(prefix="streamtables-tpcds-") as folder:
        made = generated("tpcds", scale)
        trials = [Trial(*query) for query in queries_of(made, queries).items()]
        lake = Lake(folder)
        shop = Shop(Sources(lake, made), [*map(wanted, texts(made).values())], scale, seed)
        changes = [[change.__get__(shop) for change in window] for window in WINDOWS]
        title = f"TPC-DS at scale factor {scale}"
        Run(title, lake, trials, changes, windows, full_every, verbose)()


if __name__ == "__main__":
    typer.run(main)
