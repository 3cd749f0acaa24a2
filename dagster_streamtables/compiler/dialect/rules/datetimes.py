"""Dates and timestamps of several dialects: their parts, differences, and formats.

Spark's `DATE_TRUNC` and `DATE_FORMAT` turn a timestamp without a zone into an instant first, so one
that the session's clock never shows (02:30, if it is set forward at 02:00) becomes another. Here,
its date and its time of day are cut and shown without a zone.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import DATES, Kind
from dagster_streamtables.compiler.dialect.rules import instants, patterns
from dagster_streamtables.compiler.dialect.rules.function_rules import typed
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    call,
    from_template,
    literal_int,
    literal_text,
    refuse_if,
)

_T = exp.DataType.Type
UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE", "SECOND")
DAYS_OF_WEEK = {"DOW": "DAYOFWEEK(_x) - 1", "ISODOW": "WEEKDAY(_x) + 1"}
"""Sunday is 0, and 1 in Spark; Monday is 1, and 0 in Spark."""
_SECOND = "EXTRACT(SECOND FROM _x)"
_PAST = {"HOUR": f"MINUTE(_x) * 60 + {_SECOND}", "MINUTE": _SECOND, "SECOND": f"{_SECOND} % 1"}
_TIME = (
    f"TIMESTAMP_NTZ '2000-01-01 00:00:00' + MAKE_DT_INTERVAL(0, HOUR(_x), MINUTE(_x), {_SECOND})"
)
"""No clock of any zone was set on that day."""
ONLY_NUMBERS = (
    "the words of a format differ in Spark",
    "use only numbers: year, month, day, hour, minute and second",
)
"""The reason and the fix for a format of a date."""
_PIECE = re.compile(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']+")
_OF_TIME = "ahHkKmsS"


def truncation(node: exp.Expr, query: Query, *, units: tuple[str, ...] = UNITS) -> exp.Expr | None:
    """``date_trunc``, which returns NULL in Spark for an unknown unit."""
    unit = node.args.get("unit")
    if unit is None or unit.name.upper() not in units or node.args.get("zone"):
        raise query.refusal(
            node, "Spark truncates differently, or not at all", f"use one of {', '.join(units)}"
        )
    local = query.kind(node.this) is Kind.LOCAL
    return truncate_local(node.this, unit.name.upper()) if local else None


def extraction(node: exp.Expr, query: Query, *, parts: tuple[str, ...] = _PARTS) -> exp.Expr | None:
    """``extract``, of these parts."""
    part = node.this.name.upper()
    if part not in parts:
        raise query.refusal(node, "Spark counts it differently, or has no such part",
                            f"use one of {', '.join(parts)}")  # fmt: skip
    template = DAYS_OF_WEEK.get(part)
    return None if template is None else from_template(template, x=node.expression)


def shift_date(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A date plus an interval is a timestamp; in Spark it may be a date."""
    left, right = node.this, node.expression
    if query.kind(left) is Kind.INSTANT and query.kind(right) is Kind.INTERVAL:
        return instants.shift_instant(node, left, right, query)
    if isinstance(right, exp.Interval):
        kind = query.require(node, left, DATES, "a date plus an interval is a date in Spark",
                             "cast it to DATE or TIMESTAMP")  # fmt: skip
        if kind is Kind.DATE:
            node.set("this", typed(left.copy(), _T.TIMESTAMPNTZ))
        return None
    if query.kind(left) is Kind.DATE and query.kind(right) is Kind.DATE:
        return call("DATEDIFF", left.copy(), right.copy())
    return None


check_interval = refuse_if(
    lambda node, _: literal_text(node.this) is None and literal_int(node.this) is None,
    "Spark's intervals are constants", "multiply INTERVAL '1 day' by the number",
)  # fmt: skip


def format_conversion(
    node: exp.Expr, query: Query, *, name: str, kinds: Collection[Kind] = ()
) -> exp.Expr:
    """Conversion between dates and strings by a format."""
    written = literal_text(node.args.get("format"))
    format_ = None if written is None else patterns.java_format(written)
    if format_ is None:
        raise query.refusal(node, *ONLY_NUMBERS)
    if kinds:
        query.require(node, node.this, kinds, "this needs a date", "cast it to DATE or TIMESTAMP")
    if query.kind(node.this) is Kind.LOCAL:
        return format_local(node.this, format_)
    return call(name, node.this.copy(), format_)


def truncate_local(value: exp.Expr, unit: str) -> exp.Expr:
    """The beginning of a unit, SECOND to YEAR, of a timestamp without a zone, and as one."""
    if unit in _PAST:
        return from_template("_x - MAKE_DT_INTERVAL(0, 0, 0, _p)", x=value, p=past(value, unit))
    if unit == "DAY":
        return from_template("CAST(CAST(_x AS DATE) AS TIMESTAMP_NTZ)", x=value)
    return from_template(f"CAST(TRUNC(CAST(_x AS DATE), '{unit}') AS TIMESTAMP_NTZ)", x=value)


def past(value: exp.Expr, unit: str) -> exp.Expr:
    """The seconds since the beginning of an hour, minute or second, of the timestamp."""
    return from_template(_PAST[unit], x=value)


def date_of(value: exp.Expr) -> exp.Expr:
    """The date that a timestamp without a zone shows."""
    return from_template("CAST(_x AS DATE)", x=value)


def time_of(value: exp.Expr) -> exp.Expr:
    """The time of day that a timestamp without a zone shows, on a day of the year 2000."""
    return from_template(_TIME, x=value)


def format_local(value: exp.Expr, format_: str) -> exp.Expr:
    """A timestamp without a zone as a string, in a format of Spark's `DATE_FORMAT`."""
    parts = [
        call("DATE_FORMAT", (time_of if of_time else date_of)(value), text)
        for of_time, text in _runs(format_)
    ]
    return parts[0] if len(parts) == 1 else call("CONCAT", *parts)


def _runs(format_: str) -> list[tuple[bool, str]]:
    """Letters of the date and of the time apart, each with the texts after them.

    >>> _runs("yyyy-MM-dd'T'HH:mm")
    [(False, "yyyy-MM-dd'T'"), (True, 'HH:mm')]
    """
    runs: list[tuple[bool, str]] = []
    for piece in _PIECE.finditer(format_):
        letter, text = piece[1], piece[0]
        of_time = letter in _OF_TIME if letter else bool(runs and runs[-1][0])
        if runs and runs[-1][0] is of_time:
            text = runs.pop()[1] + text
        runs.append((of_time, text))
    return runs
