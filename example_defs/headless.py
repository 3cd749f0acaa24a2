"""The year without Dagster: `python -m example_defs.headless --days 365`.

Plays the sources step by step, refreshes every stream table after each step, and compares each with
its recomputation at random steps and at the end. Ends with 1 if one of them differs.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dagster_streamtables.compiler import tokenize_query
from dagster_streamtables.declare.graph import dependency_order
from dagster_streamtables.declare.sql_files import load_tables
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable
from example_defs.dataset import START
from example_defs.replay import Commit, Replay
from example_defs.summary import print_summary, seconds_in_full

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).with_name("tables")
_LETTERS = {
    Action.DIFFERENTIAL: "differential",
    Action.NO_DATA: "no data",
    Action.FULL: "full",
    Action.REINITIALIZE: "first",
}


@dataclass
class Year:
    """The sources and the stream tables over them, moved together."""

    root: Path
    step: timedelta = timedelta(hours=24)
    spark: SparkSession | None = None
    console: Console = field(default_factory=Console)

    def __post_init__(self) -> None:
        self.replay = Replay(self.root, step=self.step)
        self.lake = Lake(str(self.root), spark=self.spark)
        self.tables = in_order(load_tables(FOLDER))
        self.refreshes: list[Refresh] = []
        self.different: set[str] = set()

    def play(self, start: datetime, steps: int, checks: set[int]) -> None:
        """Plays up to `start` at once, then so many steps, refreshing after each of them.

        Args:
            start: The first moment at which the tables are refreshed.
            steps: How many steps to play after it.
            checks: The numbers of the steps, from 1, after which to compare.
        """
        self._move(start)
        for number in range(1, steps + 1):
            self._move(start + number * self.step)
            if number in checks:
                self.check()

    def _move(self, clock: datetime) -> None:
        commits = self.replay.advance(clock)
        began = time.perf_counter()
        done = [self.lake.refresh(table) for table in self.tables]
        self.refreshes += done
        line = _line(clock, commits, done, time.perf_counter() - began)
        self.console.print(line, soft_wrap=True)

    def check(self) -> None:
        """Compares every table with its recomputation and says what came out."""
        began = time.perf_counter()
        for table in self.tables:
            found = self.lake.check(table)
            if not found.equal:
                self.different.add(table.name)
                self.console.print(f"[red]{table.name} differs from its recomputation:[/] {found}")
        wrong = f"{len(self.different)} differ" if self.different else "all equal"
        seconds = time.perf_counter() - began
        self.console.print(
            f"{'':18}{len(self.tables)} tables recomputed and compared: {wrong}   {seconds:.1f} s",
            soft_wrap=True,
        )


def in_order(tables: list[StreamTable]) -> list[StreamTable]:
    """The tables, each after those it reads."""
    named = {table.name: table for table in tables}
    order = dependency_order({table.name: tokenize_query(table.query).sources for table in tables})
    return [named[name] for name in order]


def _line(clock: datetime, commits: list[Commit], done: list[Refresh], seconds: float) -> str:
    came, changed, went = (
        sum(getattr(commit, kind) for commit in commits)
        for kind in ("inserted", "updated", "deleted")
    )
    actions = Counter(_LETTERS.get(refresh.action, refresh.action.lower()) for refresh in done)
    told = ", ".join(f"{count} {action}" for action, count in sorted(actions.items()))
    written = sum(refresh.inserted + refresh.deleted for refresh in done)
    return (
        f"{clock:%Y-%m-%d %H:%M}  sources +{came} ~{changed} -{went}   {told}   "
        f"{written} rows written   {seconds:.1f} s"
    )


@contextmanager
def _folder(root: Path | None) -> Iterator[Path]:
    """The folder that was named, or one that is deleted in the end."""
    if root is not None:
        yield root
        return
    with tempfile.TemporaryDirectory(prefix="streamtables-") as temporary:
        yield Path(temporary)


def main(
    days: Annotated[int, typer.Option(help="How many days to play.")] = 365,
    start: Annotated[datetime, typer.Option(help="From when on to refresh (UTC).")] = START,
    step_hours: Annotated[float, typer.Option(help="Replayed hours between refreshes.")] = 24,
    check_days: Annotated[int, typer.Option(help="At how many random steps to compare.")] = 12,
    seed: Annotated[int, typer.Option(help="Of the choice of those steps.")] = 1,
    root: Annotated[Path | None, typer.Option(help="The lake; by default a new one.")] = None,
) -> None:
    """Plays the year, refreshing every stream table after each step, and checks them."""
    step = timedelta(hours=step_hours)
    steps = timedelta(days=days) // step
    checks = {*random.Random(seed).sample(range(1, steps), min(check_days, steps - 1)), steps}
    with _folder(root) as folder:
        year = Year(folder, step=step)
        year.play(start.replace(tzinfo=UTC), steps, checks)
        full = seconds_in_full(year.lake, year.tables)
        print_summary(year.console, year.tables, year.refreshes, full)
    if year.different:
        year.console.print(f"[red]not equal: {', '.join(sorted(year.different))}[/]")
        raise typer.Exit(1)
    year.console.print(f"every table equaled its recomputation at {len(checks)} checks")


if __name__ == "__main__":
    typer.run(main)
