"""What a benchmark measured, and the tables of it."""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dagster_streamtables.runtime.spark.environment import home

WAYS = ("DIFFERENTIAL", "AUTO", "FULL", "by hand", "DuckDB")
CONSOLE = Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 160)
"""Tables are whole in a file, too, where there is no width to ask for."""
_SLOW, _ENOUGH = 8.0, 2
_PACKAGES = ("dagster-streamtables", "pyspark", "delta-spark", "deltalake", "duckdb")


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES}


def is_enough(seconds: Sequence[float]) -> bool:
    """Whether to leave it at what was measured: of what takes long, two figures are enough."""
    return len(seconds) >= _ENOUGH and min(seconds) > _SLOW


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
    memory: dict[str, float] = field(default_factory=dict[str, float])
    """The most that each process held, where it was watched; or the rows of a second."""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def window(self) -> str:
        return _window(self.scattered, self.changed)


@dataclass
class Results:
    """The figures of one run; all ratios are taken within it."""

    name: str
    """Of the benchmark, which is its module's."""
    size: float
    """Rows of the largest source, or a scale factor."""
    runs: int
    figures: list[Figure] = field(default_factory=list[Figure])
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    versions: dict[str, str] = field(default_factory=_versions)
    cores: int = os.cpu_count() or 1

    def store(self) -> None:
        """Keep the figures for the report, instead of earlier ones of the same size."""
        folder().mkdir(parents=True, exist_ok=True)
        self._place.write_text(json.dumps(asdict(self), indent=1))

    def withdraw(self) -> None:
        """Keep nothing: what was measured turned out to be wrong."""
        self._place.unlink(missing_ok=True)

    @property
    def _place(self) -> Path:
        return folder() / f"{self.name}-{self.size:g}.json"

    @property
    def differential(self) -> list[Figure]:
        return [each for each in self.figures if each.way == "DIFFERENTIAL"]

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

    def ratio(self, shape: str) -> float | None:
        """How many times as long FULL took as DIFFERENTIAL, where there was one kind of window."""
        [window] = self.windows()
        ours, full = (self.get(shape, way, *window) for way in ("DIFFERENTIAL", "FULL"))
        return full.median / ours.median if ours and full else None

    @property
    def verdict(self) -> str:
        """How often and by how much DIFFERENTIAL was faster than FULL."""
        found = ((each, self.ratio(each)) for each in self.shapes)
        ratios = {shape: ratio for shape, ratio in found if ratio is not None}
        idle = {each.shape for each in self.differential if set(each.action) == {"N"}}
        busy = [ratio for shape, ratio in ratios.items() if shape not in idle]
        if not busy:
            return "no query was measured in both ways"
        faster = sum(each > 1 for each in ratios.values())
        means = [f"{statistics.geometric_mean(each):.2f}×" for each in (ratios.values(), busy)]
        return (
            f"{faster} of {len(self.shapes)} are faster; geometric mean {means[0]}, of the "
            f"{len(busy)} that had something to do {means[1]}"
        )


def folder() -> Path:
    return home() / "benchmarks"


def stored() -> list[Results]:
    """The results that were kept, the smaller sizes of each benchmark first."""
    told = [json.loads(place.read_text()) for place in folder().glob("*.json")]
    found = [
        Results(**{**each, "figures": [Figure(**figure) for figure in each["figures"]]})
        for each in told
    ]
    return sorted(found, key=lambda each: (each.name, each.size))


def print_tables(results: Results, console: Console) -> None:
    title = f"Seconds, {results.size:,} rows, medians of {results.runs} (× of DIFFERENTIAL)"
    table = Table(title=title)
    for heading in ("query", "changed", *WAYS):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for line in lines(results, WAYS):
        table.add_row(*line)
    console.print(table)
    phases = Table(title="DIFFERENTIAL by phase, seconds")
    figures = [each for each in results.differential if each.changed]
    names = phase_names(figures)
    for heading in ("query", "changed", *names):
        phases.add_column(heading, justify="left" if heading == "query" else "right")
    for line in phase_lines(figures, names):
        phases.add_row(*line)
    console.print(phases)


def print_figures(results: Results, console: Console) -> None:
    """Figures that stand for themselves: medians of seconds, and of each phase."""
    table = Table(title=f"Seconds, medians of {results.runs}")
    for heading in figure_headings(results):
        table.add_column(heading, justify="right" if table.columns else "left")
    for line in figure_lines(results):
        table.add_row(*line)
    console.print(table)


def figure_headings(results: Results) -> list[str]:
    return ["", "seconds", *phase_names(results.figures), *_watched(results)]


def _watched(results: Results) -> list[str]:
    return list(dict.fromkeys(name for each in results.figures for name in each.memory))


def figure_lines(results: Results) -> Iterable[list[str]]:
    names, watched = phase_names(results.figures), _watched(results)
    for each in results.figures:
        told = (f"{each.phases[name]:.3f}" if name in each.phases else "" for name in names)
        held = (f"{each.memory[name]:,.0f}" if name in each.memory else "" for name in watched)
        yield [each.shape, f"{each.median:.3f}", *told, *held]


def phase_names(figures: Iterable[Figure]) -> list[str]:
    return list(dict.fromkeys(name for each in figures for name in each.phases))


def phase_lines(figures: Iterable[Figure], names: Iterable[str]) -> Iterable[list[str]]:
    """A row of seconds for each figure."""
    asked = list(names)
    for each in figures:
        told = (f"{each.phases.get(name, 0):.3f}" for name in asked)
        yield [each.shape, each.window, *told]


def lines(results: Results, ways: Iterable[str]) -> Iterable[list[str]]:
    """A row of the table for each query and window."""
    for shape in results.shapes:
        for scattered, changed in results.windows():
            ours = results.get(shape, "DIFFERENTIAL", scattered, changed)
            cells = [results.get(shape, way, scattered, changed) for way in ways]
            yield [shape, _window(scattered, changed), *(_cell(each, ours) for each in cells)]


def _window(scattered: bool, changed: int) -> str:
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
