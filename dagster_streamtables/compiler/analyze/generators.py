"""A table function in a SELECT list becomes a LATERAL VIEW, which runs before the other items.

SELECT id, explode(tags) AS e FROM t        SELECT id, e FROM t LATERAL VIEW explode(tags) g AS e
SELECT explode(o.tags) AS e                 SELECT e FROM explode(o.tags) AS g(e), since o may be
                                                a table of the query around
SELECT k, explode(collect_list(x)) AS e     SELECT k, e FROM (SELECT k, collect_list(x) AS x FROM t
    FROM t GROUP BY k                           GROUP BY k) LATERAL VIEW explode(x) g AS e

Of groups, the windows of the list come before the function. QUALIFY comes after it, and reads
outputs, as ORDER BY does: that is Spark's order.

A table function in the FROM clause of a subquery takes columns of the query around.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.aggregate_calls import has_groups
from dagster_streamtables.compiler.text.output_names import columns_of_call, name_of_call
from dagster_streamtables.compiler.text.places import Refusal

_MADE = "st_generated"
_GROUPS = "st_groups"
_OF_GROUPS = (exp.Column, exp.AggFunc, exp.Window)


def desugar_generator(select: exp.Select, columns: Mapping[str, str]) -> None:
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
        if has_groups(select):
            call = _over_groups(select, place, call, names)
        _become_view(select, place, call, names)
        return


def _become_view(select: exp.Select, place: int, call: exp.Expr, names: list[str]) -> None:
    # Spark takes AS (n, n), and no reference to either.
    distinct = len({name.lower() for name in names}) == len(names)
    own = names if distinct else [f"st_made_{number}" for number in range(len(names))]
    columns = [exp.to_identifier(name, quoted=True) for name in own]
    alias = exp.TableAlias(this=exp.to_identifier(_MADE), columns=columns)
    made = [exp.column(name, table=_MADE, quoted=True) for name in own]
    items = select.expressions
    for item in items:
        if isinstance(item, exp.Star):  # its author meant the other relations
            item.set("except_", [*(item.args.get("except_") or []), *(m.copy() for m in made)])
    outputs = [exp.alias_(m, name, quoted=True) for m, name in zip(made, names, strict=True)]
    select.set("expressions", [*items[:place], *outputs, *items[place + 1 :]])
    if select.args.get("from_") is None:
        select.set("from_", exp.From(this=exp.Table(this=call.copy(), alias=alias)))
    else:
        select.append("laterals", exp.Lateral(this=call.copy(), view=True, alias=alias))


def _over_groups(select: exp.Select, place: int, call: exp.Expr, made_names: list[str]) -> exp.Expr:
    """Put the groups of a SELECT into a subquery; the call, over the columns of that.

    At the place of the call, the subquery has its first argument, so that the numbers in GROUP BY
    mean the same.
    """
    _require_outputs(select, made_names)
    arguments = [each for each in call.iter_expressions() if each.find(*_OF_GROUPS)]
    inner = select.copy()
    for clause in ("with_", "distinct", "qualify", "order", "limit", "offset"):
        inner.set(clause, None)
    items = [each.unalias().copy() for each in select.expressions]
    first = arguments[:1] or [exp.Literal.number(1)]
    listed = [*items[:place], *first, *items[place + 1 :], *arguments[1:]]
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
    found = {each.alias_or_name.lower(): each.unalias() for each in outputs}
    found |= {name.lower(): exp.column(name, table=_MADE, quoted=True) for name in made_names}
    _read_outputs(select, found)
    for clause in ("joins", "laterals", "where", "group", "windows"):
        select.set(clause, None)
    select.set("expressions", outputs)
    select.set("from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(
        this=exp.to_identifier(_GROUPS)
    ))))  # fmt: skip
    return made


def _read_outputs(select: exp.Select, outputs: Mapping[str, exp.Expr]) -> None:
    """Make QUALIFY a condition over outputs."""
    for column in list(_after(select, "qualify")):
        if isinstance(column, exp.Column):
            column.replace(outputs[column.name.lower()].copy())


def _after(select: exp.Select, *clauses: str) -> Iterator[exp.Expr]:
    """The columns and the aggregates of clauses, but for those of queries in them."""
    for each in filter(None, map(select.args.get, clauses)):
        for node in each.find_all(exp.Column, exp.AggFunc):
            if node.find_ancestor(exp.Query) is select and not isinstance(node.parent, exp.Window):
                yield node


def _require_outputs(select: exp.Select, made: list[str]) -> None:
    """Require that what comes after the function reads outputs only."""
    if (having := select.args.get("having")) is not None:
        raise Refusal(
            having,
            "HAVING beside a table function over groups",
            why="Spark runs it only as the whole of a query, of which nothing else can read",
            fix="group in a subquery, and apply the function to its result",
        )
    names = {each.lower() for each in (*select.named_selects, *made)}
    beside = [
        each
        for each in _after(select, "qualify", "order")
        if not isinstance(each, exp.Column) or each.name.lower() not in names
    ]
    stars = [each for each in select.expressions if each.is_star]
    windows = list(select.find_all(exp.Window)) if select.args.get("windows") else []
    named = [each for each in windows if each.find_ancestor(exp.Qualify)]
    if found := [*beside, *stars, *named]:
        raise Refusal(
            found[0],
            "a table function over groups, beside QUALIFY or ORDER BY over what is no output",
            why="that would come after the function, and Spark reads only outputs there",
            fix="group in a subquery, and apply the function to its result",
        )
