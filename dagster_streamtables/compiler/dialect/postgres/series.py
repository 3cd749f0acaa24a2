"""``generate_series``, and texts that become rows."""

from __future__ import annotations

import datetime

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres.intervals import (
    intervals_of,
    parts_of,
    text_of,
)
from dagster_streamtables.compiler.dialect.postgres.strings import CALLS as STRINGS
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import made
from dagster_streamtables.compiler.dialect.rules.query import (
    Query,
    Rule,
    call,
    literal_int,
    literal_text,
)

_DATES = (Kind.DATE, Kind.LOCAL, Kind.INSTANT)


def series(node: exp.Expr, query: Query) -> exp.Expr:
    """``generate_series``: no rows if the end is before the start, where Spark counts down."""
    start, end = node.args["start"], node.args["end"]
    kind = query.kind(start)
    if kind in _DATES or query.kind(end) in _DATES:
        return _of_dates(node, start, end, kind, query)
    for each in (start, end):
        query.require(node, each, WHOLE, "Spark's sequences are of whole numbers or dates",
                      "cast it to INT")  # fmt: skip
    step = literal_int(node.args.get("step")) if node.args.get("step") else 1
    if not step:
        raise query.refusal(node, "Spark needs to know the direction", "write a constant step",
                            called="generate_series()")  # fmt: skip
    return _guarded(start, end, exp.Literal.number(step), "<=" if step > 0 else ">=")


def _guarded(start: exp.Expr, end: exp.Expr, step: exp.Expr, order: str) -> exp.Expr:
    a, b = literal_int(start), literal_int(end)
    if a is not None and b is not None and (a <= b if order == "<=" else a >= b):
        return call("EXPLODE", call("SEQUENCE", start.copy(), end.copy(), step.copy()))
    some = f"CASE WHEN _a {order} _b THEN SEQUENCE(_a, _b, _s) END"
    return call("EXPLODE", made(some, a=start, b=end, s=step))


def _of_dates(node: exp.Expr, start: exp.Expr, end: exp.Expr, kind: Kind, query: Query) -> exp.Expr:
    """Dates become timestamps with a zone. Postgres adds months to the row before, so after 31
    January it goes on with the 29th."""
    step = node.args.get("step")
    months, days, seconds = parts_of(text_of(step)) or (0, 0, 0)
    found = [each for each in (months, days, seconds) if each]
    if len(found) != 1 or found[0] < 0:
        raise query.refusal(node, "Spark needs to know the step", "write a constant, as '1 day'",
                            called="generate_series()")  # fmt: skip
    if months and not _begins_early(start):
        raise query.refusal(
            node, "after a month's end Postgres goes on with the shorter month's last day",
            "begin at a constant of day 1 to 28", called="generate_series()",
        )  # fmt: skip
    target = "TIMESTAMP_NTZ" if kind is Kind.LOCAL else "TIMESTAMP"
    ends = [made(f"CAST(_x AS {target})", x=each) for each in (start, end)]
    [interval] = intervals_of((months, days, seconds))
    return _guarded(ends[0], ends[1], interval, "<=")


def _begins_early(start: exp.Expr) -> bool:
    """Whether it is a constant that every month has the day of."""
    inner = start
    while isinstance(inner, exp.Cast | exp.Paren):
        inner = inner.this
    try:
        return datetime.datetime.fromisoformat(literal_text(inner) or "").day <= 28
    except ValueError:
        return False


def _rows(name: str) -> Rule:
    """A function that returns its parts as rows, in FROM."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        if not isinstance(node.parent, exp.Table | exp.Lateral):
            raise query.refusal(node, "Spark makes rows in FROM", "put it in FROM, with an alias")
        found = STRINGS[name](node, query)
        assert found is not None
        return call("EXPLODE", found)

    return rule


RULES: Rules = {exp.ExplodingGenerateSeries: series}
CALLS: dict[str, Rule] = {
    "string_to_table": _rows("string_to_array"),
    "regexp_split_to_table": _rows("regexp_split_to_array"),
}
