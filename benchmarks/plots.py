"""Plots of seconds, a panel for each query, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot

from benchmarks.results import Results

_COLORS = {"DIFFERENTIAL": "#1b6ef3", "FULL": "#d1495b", "by hand": "#5b8c5a", "DuckDB": "#8d8d8d"}
_SIZES_AT = 1_000
"""Changed rows of the plot against the size of the table."""

Point = tuple[float, float]


def against_changed_rows(results: Results, place: Path) -> None:
    """Recomputation takes as long after any change; what was scattered is a broken line."""

    def points(shape: str, way: str, scattered: bool) -> Iterable[Point]:
        for apart, changed in results.windows():
            figure = results.get(shape, way, scattered, changed)
            if figure and apart == scattered:
                yield changed, figure.median

    title = f"Seconds of a refresh against changed rows, {results.size:,} rows"
    _panels(place, title, "changed rows", results.shapes, points)


def against_size(several: Sequence[Results], place: Path) -> None:
    """The same number of changed rows at each size."""

    def points(shape: str, way: str, scattered: bool) -> Iterable[Point]:
        for results in several:
            figure = results.get(shape, way, scattered, _SIZES_AT)
            if figure:
                yield results.size, figure.median

    title = f"Seconds of a refresh after {_SIZES_AT:,} changed rows against rows of the source"
    _panels(place, title, "rows", several[-1].shapes, points)


def _panels(
    place: Path,
    title: str,
    label: str,
    shapes: Sequence[str],
    points: Callable[[str, str, bool], Iterable[Point]],
) -> None:
    figure, axes = pyplot.subplots(1, len(shapes), figsize=(3 * len(shapes), 3.6), sharey=True)
    for shape, panel in zip(shapes, axes, strict=True):
        for way, color in _COLORS.items():
            for scattered in (False, True):
                _line(panel, way, color, scattered, sorted(points(shape, way, scattered)))
        panel.set(title=shape, xlabel=label, xscale="log", yscale="log")
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("seconds")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.suptitle(title)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(place, metadata={"Date": None})
    pyplot.close(figure)


def _line(panel: Any, way: str, color: str, scattered: bool, points: list[Point]) -> None:
    recomputed = way in ("FULL", "DuckDB")
    if not points or (recomputed and scattered):
        return
    name = way if recomputed or not scattered else f"{way}, scattered"
    style = "--" if scattered else "-"
    panel.plot(*zip(*points, strict=True), style, color=color, label=name, marker="o", ms=3)
