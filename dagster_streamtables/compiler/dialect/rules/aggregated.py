"""Aggregates that become an expression over other aggregates: FILTER and OVER go to each of these.

``avg(n) FILTER (WHERE f)`` is a quotient of a sum and a count, both with the FILTER.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules.made import from_template
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule, call

_MARK = "aggregate"
_COMPOSED = "composed"


def mark_aggregate(node: exp.Expr) -> exp.Expr:
    """The node, marked as an aggregate to which a FILTER or a window belongs."""
    node.meta[_MARK] = True
    return node


def mark_composite(node: exp.Expr) -> exp.Expr:
    """The node, marked as an expression over aggregates."""
    node.meta[_COMPOSED] = True
    return node


def spread_over_aggregates(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A FILTER or an OVER, put around each aggregate of the expression that it follows."""
    inner = node.this
    if not inner.meta.get(_COMPOSED):
        return None
    whole = exp.paren(inner.copy())
    for each in [each for each in whole.walk() if each.meta.get(_MARK)]:
        around = node.copy()
        part = each.copy()
        part.meta[_MARK] = False
        around.set("this", part)
        each.replace(mark_aggregate(around))
    return mark_composite(whole.this)


def correlation(flat: str) -> Rule:
    """``corr(y, x)``, for which Spark divides by zero where all values of a column are equal.

    Args:
        flat: The answer there, as SQL. Spark computes every aggregate of a CASE, so its own CORR
            cannot stand behind a condition.
    """
    return of_squares(f"CASE WHEN _xx = 0 OR _yy = 0 THEN {flat} ELSE _xy / SQRT(_xx * _yy) END")


def of_squares(template: str) -> Rule:
    """A statistic of pairs: by the sums of squares ``_xx`` and ``_yy``, and of products ``_xy``."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        pair = node.this, node.expression
        sums = {
            each: mark_aggregate(call(f"REGR_S{each}".upper(), *(part.copy() for part in pair)))
            for each in ("xx", "yy", "xy")
            if f"_{each}" in template
        }
        return mark_composite(from_template(template, **sums))

    return rule
