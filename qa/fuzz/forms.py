"""Scalar functions and aggregates, each as a typed form: what it takes, what it gives, its text.

They are in `forms.txt`. What only Spark has, or DuckDB takes for something else, stands behind a
switch of `OF_SPARK`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compiler.casefile import tables
from qa.fuzz.schema import Kind

INT, STRING, DECIMAL, DATE = Kind.INT, Kind.STRING, Kind.DECIMAL, Kind.DATE
BOOLEAN, TIMESTAMP, INTS = Kind.BOOLEAN, Kind.TIMESTAMP, Kind.INTS
PLACE, DOUBLE = Kind.PLACE, Kind.DOUBLE
COMPARABLE = (INT, STRING, DECIMAL, DATE, BOOLEAN, TIMESTAMP)


@dataclass(frozen=True)
class Form:
    kind: Kind
    template: str
    takes: tuple[Kind, ...] = ()
    about: str = ""


def _forms(signature: str, *templates: str) -> Iterator[Form]:
    """The forms of a row, for each of the kinds that T stands for."""
    typed, _, others = signature.partition(" of ")
    *about, typed = typed.split(": ")
    for other in others.split() or ["T"]:
        kind, *takes = (Kind[each] for each in re.findall(r"\w+", re.sub(r"\bT\b", other, typed)))
        for template in templates:
            yield Form(kind, template, tuple(takes), "".join(about))


_CHAPTERS = [
    [form for row in rows for form in _forms(*row)]
    for rows in tables("forms.txt", Path(__file__).parent).values()
]
OF_DUCKDB = _CHAPTERS[2]
"""The aggregates that both engines have."""
RANKS, POSITIONS, TOTALS = _CHAPTERS[3:6]
SCALARS, PREDICATES, AGGREGATES = (_CHAPTERS[i] + _CHAPTERS[6 + i] for i in range(3))

LITERALS: dict[Kind, tuple[str, ...]] = {
    INT: ("1", "2", "0"),
    STRING: ("'north'", "'1'"),
    DECIMAL: ("CAST(1.50 AS DECIMAL(10, 2))",),
    DATE: ("DATE '2013-01-31'",),
    BOOLEAN: ("true", "false"),
    TIMESTAMP: ("TIMESTAMP '2013-01-31 10:00:00'",),
    INTS: ("ARRAY(1, 2)",),
    PLACE: ("NAMED_STRUCT('x', 1, 'y', 'north')",),
    DOUBLE: ("CAST(0.5 AS DOUBLE)",),
    Kind.MAP: ("MAP('a', 1)",),
    Kind.VARIANT: ("PARSE_JSON('[1]')",),
}
"""The first of a kind is the one that shrinking ends at."""

ROWS_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
)
RANGE_FRAMES = (
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
)
