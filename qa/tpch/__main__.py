"""The command; see the package."""

from __future__ import annotations

import tempfile

import typer

from dagster_streamtables import Lake
from qa.tpc.generated import generated
from qa.tpc.run import Run
from qa.tpc.sources import Sources
from qa.tpc.trial import Trial
from qa.tpch.market import WINDOWS, Market
from qa.tpch.queries import queries_of


def main(
    scale: float = 0.01,
    windows: int = 12,
    queries: str = "",
    seed: int = 4,
    full_every: int = 4,
    verbose: bool = False,
) -> None:
    """Refresh the queries differentially over windows of changes, and compare with plain Spark.

    Args:
        scale: The scale factor; at 0.01 there are 60,000 lineitems.
        windows: How many times the sources change, and the tables are refreshed and compared.
        queries: Their numbers, with commas between; all of them if empty.
        seed: Of the changes. With this one the result of every query changes in 12 windows.
        full_every: A recomputation is measured after so many windows.
        verbose: Print a line for each refresh.
    """
    with tempfile.TemporaryDirectory(prefix="streamtables-tpch-") as folder:
        made = generated("tpch", scale)
        trials = [Trial(*query) for query in queries_of(made, scale, queries).items()]
        lake = Lake(folder)
        market = Market(Sources(lake, made), scale, seed)
        changes = [[change.__get__(market) for change in window] for window in WINDOWS]
        title = f"TPC-H at scale factor {scale}"
        Run(title, lake, trials, changes, windows, full_every, verbose)()


if __name__ == "__main__":
    typer.run(main)
