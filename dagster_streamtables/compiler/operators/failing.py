"""Which expressions can raise an error, and the rows that one may be asked of.

A change is sums and differences of rows, and may hold rows that no reader ever saw: a row that came
and went within the window, or the pair of a row that went with a row that came, once with each
sign. They cancel in the end, but 1/x fails on the way. So before an expression that can fail, the
change is netted: what is left was there before, or is there after, and the query itself asks it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.net import Net, can_net

_SAFE = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple),
    *(exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Case, exp.If),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Coalesce, exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Concat, exp.DPipe),
    *(exp.Nullif, exp.Length, exp.Year, exp.Month, exp.Day, exp.TryCast, exp.DataType),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Greatest, exp.Least)
"""They fail only where a number leaves its type."""


def cannot_fail(expression: exp.Expr) -> bool:
    """Whether the expression has a value for every row, whatever is in it."""
    return all(isinstance(node, _SAFE) or _is_constant(node) for node in expression.walk())


def _is_constant(node: exp.Expr) -> bool:
    """Part of an expression without columns, which has its value or fails for all rows alike."""
    around = node
    while not isinstance(around.parent, _SAFE) and around.parent is not None:
        around = around.parent
    return around.find(exp.Column) is None


def _is_try(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower().startswith("try_")


def before_failing(rows: Operator, expressions: Iterable[exp.Expr]) -> Operator:
    """The change of `rows`, netted if one of the expressions is more likely to fail than a sum."""
    likely = any(
        not isinstance(node, (*_SAFE, *_ARITHMETIC))
        and not _is_try(node)
        and not _is_constant(node)
        for expression in expressions
        for node in expression.walk()
    )
    if not likely or not can_net(rows):
        return rows.change
    return Net(rows.change)
