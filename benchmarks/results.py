"""What a benchmark measured, and the tables of it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One way to refresh one query after changes of one kind."""

    shape: str
    way: str
    changed: int
    scattered: bool
    seconds: list[float]
    phases: dict[str, float]
    """Median seconds of each phase, of a stream table."""
    action: str
    """What the last of the refreshes did, of a stream table."""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass
class Results:
    """The figures of one run; all ratios are taken within it."""

    rows: int
    runs: int
    figures: list[Figure] = field(default_factory=list[Figure])

    @property
    def shapes(self) -> list[str]:
        return list(dict.fromkeys(figure.shape for figure in self.figures))

    def windows(self) -> list[tuple[bool, int]]:
        """What was changed: whether scattered, and how many rows."""
        found = {(each.scattered, each.changed): None for each in self.figures if each.changed}
        return list(found)

    def get(self, shape: str, way: str, scattered: bool = False, changed: int = 0) -> Figure | None:
        """The figure; for a recomputation, which is measured after one change, that one."""
        for each in self.figures:
            same = (each.scattered, each.changed) == (scattered, changed)
            if (each.shape, each.way) == (shape, way) and (same or way in ("FULL", "DuckDB")):
                return each
        return None


def print_tables(results: Results, console: Console) -> None:
    title = f"Seconds, {results.rows:,} rows, medians of {results.runs} (× of DIFFERENTIAL)"
    ways = ("DIFFERENTIAL", "AUTO", "FULL", "by hand", "DuckDB")
    table = Table(title=title)
    for heading in ("query", "changed", *ways):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for line in lines(results, ways):
        table.add_row(*line)
    console.print(table)
    phases = Table(title="DIFFERENTIAL by phase, seconds")
    names = list(dict.fromkeys(name for each in results.figures for name in each.phases))
    for heading in ("query", "changed", *names):
        phases.add_column(heading, justify="left" if heading == "query" else "right")
    for each in results.figures:
        if each.way == "DIFFERENTIAL" and each.changed:
            told = [f"{each.phases.get(name, 0):.3f}" for name in names]
            phases.add_row(each.shape, window(each.scattered, each.changed), *told)
    console.print(phases)


def lines(results: Results, ways: Iterable[str]) -> Iterable[list[str]]:
    """A row of the table for each query and window."""
    for shape in results.shapes:
        for scattered, changed in results.windows():
            ours = results.get(shape, "DIFFERENTIAL", scattered, changed)
            cells = [results.get(shape, way, scattered, changed) for way in ways]
            yield [shape, window(scattered, changed), *(_cell(each, ours) for each in cells)]


def window(scattered: bool, changed: int) -> str:
    return f"{changed:,}{' scattered' if scattered else ''}"


def _cell(figure: Figure | None, ours: Figure | None) -> str:
    if figure is None:
        return ""
    text = f"{figure.median:.2f}"
    if figure.way == "AUTO":
        return f"{text} {figure.action[0]}"
    return (
        text if figure is ours or ours is None else f"{text} ({figure.median / ours.median:.1f}×)"
    )
