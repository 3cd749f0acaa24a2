"""Joins in parentheses: a JOIN (b JOIN c ON q) ON p, written as one chain.

Inner joins are associative, so their parentheses come off: ``a JOIN b ON true JOIN c ON q WHERE
p``. Of others, the join remembers how many of those after it belong to its right side:

    a LEFT JOIN b ON p JOIN c ON q        with 1 after LEFT JOIN: a LEFT JOIN (b JOIN c ON q) ON p
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.scope.scopes import HALF
from dagster_streamtables.compiler.text.tables import is_group

_INSIDE = "st_joins_inside"


def joins_inside(join: exp.Join) -> int:
    """The number of joins after this one that belong to its right side."""
    return int(join.meta.get(_INSIDE, 0))


def desugar_parentheses(tree: exp.Query) -> None:
    """Write parentheses that have a name of their own as a subquery, and superfluous ones once.

    (a JOIN b ON p) AS t       (SELECT * FROM a JOIN b ON p) AS t
    ((SELECT …))               (SELECT …)
    a, LATERAL (SELECT …)      a, LATERAL (SELECT …) AS st_lateral_0
    FROM LATERAL (SELECT …)    FROM (SELECT …)
    """
    laterals = [each for each in tree.find_all(exp.Lateral) if isinstance(each.this, exp.Subquery)]
    for number, lateral in enumerate(laterals):
        if isinstance(lateral.parent, exp.From):
            lateral.replace(exp.Subquery(this=lateral.this.this, **_after(lateral)))
        elif not lateral.alias:
            alias = lateral.args.get("alias") or exp.TableAlias()
            alias.set("this", exp.to_identifier(f"st_lateral_{number}", quoted=True))
            lateral.set("alias", alias)
    for relation in reversed(list(tree.find_all(exp.Subquery))):
        inner, around = relation.this, relation.parent
        while isinstance(around, exp.Subquery):
            around = around.parent
        is_relation = isinstance(around, exp.From | exp.Join | exp.Lateral)
        if not is_relation or not isinstance(inner, exp.Table | exp.Subquery):
            continue
        if relation.alias:
            select = exp.select("*").from_(inner, copy=False)
            select.set("joins", _detach_joins(inner))
            relation.set("this", select)
        elif isinstance(inner, exp.Subquery) and not (inner.alias or relation.args.get("joins")):
            relation.replace(inner)


def _after(relation: exp.Expr) -> dict[str, object]:
    """What is written after a relation."""
    return {each: relation.args.get(each) for each in ("alias", "joins", "laterals")}


def flatten_joins(select: exp.Select) -> None:
    """Write the joins in parentheses of one FROM as one chain."""
    clause = select.args.get("from_")
    joins: list[exp.Join] = list(select.args.get("joins") or [])
    while clause is not None and is_group(clause.this):
        inner = clause.this.this
        joins = [*_detach_joins(inner), *_detach_joins(clause.this), *joins]
        clause.set("this", inner)
    if clause is not None:
        # Of FROM t JOIN u SELECT …, which sqlglot puts into the first table.
        joins = [*_detach_joins(clause.this), *joins]
        laterals = clause.this.args.get("laterals")
        clause.this.set("laterals", None)
        select.set("laterals", [*(laterals or []), *(select.args.get("laterals") or [])])
    chained = [each for join in joins for each in _flatten_join(join)]
    if any(map(joins_inside, chained)) and _are_plain(chained):
        for join in chained:
            _take_off(join, select)
    if chained:
        select.set("joins", chained)


def _detach_joins(relation: exp.Expr) -> list[exp.Join]:
    """The joins of a relation, taken from it."""
    joins = list(relation.args.get("joins") or [])
    relation.set("joins", None)
    return joins


def _flatten_join(join: exp.Join) -> list[exp.Join]:
    """A join, and those in its parentheses after it."""
    if not is_group(join.this):
        return [join]
    inner = join.this.this
    inside = [
        each
        for one in (*_detach_joins(inner), *_detach_joins(join.this))
        for each in _flatten_join(one)
    ]
    join.set("this", inner)
    join.meta[_INSIDE] = len(inside)
    return [join, *inside]


def _are_plain(joins: list[exp.Join]) -> bool:
    """Whether all are inner joins, so that the parentheses say nothing."""
    return not any(each.side or each.kind in HALF for each in joins)


def _take_off(join: exp.Join, select: exp.Select) -> None:
    """Ask the condition of a join with parentheses once all their tables are joined."""
    if join.meta.pop(_INSIDE, 0):
        condition = join.args.get("on")
        join.set("on", exp.true())
        if condition is not None:
            select.where(condition, copy=False)
