"""Dates and timestamps: their parts, differences, and formats."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.inferred_types import MOMENTS, Kind
from dagster_streamtables.compiler.dialect.rules import clocks, instants, patterns
from dagster_streamtables.compiler.dialect.rules.functions import typed
from dagster_streamtables.compiler.dialect.rules.query import (
    Query,
    Rule,
    call,
    literal_int,
    literal_text,
)

_T = exp.DataType.Type
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE", "SECOND")


def truncation(units: tuple[str, ...] = _UNITS) -> Rule:
    """``date_trunc``, which returns NULL in Spark for an unknown unit."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr | None:
        unit = node.args.get("unit")
        if unit is None or unit.name.upper() not in units or node.args.get("zone"):
            raise query.refusal(
                node, "Spark truncates differently, or not at all", f"use one of {', '.join(units)}"
            )
        local = query.kind(node.this) is Kind.LOCAL
        return clocks.truncate_local(node.this, unit.name.upper()) if local else None

    return rule


def extraction(parts: tuple[str, ...] = _PARTS) -> Rule:
    """``extract``; Spark counts the days of the week from 1, beginning with Sunday."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr | None:
        part, value = node.this.name.upper(), node.expression.copy()
        if part == "DOW" and "DOW" in parts:
            day = exp.Sub(this=call("DAYOFWEEK", value), expression=exp.Literal.number(1))
            return exp.paren(day)
        if part == "ISODOW" and "ISODOW" in parts:
            day = exp.Add(this=call("WEEKDAY", value), expression=exp.Literal.number(1))
            return exp.paren(day)
        if part not in parts:
            raise query.refusal(
                node, "Spark counts it differently, or has no such part",
                f"use one of {', '.join(parts)}",
            )  # fmt: skip
        return None

    return rule


def shift_date(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A date plus an interval is a timestamp; in Spark it may be a date."""
    left, right = node.this, node.expression
    if query.kind(left) is Kind.INSTANT and query.kind(right) is Kind.INTERVAL:
        return instants.shift_instant(node, left, right, query)
    if isinstance(right, exp.Interval):
        kind = query.require(
            node, left, (Kind.DATE, *MOMENTS), "a date plus an interval is a date in Spark",
            "cast it to DATE or TIMESTAMP",
        )  # fmt: skip
        if kind is Kind.DATE:
            node.set("this", typed(left.copy(), _T.TIMESTAMPNTZ))
        return None
    if query.kind(left) is Kind.DATE and query.kind(right) is Kind.DATE:
        return call("DATEDIFF", left.copy(), right.copy())
    return None


def interval(node: exp.Expr, query: Query) -> None:
    if literal_text(node.this) is None and literal_int(node.this) is None:
        raise query.refusal(
            node, "Spark's intervals are constants", "multiply INTERVAL '1 day' by the number"
        )


def format_conversion(name: str, *, kinds: tuple[Kind, ...] = ()) -> Rule:
    """Conversion between dates and strings by a format."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        written = literal_text(node.args.get("format"))
        format_ = None if written is None else patterns.java_format(written)
        if format_ is None:
            raise query.refusal(
                node, "the words of a format differ in Spark",
                "use only numbers: year, month, day, hour, minute and second",
            )  # fmt: skip
        if kinds:
            query.require(
                node, node.this, kinds, "this needs a date", "cast it to DATE or TIMESTAMP"
            )
        if query.kind(node.this) is Kind.LOCAL:
            return clocks.format_local(node.this, format_)
        return call(name, node.this.copy(), exp.Literal.string(format_))

    return rule
