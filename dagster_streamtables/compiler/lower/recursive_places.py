"""Where Spark takes no reference of a recursion to itself.

Its step may join the table with itself, and look for rows in it; but what combines all rows, such
as an aggregate, is refused when the query is analyzed (INVALID_RECURSIVE_REFERENCE.PLACE).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dagster_streamtables.compiler.analyze.joins_in_parentheses import kind_of
from dagster_streamtables.compiler.scope.from_columns import HALF
from dagster_streamtables.compiler.text.aggregate_calls import is_grouped


def forbidden_place(step: exp.Expr, name: str) -> str:
    """How a message calls the first such place in a branch; empty if there is none.

    Args:
        step: A branch that reads the table.
        name: The name of the table.
    """
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
        kind = kind_of(joins[at])
        if joins[at].side == "LEFT" or kind in HALF:
            yield f"on the right side of a {kind or 'LEFT'} JOIN"
    for join in joins[max(at, 0) :]:
        if join.side == "FULL":
            yield "in a FULL JOIN"
        if join.side == "RIGHT" and join is not source:
            yield "on the left side of a RIGHT JOIN"
    if is_grouped(select):
        yield "in an aggregate"
    if any(True for _ in _windows(select)):
        yield "in a window function"
    if select.args.get("order"):
        yield "under ORDER BY"


def _windows(select: exp.Select) -> Iterator[exp.Expr]:
    for part in (*select.expressions, select.args.get("qualify")):
        if part is not None:
            yield from (each for each in part.walk() if isinstance(each, exp.Window))
