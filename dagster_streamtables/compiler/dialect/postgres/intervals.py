"""Intervals of Postgres: constants of months, days and seconds."""

from __future__ import annotations

import re

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.rules import instants
from dagster_streamtables.compiler.dialect.rules.query import Query, literal_int, literal_text

_MONTHS = {"mon": 1, "month": 1, "y": 12, "yr": 12, "year": 12, "quarter": 3, "decade": 120,
           "century": 1200}  # fmt: skip
_DAYS = {"d": 1, "day": 1, "w": 7, "week": 7}
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hr": 3600,
            "hour": 3600}  # fmt: skip
_MOVE = ("date_add", "date_subtract")
_PART = re.compile(r"([+-]?)\s*(\d+)\s*([a-z]+)")
_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d)(?::(\d\d))?")
Parts = tuple[int, int, int]
"""Months, days and seconds."""


def parts_of(text: str) -> Parts | None:
    """The parts of an interval; None if it has others, such as fractions of seconds.

    >>> parts_of("1 year 2 days"), parts_of("1 day 02:30"), parts_of("0.5 day")
    ((12, 2, 0), (0, 1, 9000), None)
    """
    months = days = seconds = 0
    rest = text.lower()
    if re.sub(r"[\s,]", "", _CLOCK.sub("", _PART.sub("", rest))):
        return None
    for sign, hours, minutes, last in _CLOCK.findall(rest):
        size = int(hours) * 3600 + int(minutes) * 60 + int(last or 0)
        seconds += -size if sign == "-" else size
    for sign, digits, unit in _PART.findall(_CLOCK.sub("", rest)):
        number = int(digits) * (-1 if sign == "-" else 1)
        name = unit if unit in {**_MONTHS, **_DAYS, **_SECONDS} else unit.rstrip("s")
        if name not in {**_MONTHS, **_DAYS, **_SECONDS}:
            return None
        months += number * _MONTHS.get(name, 0)
        days += number * _DAYS.get(name, 0)
        seconds += number * _SECONDS.get(name, 0)
    return months, days, seconds


def text_of(node: exp.Expr | None) -> str:
    """The words of a constant interval: of a literal, a cast or INTERVAL; '' for anything else."""
    if isinstance(node, exp.Cast | exp.Paren):
        return text_of(node.this)
    if isinstance(node, exp.Interval):
        number = literal_int(node.this)
        value = literal_text(node.this) if number is None else str(number)
        unit = node.args.get("unit")
        return f"{value or ''} {unit.name if unit is not None else ''}".strip()
    return literal_text(node) or ""


def intervals_of(parts: Parts) -> list[exp.Expr]:
    """Intervals of Spark, whose units cannot be mixed, in the order in which they are added."""
    months, days, seconds = parts
    found: list[tuple[int, str]] = [(months, "MONTH"), (days, "DAY"), (seconds, "SECOND")]
    whole = [(n, unit) for n, unit in found if n] or [(0, "DAY")]
    return [exp.Interval(this=exp.Literal.string(str(n)), unit=exp.var(unit)) for n, unit in whole]


def interval(node: exp.Expr, query: Query) -> exp.Expr:
    """A constant interval; one of several units is taken apart by the sum around it."""
    parts = parts_of(text_of(node))
    if parts is None:
        raise query.refusal(
            node, "Spark's intervals are constants of whole units",
            "multiply INTERVAL '1 day' by the number",
        )  # fmt: skip
    found = intervals_of(parts)
    if len(found) == 1:
        return found[0]
    around = _around(node)
    called = isinstance(around, exp.Anonymous) and around.name.lower() in _MOVE
    if not called and not isinstance(around, exp.Add | exp.Sub):
        raise query.refusal(
            node, "Spark cannot multiply months together with days",
            "multiply two intervals, and add both",
        )  # fmt: skip
    return exp.Tuple(expressions=found)


def _around(node: exp.Expr) -> exp.Expr | None:
    around = node.parent
    while isinstance(around, exp.Paren | exp.Cast):
        around = around.parent
    return around


def add_interval(
    node: exp.Expr, value: exp.Expr, interval_: exp.Expr, kind: Kind, query: Query
) -> exp.Expr:
    """A time of some kind plus or minus an interval, one unit after the other."""
    inner = interval_.unnest()
    steps = inner.expressions if isinstance(inner, exp.Tuple) else [interval_]
    found = value
    for step in steps:
        if kind is Kind.INSTANT:
            found = instants.shift_instant(node, found, step, query)
        else:
            found = type(node)(this=found.copy(), expression=step.copy())
    return found
