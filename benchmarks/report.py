"""Write the newest results of the benchmarks, tables and plots, into the docs.

    python -m benchmarks.report

`docs/benchmarks.md` keeps its text: only what stands between its two marks is written anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.plots import against_changed_rows, against_size
from benchmarks.results import (
    WAYS,
    Results,
    figure_headings,
    figure_lines,
    lines,
    phase_lines,
    phase_names,
    stored,
)

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
    told = {
        "tpch": _tpch,
        "refresh": _refresh,
        "graph": _graph,
        "memory": _memory,
        "load": _load,
        "tick": _tick,
        "replication": _replication,
    }
    yield from told[results.name](results)
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    yield f"Medians of {results.runs}, on {results.cores} cores, {results.date}; {versions}.\n"


def _refresh(results: Results) -> Iterable[str]:
    yield f"## {results.size:,} rows\n"
    yield from _table(("query", "changed rows", *WAYS), lines(results, WAYS))
    yield "Seconds of DIFFERENTIAL by phase:\n"
    names = phase_names(results.differential)
    yield from _table(("query", "changed rows", *names), phase_lines(results.differential, names))


def _graph(results: Results) -> Iterable[str]:
    return _figures(results, f"Many tables over {results.size:,} rows")


def _memory(results: Results) -> Iterable[str]:
    return _figures(results, f"{results.size:,} new rows at once")


def _load(results: Results) -> Iterable[str]:
    return _figures(results, f"Loading a code location with {results.size:,} stream tables")


def _tick(results: Results) -> Iterable[str]:
    return _figures(results, f"A tick of the refresh sensor over {results.size:,} stream tables")


def _replication(results: Results) -> Iterable[str]:
    return _figures(results, f"A replication from PostgreSQL, {results.size:,} rows")


def _figures(results: Results, title: str) -> Iterable[str]:
    yield f"## {title}\n"
    yield from _table(figure_headings(results), figure_lines(results))


def _tpch(results: Results) -> Iterable[str]:
    yield f"## TPC-H at scale factor {results.size:g}\n"
    [window] = results.windows()
    rows: list[list[str]] = []
    for shape in results.shapes:
        cells = [results.get(shape, way, *window) for way in ("DIFFERENTIAL", "FULL")]
        ratio = results.ratio(shape)
        seconds = (f"{each.median:.2f}" if each else "" for each in cells)
        rows.append([shape, *seconds, "" if ratio is None else f"{ratio:.1f}"])
    yield from _table(("query", "DIFFERENTIAL", "FULL", "×"), rows)
    yield f"{results.verdict}.\n"


def _table(headings: Iterable[str], rows: Iterable[list[str]]) -> Iterable[str]:
    names = list(headings)
    yield f"| {' | '.join(names)} |"
    yield f"|{'|'.join(['---', *['---:'] * (len(names) - 1)])}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


if __name__ == "__main__":
    main()
