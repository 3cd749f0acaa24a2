"""``generate_series``, and arrays and texts that become rows."""

from __future__ import annotations

import datetime

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres import constant_rows
from dagster_streamtables.compiler.dialect.postgres.clauses import require_in_from
from dagster_streamtables.compiler.dialect.postgres.intervals import (
    intervals_of,
    parts_of,
    text_of,
)
from dagster_streamtables.compiler.dialect.postgres.regexes import split_by_pattern
from dagster_streamtables.compiler.dialect.postgres.strings import split_by_text
from dagster_streamtables.compiler.dialect.rules import arrays, instants
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import from_template
from dagster_streamtables.compiler.dialect.rules.query import (
    Query,
    Rule,
    call,
    literal_int,
    literal_text,
)

_GENERATORS = ("explode", "inline", "generate_subscripts", "string_to_table",
               "regexp_split_to_table")  # fmt: skip
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
    return _explode_sequence(start, end, exp.Literal.number(step), "<=" if step > 0 else ">=")


def _explode_sequence(start: exp.Expr, end: exp.Expr, step: exp.Expr, order: str) -> exp.Expr:
    a, b = literal_int(start), literal_int(end)
    if a is not None and b is not None and (a <= b if order == "<=" else a >= b):
        return call("EXPLODE", call("SEQUENCE", start.copy(), end.copy(), step.copy()))
    some = f"CASE WHEN _a {order} _b THEN SEQUENCE(_a, _b, _s) END"
    return call("EXPLODE", from_template(some, a=start, b=end, s=step))


def _of_dates(node: exp.Expr, start: exp.Expr, end: exp.Expr, kind: Kind, query: Query) -> exp.Expr:
    """Dates become timestamps with a zone. Postgres adds months to the row before, so after 31
    January it goes on with the 29th; Spark adds them to the first row."""
    step = node.args.get("step")
    months, days, seconds = parts_of(text_of(step)) or (0, 0, 0)
    found = [each for each in (months, days, seconds) if each]
    if len(found) != 1 or found[0] < 0:
        raise query.refusal(node, "Spark needs to know the step", "write a constant, as '1 day'",
                            called="generate_series()")  # fmt: skip
    [interval] = intervals_of((months, days, seconds))
    if kind is not Kind.LOCAL and instants.is_long(interval):
        raise query.refusal(node, instants.DAYS, "count days, or hours below 24",
                            called="generate_series()")  # fmt: skip
    target = "TIMESTAMP_NTZ" if kind is Kind.LOCAL else "TIMESTAMP"
    ends = [from_template(f"CAST(_x AS {target})", x=each) for each in (start, end)]
    if months and not _begins_early(start):
        return call("EXPLODE", _by_month(ends[0], ends[1], interval, months, kind))
    return _explode_sequence(ends[0], ends[1], interval, "<=")


def _by_month(start: exp.Expr, end: exp.Expr, step: exp.Expr, months: int, kind: Kind) -> exp.Expr:
    """Each month from the one before it: the last one may be too late, and is left out."""
    distance = "((YEAR(_b) - YEAR(_a)) * 12 + MONTH(_b) - MONTH(_a))"
    following = from_template("ELEMENT_AT(st_l, -1) + _s", s=step)
    following = following if kind is Kind.LOCAL else instants.later(following)
    listed = (
        f"AGGREGATE(SEQUENCE(0, {distance} DIV {months}), ARRAY(_a), "
        "(st_l, st_k) -> CONCAT(st_l, ARRAY(_f)))"
    )
    some = f"CASE WHEN _a <= _b THEN FILTER({listed}, st_t -> st_t <= _b) END"
    return from_template(some, a=start, b=end, f=following)


def _begins_early(start: exp.Expr) -> bool:
    """Whether it is a constant that every month has the day of."""
    inner = start
    while isinstance(inner, exp.Cast | exp.Paren):
        inner = inner.this
    try:
        return datetime.datetime.fromisoformat(literal_text(inner) or "").day <= 28
    except ValueError:
        return False


