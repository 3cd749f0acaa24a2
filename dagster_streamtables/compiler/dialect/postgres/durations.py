"""Differences of dates and timestamps of Postgres: no Delta table can hold them, but what is taken
out of them is a number."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import MOMENTS, Kind
from dagster_streamtables.compiler.dialect.rules.aggregated import mark_aggregate, mark_composite
from dagster_streamtables.compiler.dialect.rules.instants import micros
from dagster_streamtables.compiler.dialect.rules.made import from_template
from dagster_streamtables.compiler.dialect.rules.query import Query

DATES = (Kind.DATE, *MOMENTS)
CAST_IT = "cast it to DATE, TIMESTAMP or TIMESTAMPTZ"
_ROUNDED = "the mean of differences is rounded to a microsecond once, in Postgres twice"
_OF_DIFFERENCE = {
    "DAY": "_m DIV 86400000000",
    "HOUR": "_m DIV 3600000000 % 24",
    "MINUTE": "_m DIV 60000000 % 60",
    "SECOND": "CAST(_m % 60000000 * 0.000001 AS DECIMAL(20, 6))",
    "EPOCH": "CAST(_m * 0.000001 AS DECIMAL(20, 6))",
}


def is_part_of_extract(node: exp.Expr) -> bool:
    """Whether a number is taken out of a difference, or of an aggregate of differences."""
    around = node.parent
    while isinstance(around, exp.Paren | exp.Sum | exp.Avg | exp.Min | exp.Max):
        around = around.parent
    return isinstance(around, exp.Extract)


def part_of_interval(node: exp.Expr, part: str, value: exp.Expr, query: Query) -> exp.Expr:
    """A part of a difference."""
    if isinstance(value, exp.Sum | exp.Avg | exp.Min | exp.Max) and part == "EPOCH":
        return _epoch_of_aggregate(node, value, query)
    sides = value.args.get("this"), value.args.get("expression")
    kinds = [query.kind(each) for each in sides]
    if not isinstance(value, exp.Sub) or part not in _OF_DIFFERENCE or not set(kinds) <= set(DATES):
        raise query.refusal(
            node, "only parts of a difference of two timestamps are translated",
            f"use one of {', '.join(_OF_DIFFERENCE)} of a difference, or YEAR or MONTH of age()",
        )  # fmt: skip
    require_alike(node, kinds, query)
    a, b = (micros(side, kind) for side, kind in zip(sides, kinds, strict=True) if side)
    return from_template(_OF_DIFFERENCE[part], m=exp.Sub(this=a, expression=b))


def _epoch_of_aggregate(node: exp.Expr, value: exp.Expr, query: Query) -> exp.Expr:
    """``extract(epoch from avg(a - b))``, and of a sum, the least or the greatest."""
    inner = value.this.unnest()
    sides = [inner.args.get("this"), inner.args.get("expression")]
    kinds = [query.kind(each) for each in sides]
    if not isinstance(inner, exp.Sub) or not set(kinds) <= set(DATES):
        raise query.refusal(node, "only differences of two timestamps are aggregated",
                            "aggregate extract(epoch from …)")  # fmt: skip
    require_alike(node, kinds, query)
    a, b = (micros(side, kind) for side, kind in zip(sides, kinds, strict=True) if side)
    # Of a mean, Postgres rounds days and times each on their own.
    if isinstance(value, exp.Avg):
        query.note(_ROUNDED)
        total = mark_aggregate(exp.Sum(this=exp.Sub(this=a.copy(), expression=b.copy())))
        count = mark_aggregate(exp.Count(this=exp.Sub(this=a, expression=b), big_int=True))
        mean = "CAST(ROUND(CAST(_t AS DECIMAL(22, 0)) / NULLIF(_n, 0), 0) AS DECIMAL(22, 0))"
        found = from_template(f"CAST({mean} * 0.000001 AS DECIMAL(28, 6))", t=total, n=count)
    else:
        value = mark_aggregate(type(value)(this=exp.Sub(this=a, expression=b)))
        found = from_template("CAST(_m * 0.000001 AS DECIMAL(28, 6))", m=value)
    return mark_composite(found)


def require_alike(node: exp.Expr, kinds: list[Kind], query: Query) -> None:
    if Kind.INSTANT in kinds and set(kinds) != {Kind.INSTANT}:
        raise query.refusal(
            node, "a timestamp with a zone and one without are compared in the session's zone",
            "cast both to TIMESTAMPTZ or both to TIMESTAMP",
        )  # fmt: skip
