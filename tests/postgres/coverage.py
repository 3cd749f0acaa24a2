"""Writes docs/postgres.md: what becomes of each function, operator and clause of PostgreSQL.

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
from dagster_streamtables.compiler.dialect.translate import translation
from dagster_streamtables.errors import InvalidDefinition
from postgres.documented import chapters, query_of
from postgres.tables import COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "postgres.md"
_EXACT, _SHOWN, _REFUSED = "exact", "looks different", "refused"
_HEAD = """# PostgreSQL: function by function

What becomes of the functions, operators and clauses that PostgreSQL 18 documents for types that a
Delta table can hold, when a query says `dialect: postgres`. It is written by
`python -m tests.postgres.coverage`, which translates each entry; `tests/postgres/` runs what is
translated on PostgreSQL 18 and on Spark, and compares the rows.

- *exact*: the same values, to the last digit.
- *looks different*: the same meaning in another representation, which `explain` and the asset's
  page tell. `on_representation: refuse` refuses it ([settings](settings.md)).
- *refused*: the query is refused when the table is defined, with the reason below, the place, and a
  rewrite.

What holds everywhere:

- Strings are compared by code points, as under the collation `C`; upper and lower case are those of
  Unicode. Days and hours are those of `session_timezone`. Years are 1 to 9999.
- Two things about zones differ. Where a clock is set back at midnight (`America/Havana`), a day of
  `date_trunc`, and a date that is compared with an instant, begin at the first midnight, and in
  PostgreSQL at the second. And of a time that a clock shows twice, `tz + interval '1 day'` is the
  earlier one, and in PostgreSQL the later; `date_add(tz, '1 day')` is the later one in both.
- A quotient or an average of `numeric` has the digits that PostgreSQL gives it, up to 24 after the
  point, and zeros after them. One of 10^18 or more fails the refresh rather than lose digits.
- Where PostgreSQL raises an error for a row, so does the refresh, and the table stays as it was.
  Two differ: a sum or a product of floats that overflows is `Infinity`, and a `sum(bigint)` of more
  than 64 bits is an error.
- Over no rows, `ROLLUP`, `CUBE` and `GROUPING SETS (…, ())` have their grand total, unless the
  `SELECT` has windows, `DISTINCT` or `LIMIT`, too: put these into a query around it.
- A column of type `STRING` that a JSON operator reads holds JSON, as `jsonb` does.
- Names without quotes keep the letter case in which the query spells them; PostgreSQL has them in
  lower case.
- Delta allows no space and none of `,;{}()=` in the name of a column: `AS "Net total"` is refused.
- Where the order of `array_agg`, `string_agg` or `jsonb_agg` is left open, the values are sorted.
  Over `FROM (SELECT … ORDER BY …) AS q` alone, arrays have the order of that subquery.
"""


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
    table = ["| chapter | exact | looks different | refused |", "|---|---|---|---|"]
    for title, count in [*sizes, ("**all**", total)]:
        cells = " | ".join(str(count[each]) for each in (_EXACT, _SHOWN, _REFUSED))
        table.append(f"| {title} | {cells} |")
    sections = [_section(title, rows) for title, rows in parts.items()]
    return "\n".join([_HEAD, *table, "", *sections])


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
