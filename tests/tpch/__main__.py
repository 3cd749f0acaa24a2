"""The command; see the package."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from dagster_streamtables import Lake
from tests.tpch.generated import generated
from tests.tpch.market import WINDOWS, Market
from tests.tpch.queries import chosen
from tests.tpch.sources import Sources
from tests.tpch.trial import Trial

CONSOLE = Console(soft_wrap=True)


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
    folder = Path(tempfile.mkdtemp(prefix="streamtables-tpch-"))
    try:
        made = generated(scale)
        trials = [Trial(*query) for query in chosen(made, scale, queries).items()]
        lake = Lake(folder)
        market = Market(Sources(lake, made), scale, seed)
        _run(lake, market, trials, windows, full_every, verbose)
        _report(trials, scale, windows)
    finally:
        shutil.rmtree(folder)
    sys.exit(not all(trial.passed for trial in trials))


def _run(
    lake: Lake, market: Market, trials: list[Trial], windows: int, full_every: int, verbose: bool
) -> None:
    for trial in trials:
        trial.begin(lake)
    going = [trial for trial in trials if not trial.refused]
    CONSOLE.print(f"{len(going)} of {len(trials)} queries are maintained")
    for number in range(1, windows + 1):
        changes = WINDOWS[(number - 1) % len(WINDOWS)]
        for change in changes:
            change(market)
        begin = time.perf_counter()
        names = ", ".join(change.__name__ for change in changes)
        CONSOLE.print(f"window {number}: {names}")
        for trial in going:
            line = trial.window(lake, number)
            if verbose:
                CONSOLE.print(f"  {line}", highlight=False)
            if number % full_every == 0:
                trial.in_full(lake)
        CONSOLE.print(f"  {time.perf_counter() - begin:.0f} s")


def _report(trials: list[Trial], scale: float, windows: int) -> None:
    table = Table(
        title=f"TPC-H at scale factor {scale}, {windows} windows (D: DIFFERENTIAL, N: NO_DATA)"
    )
    for heading in ("query", "entry", "action per window", "rows", "DIFFERENTIAL", "FULL", "equal"):
        right = heading in ("rows", "DIFFERENTIAL", "FULL")
        table.add_column(heading, justify="right" if right else "left")
    for trial in trials:
        seconds = ["" if median is None else f"{median:.2f} s" for median in trial.medians()]
        rows = "" if trial.rows is None else str(trial.rows)
        equal = "refused" if trial.refused else "no" if trial.unequal else "yes"
        equal = "failed" if "X" in trial.actions else equal
        table.add_row(f"Q{trial.number}", trial.entry, trial.actions, rows, *seconds, equal)
    CONSOLE.print(table)
    for trial in trials:
        for problem in [*([trial.refused] if trial.refused else []), *trial.problems]:
            CONSOLE.print(f"\nQ{trial.number} {problem}", markup=False, highlight=False)


if __name__ == "__main__":
    typer.run(main)
