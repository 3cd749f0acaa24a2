"""Write the newest results of the benchmarks, tables and plots, into the docs.

    python -m benchmarks.report

`docs/benchmarks.md` keeps its text: only what stands between its two marks is written anew.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

from benchmarks.plots import against_changed_rows, against_size
from benchmarks.results import WAYS, Results, lines, stored

DOCS = Path(__file__).parents[1] / "docs"
_BEGIN, _END = "<!-- measured -->\n", "<!-- until here -->\n"


def main() -> None:
    several = stored()
    refreshes = [each for each in several if each.name == "refresh"]
    page = DOCS / "benchmarks.md"
    before, _, rest = page.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    parts = [part for results in reversed(several) for part in _section(results)]
    if refreshes:
        against_changed_rows(refreshes[-1], DOCS / "benchmarks-changed.svg")
        against_size(refreshes, DOCS / "benchmarks-size.svg")
        parts = [
            "![Seconds against changed rows](benchmarks-changed.svg)\n",
            "![Seconds against rows of the source](benchmarks-size.svg)\n",
            *parts,
        ]
    page.write_text(f"{before}{_BEGIN}\n{chr(10).join(parts)}\n{_END}{after}")


def _section(results: Results) -> Iterable[str]:
    about = _tpch(results) if results.name == "tpch" else _refresh(results)
    yield from about
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    yield f"Medians of {results.runs}, on {results.cores} cores, {results.date}; {versions}.\n"


def _refresh(results: Results) -> Iterable[str]:
    yield f"## {results.size:,} rows\n"
    yield from _table(("query", "changed rows", *WAYS), lines(results, WAYS))
    phases = list(dict.fromkeys(name for each in results.figures for name in each.phases))
    differential = [each for each in results.figures if each.way == "DIFFERENTIAL"]
    yield "Seconds of DIFFERENTIAL by phase:\n"
    yield from _table(
        ("query", "changed rows", *phases),
        (
            [each.shape, each.window, *(f"{each.phases.get(name, 0):.3f}" for name in phases)]
            for each in differential
        ),
    )


def _tpch(results: Results) -> Iterable[str]:
    yield f"## TPC-H at scale factor {results.size:g}\n"
    ratios: list[float] = []
    rows: list[list[str]] = []
    for shape in results.shapes:
        ours, full = (results.get(shape, way, True, 1) for way in ("DIFFERENTIAL", "FULL"))
        cells = [f"{each.median:.2f}" if each else "" for each in (ours, full)]
        if ours and full:
            ratios.append(full.median / ours.median)
            cells.append(f"{ratios[-1]:.1f}")
        rows.append([shape, *cells])
    yield from _table(("query", "DIFFERENTIAL", "FULL", "×"), rows)
    faster = sum(ratio > 1 for ratio in ratios)
    mean = statistics.geometric_mean(ratios)
    yield f"{faster} of {len(rows)} are faster than FULL; the geometric mean is {mean:.2f}×.\n"


def _table(headings: Iterable[str], rows: Iterable[list[str]]) -> Iterable[str]:
    names = list(headings)
    yield f"| {' | '.join(names)} |"
    yield f"|{'|'.join(['---', *['---:'] * (len(names) - 1)])}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


if __name__ == "__main__":
    main()
