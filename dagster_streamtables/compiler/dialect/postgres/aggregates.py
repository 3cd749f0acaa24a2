"""Aggregates of Postgres that return arrays, JSON, or one of the values."""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres.json.json_builders import (
    apply_template,
    template_of,
)
from dagster_streamtables.compiler.dialect.postgres.json.json_text import TEXT
from dagster_streamtables.compiler.dialect.rules import function_rules
from dagster_streamtables.compiler.dialect.rules.aggregation import (
    mark_aggregate,
    mark_composite,
    spread_over_aggregates,
)
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
    template_rule,
)

_ALONE = "TO_JSON(NAMED_STRUCT('v', {}), MAP('ignoreNullFields', 'false'))"


def collect_array(node: exp.Expr, query: Query) -> exp.Expr:
    """``array_agg``: it keeps NULLs, and of no rows it is NULL. Without an order, the values are
    sorted, so that there is one result."""
    elements = "CASE WHEN CARDINALITY(_a) > 0 THEN TRANSFORM(_a, st_e -> st_e.v) END"
    return mark_composite(from_template(elements, a=_list(node, node.expressions[0], query)))


def _list(node: exp.Expr, argument: exp.Expr, query: Query) -> exp.Expr:
    """The values of a group in their order, each in a struct, which keeps NULLs."""
    order = argument if isinstance(argument, exp.Order) else None
    inner = order.this if order is not None else argument
    distinct = isinstance(inner, exp.Distinct)
    value = inner.expressions[0] if distinct else inner
    keys = order.expressions if order is not None else []
    parts, descending = _keys(node, keys, query)
    if distinct and [each.this for each in keys] == [value]:
        by_default = bool(keys[0].args.get("desc")) == bool(keys[0].args.get("nulls_first"))
        parts = [] if by_default else parts  # the values are sorted by themselves
    fields = [*parts, ("z", from_template("_v IS NULL", v=value)), ("v", value.copy())]
    struct = call("NAMED_STRUCT", *[e for name, each in fields for e in (name, each)])
    listed = mark_aggregate(call("COLLECT_SET" if distinct else "COLLECT_LIST", struct))
    if distinct and parts:
        raise query.refusal(node, "Spark cannot order distinct values by others",
                            "omit ORDER BY, or DISTINCT in a subquery")  # fmt: skip
    ascending = exp.false() if descending else exp.true()
    return from_template("SORT_ARRAY(_l, _o)", l=listed, o=ascending)


def _keys(
    node: exp.Expr, keys: list[exp.Expr], query: Query
) -> tuple[list[tuple[str, exp.Expr]], bool]:
    """The keys of an order as fields of a struct, and whether it descends."""
    directions = {bool(each.args.get("desc")) for each in keys}
    if len(directions) > 1:
        raise query.refusal(node, "Spark sorts all keys in one direction",
                            "negate a number, to turn its direction")  # fmt: skip
    descending = True in directions
    parts: list[tuple[str, exp.Expr]] = []
    for place, each in enumerate(keys):
        # Of FALSE and TRUE, TRUE comes last, and first where the order descends.
        nulls_last = not each.args.get("nulls_first")
        empty = "_k IS NULL" if nulls_last != descending else "_k IS NOT NULL"
        parts += [(f"n{place}", from_template(empty, k=each.this)), (f"k{place}", each.this.copy())]
    return parts, descending


def _json_array(node: exp.Expr, query: Query) -> exp.Expr:
    """``jsonb_agg``: an array of the values in their order."""
    query.note(TEXT)
    argument = node.expressions[0]
    inner = argument.this if isinstance(argument, exp.Order) else argument
    value = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
    each = apply_template(template_of(node, value, query), "st_e.v")
    template = f"CASE WHEN CARDINALITY(_a) > 0 THEN TO_JSON(TRANSFORM(_a, st_e -> {each})) END"
    return mark_composite(from_template(template, a=_list(node, argument, query)))


def _json_object(node: exp.Expr, query: Query) -> exp.Expr:
    """``jsonb_object_agg``: of rows with one key and several values, the last one would win in
    Postgres, and a group has no order; Spark fails then, as it does for a key that is NULL."""
    query.note(TEXT)
    key, value = node.expressions
    query.require(node, key, (Kind.STRING,), "Spark may write it differently", "cast it to TEXT")
    pair = call("NAMED_STRUCT", "k", key.copy(), "v", value.copy())
    each = apply_template(template_of(node, value, query), "st_e.v")
    entries = (
        "TRANSFORM(_l, st_e -> NAMED_STRUCT('k', st_e.k, 'v', "
        f"COALESCE(PARSE_JSON(SUBSTRING({_ALONE.format(each)}, 6, "
        f"LENGTH({_ALONE.format(each)}) - 6)), PARSE_JSON('null'))))"
    )
    listed = mark_aggregate(call("COLLECT_SET", pair))
    template = (
        "CASE WHEN CARDINALITY(_l) > 0 "
        f"THEN TO_JSON(TO_VARIANT_OBJECT(MAP_FROM_ENTRIES({entries}))) END"
    )
    return mark_composite(from_template(template, l=listed))


def percentile(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``percentile_disc`` of decimals, long numbers, dates and texts: one of the values."""
    inner = node.this
    if not isinstance(inner, exp.PercentileDisc):
        return None
    [ordered] = node.expression.expressions
    kind = query.kind(ordered.this)
    if kind in (Kind.INT, Kind.DOUBLE, Kind.FLOAT, Kind.UNKNOWN):
        return None
    part = inner.this
    if query.kind(part) not in (*WHOLE, Kind.DECIMAL):
        raise query.refusal(node, "Spark needs one fraction", "write a constant such as 0.5")
    listed = mark_aggregate(call("COLLECT_LIST", ordered.this.copy()))
    counted = mark_aggregate(exp.Count(this=ordered.this.copy(), big_int=True))
    ascending = exp.false() if ordered.args.get("desc") else exp.true()
    template = (
        "GET(SORT_ARRAY(_l, _o), GREATEST(CAST(CEIL(CAST(_p AS DOUBLE) * _n) AS INT) - 1, 0))"
    )
    return mark_composite(from_template(template, l=listed, o=ascending, p=part, n=counted))


def fraction(node: exp.Expr, query: Query, *, name: str) -> exp.Expr | None:
    """``percentile_…``; `percentile` rewrites what Spark's does not do."""
    group = node.parent
    if not isinstance(group, exp.WithinGroup):
        raise query.no_rule_error(node)
    kind = query.kind(group.expression.expressions[0].this)
    if name == "PERCENTILE_DISC" and kind not in (Kind.INT, Kind.DOUBLE, Kind.FLOAT):
        return None
    return function_rules.ordered_set(node, query, name=name)


RULES: Rules = {
    exp.Filter: spread_over_aggregates, exp.Window: spread_over_aggregates,
    exp.WithinGroup: percentile,
    exp.PercentileCont: partial(fraction, name="PERCENTILE_CONT"),
    exp.PercentileDisc: partial(fraction, name="PERCENTILE_DISC"),
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "every": template_rule("BOOL_AND(_x)"), "array_agg": collect_array, "json_agg": _json_array,
    "jsonb_agg": _json_array, "json_object_agg": _json_object, "jsonb_object_agg": _json_object,
}  # fmt: skip
