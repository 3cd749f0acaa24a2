"""Conditions of WHERE as far down as they go, so that FROM a, b WHERE a.x = b.x is a join.

    σ_p(L ⋈ R)  =  σ_p(L) ⋈ R      if p reads columns of L only
                =  L ⋈_p R          if it reads both

The change of a join reads its sides before and after, so what a condition leaves out is not worth
reading. A condition that could fail stays where it is: below, it would be asked of more rows.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.operators import Filter, Join, Operator, OuterJoin

_SAFE = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple),
    *(exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Coalesce, exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Concat, exp.DPipe),
)


def filtered(rows: Operator, conditions: list[exp.Expr]) -> Operator:
    """The rows that satisfy all conditions."""
    stays: list[exp.Expr] = []
    for condition in conditions:
        lowered = _pushed(rows, condition) if _cannot_fail(condition) else None
        if lowered is None:
            stays.append(condition)
        else:
            rows = lowered
    return Filter(rows, exp.and_(*stays)) if stays else rows


def _pushed(rows: Operator, condition: exp.Expr) -> Operator | None:
    """The same rows with the condition inside; None where it has no place there."""
    names = {each.name for each in condition.find_all(exp.Column)}
    if isinstance(rows, Join | OuterJoin) and names <= set(rows.left.schema):
        return rows.over(_below(rows.left, condition), rows.right)
    if not isinstance(rows, Join):
        return None
    if names <= set(rows.right.schema):
        return rows.over(rows.left, _below(rows.right, condition))
    both = [each for each in (rows.condition, condition) if each != exp.true()]
    return Join(rows.left, rows.right, exp.and_(*both))


def _below(rows: Operator, condition: exp.Expr) -> Operator:
    lowered = _pushed(rows, condition)
    if lowered is not None:
        return lowered
    if isinstance(rows, Filter):
        return Filter(rows.input, exp.and_(rows.predicate, condition))
    return Filter(rows, condition)


def _cannot_fail(condition: exp.Expr) -> bool:
    for node in condition.walk():
        literal = isinstance(node, exp.Cast | exp.Interval | exp.Add | exp.Sub) and not node.find(
            exp.Column
        )
        inside = node.find_ancestor(exp.Cast, exp.Interval, exp.Add, exp.Sub)
        if not (literal or isinstance(node, _SAFE) or (inside and not inside.find(exp.Column))):
            return False
    return bool(condition.find(exp.Column))
