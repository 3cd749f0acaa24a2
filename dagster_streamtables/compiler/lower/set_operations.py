"""UNION, INTERSECT and EXCEPT, with and without ALL.

    L ∩ R, L − R      γ over both, every row marked with its side and counted there

How often a row is in the result depends only on its counts in both sides, so INTERSECT and EXCEPT
are maintained as an aggregate.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.operators import (
    Aggregate,
    Filter,
    Operator,
    Project,
    Unfold,
    Union,
    column,
    distinct,
    typed,
)

_NUMBER = exp.DataType.build("int")
_LEFT, _RIGHT = "in left", "in right"


def has_parentheses_below(tree: exp.Expr) -> bool:
    """Whether a subquery has a set operation one of whose sides is in parentheses."""
    return any(
        isinstance(side, exp.Subquery)
        for each in tree.find_all(exp.SetOperation)
        if each.find_ancestor(exp.Subquery, exp.Exists, exp.In, exp.Lateral)
        for side in (each.left, each.right)
    )


def lower_set_operation(query: exp.SetOperation, left: Operator, right: Operator) -> Operator:
    if isinstance(query, exp.Union):
        rows = Union(left, right)
        return distinct(rows) if query.args["distinct"] else rows
    counted = _count_sides(left, right)
    in_left, in_right = column(_LEFT), column(_RIGHT)
    zero, one = exp.Literal.number(0), exp.Literal.number(1)
    except_ = isinstance(query, exp.Except)
    if query.args["distinct"]:
        there = exp.GT(this=in_left, expression=zero)
        other = (exp.EQ if except_ else exp.GT)(this=in_right, expression=zero.copy())
        rows = Filter(counted, exp.and_(there, other))
    else:
        copies = (
            exp.Sub(this=in_left, expression=in_right)
            if except_
            else exp.Least(this=in_left, expressions=[in_right])
        )
        some = Filter(counted, exp.GT(this=copies.copy(), expression=zero))
        copies = exp.cast(copies, "INT")
        numbers = exp.Anonymous(this="sequence", expressions=[one, copies])
        rows = Unfold(some, exp.Explode(this=numbers), (("copy", _NUMBER),))
    return Project(rows, tuple((n, typed(column(n), t)) for n, t in left.schema.items()))


def _count_sides(left: Operator, right: Operator) -> Operator:
    both = Union(_mark_side(left, left, 1, 0), _mark_side(right, left, 0, 1))
    counts = ((name, exp.Sum(this=column(name))) for name in (_LEFT, _RIGHT))
    return Aggregate(both, tuple(left.schema), tuple(counts))


def _mark_side(side: Operator, left: Operator, in_left: int, in_right: int) -> Operator:
    named = zip(left.schema, side.schema.items(), strict=True)
    rows = tuple((name, typed(column(n), t)) for name, (n, t) in named)
    marks = ((_LEFT, in_left), (_RIGHT, in_right))
    numbers = ((n, typed(exp.Literal.number(value), _NUMBER)) for n, value in marks)
    return Project(side, (*rows, *numbers))
