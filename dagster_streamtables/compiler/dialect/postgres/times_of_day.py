"""Times of day of Postgres: no Delta table has them, so each is the text that Postgres shows.

Of two such texts the greater one is the later time, and equal times have equal texts: all have
hours, minutes and seconds in two digits, and a fraction that ends in no zero. A constant next to
one is written in the same way.
"""

from __future__ import annotations

import datetime

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import MOMENTS, Kind
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    change_sides,
    from_template,
    literal_text,
    sides_of,
)

_T = exp.DataType.Type
_NOTE = "a time of day is stored as the text that PostgreSQL shows"
_COMPARES = (
    *(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.Between, exp.In),
)
_KEEPS = (
    *(exp.Alias, exp.Paren, exp.Select, exp.Group, exp.Ordered, exp.Min, exp.Max, exp.Count),
    *(exp.Distinct, exp.Extract, exp.Cast, exp.Is, exp.Window, exp.Add, exp.Lag, exp.Lead),
    *(exp.FirstValue, exp.LastValue, exp.Filter, exp.IgnoreNulls, exp.Subquery, exp.Order),
)
_ONE_OF = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)
_HOUR, _MINUTE = "CAST(SUBSTRING(_t, 1, 2) AS INT)", "CAST(SUBSTRING(_t, 4, 2) AS INT)"
_SECOND = "CAST(SUBSTRING(_t, 7) AS DECIMAL(8, 6))"
_PARTS = {
    "HOUR": _HOUR, "MINUTE": _MINUTE, "SECOND": _SECOND, "MILLISECONDS": f"{_SECOND} * 1000",
    "MICROSECONDS": f"CAST({_SECOND} * 1000000 AS INT)",
    "EPOCH": f"{_HOUR} * 3600 + {_MINUTE} * 60 + {_SECOND}",
}  # fmt: skip


def cast(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A cast to a time of day, or from one; None for any other."""
    target, value = node.args["to"], node.this
    kind = query.kind(value)
    if target.this is _T.TIME:
        query.note(_NOTE)
        if target.expressions:
            raise query.refusal(node, "a time of day keeps its fraction", "leave out the digits")
        if kind in MOMENTS:
            return from_template("SUBSTRING(CAST(_x AS STRING), 12)", x=value)
        return value.copy() if kind is Kind.TIME else _constant(node, value, query)
    if kind is not Kind.TIME:
        return None
    if target.this not in (_T.TEXT, _T.VARCHAR) or target.expressions:
        raise query.refusal(node, "a time of day becomes a text only", "cast the timestamp")
    return value.copy()


def _constant(node: exp.Expr, value: exp.Expr, query: Query) -> exp.Expr:
    """A constant time, of hours and minutes or more, as Postgres shows it."""
    try:
        at = datetime.time.fromisoformat((literal_text(value) or "").strip())
    except ValueError:
        at = None
    if at is None or at.tzinfo is not None:
        raise query.refusal(node, "only timestamps and constants such as '09:00' become times",
                            "write it as '09:00' or '09:00:00'")  # fmt: skip
    return exp.Literal.string(at.isoformat().rstrip("0") if at.microsecond else at.isoformat())


def compare_times_of_day(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A time of day next to others, or constants; None if there is none."""
    if not any(query.kind(each) is Kind.TIME for each in sides_of(node)):
        return None

    def change(side: exp.Expr) -> exp.Expr:
        alike = query.kind(side) is Kind.TIME or isinstance(side.unnest(), exp.Null)
        return side.copy() if alike else _constant(node, side, query)

    found = change_sides(node, change)
    return found if isinstance(node, exp.Between | exp.In) else exp.paren(found)


def add_time_of_day(node: exp.Expr, query: Query) -> exp.Expr:
    """A date and a time of day, added: a timestamp."""
    sides = {query.kind(each): each for each in (node.this, node.expression)}
    if sides.keys() != {Kind.DATE, Kind.TIME} or not isinstance(node, exp.Add):
        raise query.refusal(node, "only a date is added to a time of day",
                            "add the interval to the timestamp, and cast the sum to TIME",
                            called="arithmetic with a time of day")  # fmt: skip
    both = {"d": sides[Kind.DATE], "t": sides[Kind.TIME]}
    return from_template("CAST(CONCAT(CAST(_d AS STRING), ' ', _t) AS TIMESTAMP_NTZ)", **both)


def extract_time_of_day(node: exp.Expr, part: str, query: Query) -> exp.Expr:
    """A part of a time of day."""
    if part not in _PARTS:
        raise query.refusal(node, "a time of day has no such part", "take it of the timestamp",
                            called=part)  # fmt: skip
    return from_template(_PARTS[part], t=node.expression)


def require_place(query: Query) -> None:
    """Refuse a time of day at a place that would take its text for any other: an argument of a
    function, a side of a UNION, or an output of a view."""
    for node in query.text.tree.walk():
        if query.kind(node) is not Kind.TIME or isinstance(node, exp.Select | exp.Subquery):
            continue
        around = node.parent
        kept = isinstance(around, (*_COMPARES, *_KEEPS))
        if isinstance(around, _ONE_OF):
            kept = query.kind(around) is Kind.TIME
        if isinstance(around, exp.Lag | exp.Lead):
            kept = around.args.get("default") is None
        if isinstance(around, exp.Select):
            whole = around.parent is None
            kept = not isinstance(around.parent, exp.SetOperation) and (query.stored or not whole)
        if not kept:
            raise query.refusal(node, "a Delta table has no times of day, and its text would be "
                                "taken for any text here", "cast it, and any constant beside it, "
                                "to TEXT or to TIME", called="a time of day")  # fmt: skip