def _rows(parts: Rule) -> Rule:
    """A function that returns its parts as rows, in FROM."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        require_in_from(node, query)
        found = parts(node, query)
        assert found is not None
        return call("EXPLODE", found)

    return rule


def _subscripts(node: exp.Expr, query: Query) -> exp.Expr:
    """``generate_subscripts(array, 1)``, in FROM or as an output of its own."""
    _require_alone(node, query)
    array, dimension, *rest = node.expressions
    if literal_int(dimension) != 1 or rest:
        raise query.refusal(node, "Spark's arrays have one dimension, from 1", "use dimension 1")
    some = "CASE WHEN CARDINALITY(_a) > 0 THEN SEQUENCE(1, CARDINALITY(_a)) END"
    return call("EXPLODE", from_template(some, a=array))


def _require_alone(node: exp.Expr, query: Query) -> None:
    """A function that returns rows, in FROM or as an output of its own: of several outputs, the
    rows advance side by side in Postgres."""
    output = node.parent if isinstance(node.parent, exp.Alias) else node
    select = output.parent
    if not isinstance(select, exp.Select):
        require_in_from(node, query)
        return
    calls = [
        each
        for output in select.selects
        for each in output.find_all(exp.Explode, exp.ExplodingGenerateSeries, exp.Anonymous)
        if not isinstance(each, exp.Anonymous) or each.name.lower() in _GENERATORS
    ]
    if len(calls) > 1:
        raise query.refusal(node, "in Postgres the rows of several advance side by side",
                            "put them in FROM, each with an alias")  # fmt: skip


def unnest_arrays(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``unnest(a, b)`` in FROM: the elements side by side, and NULL after an array's end."""
    if len(node.expressions) < 2:
        return arrays.rows_of(node, query)
    if isinstance(node.parent, exp.Lateral):
        return None
    return _side_by_side(node, node.args.get("alias"), query)


def lateral(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``LATERAL unnest(…)``, VALUES, and other functions that were made rows."""
    rows = constant_rows.lateral_values(node, query)
    if rows is not None:
        return rows
    alias = node.args.get("alias")
    if isinstance(node.this, exp.Anonymous) and node.this.name in ("EXPLODE", "INLINE"):
        if alias is None or not alias.name:
            raise query.refusal(node, "its column has no name in Spark", "give it an alias")
        if not alias.columns:
            alias.set("columns", [alias.this.copy()])
        return None
    if isinstance(node.this, exp.Unnest) and len(node.this.expressions) > 1:
        return _side_by_side(node.this, node.args.get("alias"), query)
    return arrays.lateral_rows(node, query)


def _side_by_side(node: exp.Expr, alias: exp.Expr | None, query: Query) -> exp.Expr:
    names = [each.copy() for each in alias.args.get("columns") or []] if alias is not None else []
    if node.args.get("offset") or len(names) != len(node.expressions):
        raise query.refusal(node, "each array's elements need a name, and no number",
                            "write unnest(a, b) AS e(x, y)", called="unnest()")  # fmt: skip
    zipped = call(
        "ARRAYS_ZIP", *[from_template("COALESCE(_a, ARRAY())", a=a) for a in node.expressions]
    )
    fields = ", ".join(f"'c{at}', st_e.`{at}`" for at in range(len(names)))
    rows = from_template(f"TRANSFORM(_z, st_e -> NAMED_STRUCT({fields}))", z=zipped)
    assert alias is not None
    return arrays.relation(call("INLINE", rows), alias.this.copy(), names, inside=node)


RULES: Rules = {
    exp.ExplodingGenerateSeries: series, exp.Unnest: unnest_arrays, exp.Lateral: lateral,
    exp.Table: constant_rows.table, exp.Values: constant_rows.rows,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "generate_subscripts": _subscripts,
    "string_to_table": _rows(split_by_text),
    "regexp_split_to_table": _rows(split_by_pattern),
}
