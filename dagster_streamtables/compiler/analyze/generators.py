"""A table function in a SELECT list becomes a LATERAL VIEW, which runs before the other items.

SELECT id, explode(tags) AS e FROM t        SELECT id, e FROM t LATERAL VIEW explode(tags) g AS e
SELECT explode(o.tags) AS e                 SELECT e FROM explode(o.tags) AS g(e), since o may be
                                                a table of the query around
SELECT k, explode(collect_list(x)) AS e     SELECT k, e FROM (SELECT k, collect_list(x) AS x FROM t
    FROM t GROUP BY k                           GROUP BY k) LATERAL VIEW explode(x) g AS e
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.aggregate_calls import is_grouped
from dagster_streamtables.compiler.text.output_names import columns_of_call, name_of_call
from dagster_streamtables.compiler.text.refusal import Refusal

_MADE = "st_generated"
_GROUPS = "st_groups"


def open_generator(select: exp.Select, columns: Mapping[str, str]) -> None:
    """Move the table function out of a SELECT list.

    Args:
        select: Of it, one item is a table function, or none.
        columns: All columns of all sources, and their types.
    """
    for place, item in enumerate(select.expressions):
        call = item.unalias() if isinstance(item, exp.Alias) else item
        call = call.this if isinstance(call, exp.Aliases) else call
        if name_of_call(call) not in spark_functions.TABLE_VALUED:
            continue
        aliased = isinstance(item, exp.Aliases)
        names = [each.name for each in item.expressions] if aliased else [item.alias]
        names = names if any(names) else columns_of_call(call, columns)
        if is_grouped(select):
            call = _over_groups(select, place, call, names)
        _become_view(select, place, call, names)
        return


def _become_view(select: exp.Select, place: int, call: exp.Expr, names: list[str]) -> None:
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    alias = exp.TableAlias(this=exp.to_identifier(_MADE), columns=columns)
    made = [
        exp.alias_(exp.column(name, table=_MADE, quoted=True), name, quoted=True) for name in names
    ]
    items = select.expressions
    select.set("expressions", [*items[:place], *made, *items[place + 1 :]])
    if select.args.get("from_") is None:
        select.set("from_", exp.From(this=exp.Table(this=call.copy(), alias=alias)))
    else:
        select.append("laterals", exp.Lateral(this=call.copy(), view=True, alias=alias))


def _over_groups(select: exp.Select, place: int, call: exp.Expr, made_names: list[str]) -> exp.Expr:
    """Put the groups of a SELECT into a subquery; the call, over the columns of that.

    At the place of the call, the subquery has its first argument, so that the numbers in GROUP BY
    mean the same.
    """
    _require_simple(select, made_names)
    arguments = [each for each in call.iter_expressions() if each.find(exp.Column)]
    inner = select.copy()
    for clause in ("with_", "distinct", "order", "limit", "offset"):
        inner.set(clause, None)
    items = [each.unalias().copy() for each in select.expressions]
    listed = [*items[:place], *arguments[:1], *items[place + 1 :], *arguments[1:]]
    named = [exp.alias_(each.copy(), f"st_{i}", quoted=True) for i, each in enumerate(listed)]
    inner.set("expressions", named)
    after = iter([place, *range(len(items), len(listed))])
    held = {id(each): exp.column(f"st_{next(after)}", table=_GROUPS) for each in arguments}
    made = call.copy()
    for old, new in zip(call.iter_expressions(), list(made.iter_expressions()), strict=True):
        if id(old) in held:
            new.replace(held[id(old)])
    outputs = [
        exp.alias_(exp.column(f"st_{i}", table=_GROUPS), each.alias_or_name, quoted=True)
        for i, each in enumerate(select.expressions)
    ]
    for clause in ("joins", "laterals", "where", "group", "having", "windows"):
        select.set(clause, None)
    select.set("expressions", outputs)
    select.set("from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(
        this=exp.to_identifier(_GROUPS)
    ))))  # fmt: skip
    return made


def _require_simple(select: exp.Select, made: list[str]) -> None:
    """Require that what comes after GROUP BY reads the result only."""
    names = {each.lower() for each in (*select.named_selects, *made)}
    order = select.args.get("order")
    ordered = [each.this for each in order.expressions] if order is not None else []
    beside = [
        each
        for each in ordered
        if not each.is_int and not (isinstance(each, exp.Column) and each.name.lower() in names)
    ]
    stars = [each for each in select.expressions if each.is_star]
    clauses = [select.args.get(each) for each in ("having", "qualify")]
    others = [each for each in (*clauses, select.find(exp.Window)) if each is not None]
    if found := [*beside, *stars, *others]:
        raise Refusal(
            found[0],
            "a table function over groups, beside HAVING, a window or an order",
            why="that would come after the function, and Spark takes little of it there",
            fix="group in a subquery, and apply the function to its result",
        )
