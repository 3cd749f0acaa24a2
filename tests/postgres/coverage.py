"""Writes docs/postgres.md: what becomes of each function, operator and clause of PostgreSQL.

What the page says before its first table stays as it is.

`python -m tests.postgres.coverage` writes it, and a test compares it.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.dialect.query_translation import translation
from dagster_streamtables.errors import InvalidDefinition
from postgres.documented import chapters, query_of
from postgres.tables import COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "postgres.md"
_EXACT, _SHOWN, _REFUSED = "exact", "looks different", "refused"
_CHAPTERS = "| chapter | exact | looks different | refused |"


class Fate(NamedTuple):
    status: str
    reason: str = ""


@cache
def fate_of(entry: str) -> Fate:
    """What becomes of an entry."""
    try:
        sql, notes = translation(query_of(entry), "postgres", COLUMNS)
        compile_query(sql, COLUMNS)
    except InvalidDefinition as error:
        return Fate(_REFUSED, error.why or error.what)
    return Fate(_SHOWN, "; ".join(notes)) if notes else Fate(_EXACT)


def page() -> str:
    parts = {title: [(entry, fate_of(entry)) for entry in entries]
             for title, entries in chapters().items()}  # fmt: skip
    total = Counter(fate.status for rows in parts.values() for _, fate in rows)
    sizes = [(title, Counter(fate.status for _, fate in rows)) for title, rows in parts.items()]
    head, *_ = PAGE.read_text().partition(_CHAPTERS)
    table = [_CHAPTERS, "|---|---|---|---|"]
    for title, count in [*sizes, ("**all**", total)]:
        cells = " | ".join(str(count[each]) for each in (_EXACT, _SHOWN, _REFUSED))
        table.append(f"| {title} | {cells} |")
    sections = [_section(title, rows) for title, rows in parts.items()]
    return head + "\n".join([*table, "", *sections])


def _section(title: str, rows: list[tuple[str, Fate]]) -> str:
    exact = [entry for entry, fate in rows if fate.status == _EXACT]
    others = [(entry, fate) for entry, fate in rows if fate.status != _EXACT]
    lines = [f"## {title}", ""]
    if exact:
        lines += [f"Exact: {', '.join(map(_code, exact))}.", ""]
    if others:
        lines += ["| | | why |", "|---|---|---|"]
        lines += [f"| {_code(entry)} | {f.status} | {_cell(f.reason)} |" for entry, f in others]
        lines.append("")
    return "\n".join(lines)


def _code(text: str) -> str:
    inner = text.replace("|", "\\|")
    return f"`` {inner} ``" if "`" in inner else f"`{inner}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("*", "\\*").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page())
