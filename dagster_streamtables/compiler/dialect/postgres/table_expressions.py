"""What Postgres has in FROM: VALUES of the row, ``generate_series``, arrays and texts as rows."""

from __future__ import annotations

import datetime
from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import DATES, WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres.strings import split_by_pattern, split_by_text
from dagster_streamtables.compiler.dialect.postgres.times import intervals_of, parts_of, text_of
from dagster_streamtables.compiler.dialect.rules import array_rules, instants
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON, Rules, name_column
from dagster_streamtables.compiler.dialect.rules.function_rules import NUMBERS
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
    literal_int,
    literal_text,
)
from dagster_streamtables.compiler.dialect.rules.values_columns import rows_of


def rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``(VALUES (a), (b)) AS v(k)`` in a subquery, of the row around it: an array of rows."""
    _require_one_type(node, query)
    alias = node.args.get("alias")
    if alias is None or not node.find(exp.Column):
        return None
    for column in list(node.find_all(exp.Column)):
        relation = query.kinds.origins.relation_of(column) if not column.table else None
        if relation is not None:  # a table function of Spark sees no columns without it
            column.set("table", exp.to_identifier(relation))
    columns = [each.copy() for each in alias.args["columns"]]
    return array_rules.relation(_inline(node), alias.this.copy(), columns, inside=node)


def _require_one_type(node: exp.Expr, query: Query) -> None:
    """Postgres turns a text next to a number into a number."""
    for column in zip(*rows_of(node), strict=True):
        kinds = {query.kind(each) for each in column if not isinstance(each, exp.Null)}
        if len(kinds) > 1 and not kinds <= set(NUMBERS):
            shown = " and ".join(sorted(kind.value for kind in kinds))
            raise query.refusal(node, f"a column has values of several types: {shown}",
                                "cast them to one type", called="VALUES")  # fmt: skip


def _inline(values: exp.Expr) -> exp.Expr:
    structs = [
        call("NAMED_STRUCT", *(part for at, each in enumerate(row)
                               for part in (exp.Literal.string(f"c{at}"), each.copy())))
        for row in rows_of(values)
    ]  # fmt: skip
    return call("INLINE", call("ARRAY", *structs))


def table(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``ONLY t``: a Delta table has no tables that inherit from it."""
    node.set("only", None)
    return COMMON.rewrites[exp.Table](node, query)


def series(node: exp.Expr, query: Query) -> exp.Expr:
    """``generate_series``: no rows if the end is before the start, where Spark counts down."""
    array_rules.require_alone(node, query)
    start, end = node.args["start"], node.args["end"]
    kind = query.kind(start)
    if kind in DATES or query.kind(end) in DATES:
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


def _rows(node: exp.Expr, query: Query, *, parts: Rule) -> exp.Expr:
    """A function that returns its parts as rows, in FROM."""
    array_rules.require_in_from(node, query)
    found = parts(node, query)
    assert found is not None
    return call("EXPLODE", found)


def _subscripts(node: exp.Expr, query: Query) -> exp.Expr:
    """``generate_subscripts(array, 1)``, in FROM or as an output."""
    array_rules.require_alone(node, query)
    array, dimension, *rest = node.expressions
    if literal_int(dimension) != 1 or rest:
        raise query.refusal(node, "Spark's arrays have one dimension, from 1", "use dimension 1")
    some = "CASE WHEN CARDINALITY(_a) > 0 THEN SEQUENCE(1, CARDINALITY(_a)) END"
    return call("EXPLODE", from_template(some, a=array))


def unnest_arrays(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``unnest(a, b)`` in FROM: the elements side by side, and NULL after an array's end."""
    if len(node.expressions) < 2:
        return array_rules.rows_of(node, query)
    if isinstance(node.parent, exp.Lateral):
        return None
    return _side_by_side(node, node.args.get("alias"), query)


def lateral(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``LATERAL unnest(…)``, ``LATERAL (VALUES (t.a), (t.b)) AS e(v)``, and functions that are
    already rows."""
    inner, alias = node.this.unnest(), node.args.get("alias")
    if isinstance(inner, exp.Values) and alias is not None:
        return exp.Lateral(this=_inline(inner), alias=alias.copy())
    if isinstance(node.this, exp.Anonymous) and node.this.name in ("EXPLODE", "INLINE"):
        name_column(node, query)
        return None
    if isinstance(node.this, exp.Unnest) and len(node.this.expressions) > 1:
        return _side_by_side(node.this, node.args.get("alias"), query)
    return array_rules.lateral_rows(node, query)


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
    return array_rules.relation(call("INLINE", rows), alias.this.copy(), names, inside=node)


RULES: Rules = {
    exp.ExplodingGenerateSeries: series, exp.Unnest: unnest_arrays, exp.Lateral: lateral,
    exp.Table: table, exp.Values: rows,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "generate_subscripts": _subscripts,
    "string_to_table": partial(_rows, parts=split_by_text),
    "regexp_split_to_table": partial(_rows, parts=split_by_pattern),
}
