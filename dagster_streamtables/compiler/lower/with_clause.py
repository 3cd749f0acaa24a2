"""WITH, and WITH RECURSIVE: the branches that mention the table itself are the step of a recursion.

A step may join the table with itself and look for rows in it. Spark refuses steps that combine all
rows, such as an aggregate, when it analyzes the query (INVALID_RECURSIVE_REFERENCE.PLACE);
`forbidden_place` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.operators.algebra import Operator, Union, walk
from dagster_streamtables.compiler.operators.recursion import Closure, Recursion, Reference, Rounds
from dagster_streamtables.compiler.scope.scopes import HALF
from dagster_streamtables.compiler.text.group_by import has_groups
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.strict_parser import rounds_of

LowerQuery = Callable[[exp.Expr, Scope], Operator]


def add_ctes(query: exp.Expr, scope: Scope, lower_query: LowerQuery) -> Scope:
    """The scope in which a query sees the tables that its WITH defines."""
    clause = query.args.get("with_") or exp.With(expressions=[])
    for cte in clause.expressions:
        rows = _recursive(cte, scope, lower_query) if clause.recursive else None
        rows = rows or lower_query(cte.this, scope.apart())
        scope = replace(scope, shared={**scope.shared, cte.alias: rows})
    return scope


def _recursive(cte: exp.CTE, scope: Scope, lower_query: LowerQuery) -> Operator | None:
    """The rows of a recursive common table expression; None if it does not read itself."""
    arms = _arms(cte.this, cte.alias)
    steps = [arm for arm in arms if _mentions(arm, cte.alias)]
    if not steps:
        return None
    if cte.this.args.get("limit") or cte.this.args.get("offset"):
        raise Refusal(
            cte,
            "Spark has no LIMIT in a recursion",
            why="the query must be Spark SQL, in mode FULL too",
            fix="write it after the recursion: SELECT … FROM it ORDER BY … LIMIT …",
        )
    bases = [arm for arm in arms if arm not in steps]
    if not bases:
        raise Refusal(
            cte,
            "a recursion without a base is not maintained",
            why="it has no first rows",
            fix="add a branch that does not read the recursion",
        )
    base = reduce(Union, (lower_query(arm, scope.apart()) for arm in bases))
    columns = tuple(base.schema.items())
    reference = Reference(scope.unique_name(cte.alias), columns, rounds=rounds_of(cte))
    inside = replace(scope.apart(), shared={**scope.shared, cte.alias: reference})
    step = reduce(Union, (lower_query(arm, inside) for arm in steps))
    if _is_linear(step):
        return (Closure if _is_set(cte) else Recursion)(base, step, reference)
    _require_rounds(cte, steps, step)
    return Rounds(base, step, reference)


def _require_rounds(cte: exp.CTE, arms: list[exp.Expr], step: Operator) -> None:
    """Require that Spark runs a recursion whose step combines the rows of a round."""
    if _is_set(cte):
        raise Refusal(
            cte,
            "a recursion by UNION whose step combines its own rows",
            why="Spark has no recursion by UNION, and what such a step returns depends on whether "
            "it reads the rows of the last round or all of them",
            fix="write UNION ALL, whose step reads the rows of the last round, or name the "
            "recursion only once in its step",
        )
    place = next(filter(None, (forbidden_place(arm, cte.alias) for arm in arms)), "")
    if place:
        raise Refusal(
            cte,
            f"Spark reads no recursion {place}",
            why="the query must be Spark SQL, in mode FULL too",
            fix="combine the rows after the recursion: SELECT … FROM it",
        )
    if any(isinstance(each, Closure) and each.open for each in walk(step)):
        raise Refusal(
            cte,
            "a recursion by UNION over the rows of another one's round",
            why="Spark has no recursion by UNION, and reads the other one as it is written",
            fix="write UNION ALL in the inner recursion",
        )


def _arms(query: exp.Expr, name: str) -> list[exp.Expr]:
    if isinstance(query, exp.Union) and (_mentions(query, name) or not query.args["distinct"]):
        return [*_arms(query.left, name), *_arms(query.right, name)]
    return [query]


def _is_set(cte: exp.CTE) -> bool:
    """Whether the recursion removes duplicates (UNION)."""
    kinds = {bool(union.args["distinct"]) for union in _unions(cte.this, cte.alias)}
    if len(kinds) > 1:
        raise Refusal(
            cte,
            "a recursion by UNION and UNION ALL is not maintained",
            why="it is unclear which one applies",
            fix="write UNION between all branches, or UNION ALL",
        )
    return True in kinds


def _unions(query: exp.Expr, name: str) -> Iterator[exp.Union]:
    """The unions between the branches of a recursion."""
    if isinstance(query, exp.Union) and _mentions(query, name):
        yield query
        yield from _unions(query.left, name)
        yield from _unions(query.right, name)


def _mentions(query: exp.Expr, name: str) -> bool:
    return any(table.name == name and not table.db for table in query.find_all(exp.Table))


def _is_linear(step: Operator) -> bool:
    """Whether the rows derived from a row do not depend on other rows of the recursion."""
    if isinstance(step, Reference) or not step.open:
        return True
    opened = [each for each in step.inputs if each.open]
    below = (each for each in opened if isinstance(each, Operator))
    return step.is_linear_in(opened) and all(map(_is_linear, below))


def forbidden_place(step: exp.Expr, name: str) -> str:
    """The first place in a branch in which Spark reads no recursion, in words; empty if none."""
    mentions = (table for table in step.find_all(exp.Table) if table.name == name and not table.db)
    return next((place for each in mentions for place in _places(each, step)), "")


def _places(mention: exp.Expr, step: exp.Expr) -> Iterator[str]:
    node: exp.Expr = mention
    while node is not step and node.parent is not None:
        around = node.parent
        if isinstance(around, exp.Select) and node.arg_key in ("from_", "joins", "laterals"):
            yield from _in_select(around, node)
        node = around


def _in_select(select: exp.Select, source: exp.Expr) -> Iterator[str]:
    """The places that the rows of a part of FROM come to."""
    joins: list[exp.Join] = select.args.get("joins") or []
    at = next((i for i, each in enumerate(joins) if each is source), -1)
    if at >= 0:
        kind = joins[at].kind
        if joins[at].side == "LEFT" or kind in HALF:
            yield f"on the right side of a {kind or 'LEFT'} JOIN"
    for join in joins[max(at, 0) :]:
        if join.side == "FULL":
            yield "in a FULL JOIN"
        if join.side == "RIGHT" and join is not source:
            yield "on the left side of a RIGHT JOIN"
    if has_groups(select):
        yield "in an aggregate"
    outputs = (*select.expressions, select.args.get("qualify"))
    if any(part is not None and part.find(exp.Window) for part in outputs):
        yield "in a window function"
    if select.args.get("order"):
        yield "under ORDER BY"
