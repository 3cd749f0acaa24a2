"""Which expressions can raise an error, and the rows that one may be asked of.

A change is sums and differences of rows, and may hold rows that no reader ever saw: a row that came
and went within the window, or the pair of a row that went with a row that came, once with each
sign. They cancel in the end, but 1/x fails on the way. So before an expression that can fail, the
change is netted: what is left was there before, or is there after, and the query itself asks it.

That costs a grouping, so it is not done before a sum or a product. If one of them
fails on a row that never was, the refresh runs the query in full, and only its errors are told.
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
    *(exp.Nullif, exp.Length, exp.Year, exp.Month, exp.Day, exp.DataType),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Greatest, exp.Least)
"""They fail only where a number leaves its type."""
_INTEGERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_FLOATS = (exp.DType.FLOAT, exp.DType.DOUBLE)
_DAYS = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ)
_WORDS = (exp.DType.TEXT, exp.DType.VARCHAR)


def cannot_fail(expression: exp.Expr) -> bool:
    """Whether the expression has a value for every row, whatever is in it."""
    return all(
        isinstance(node, _SAFE) or _is_wider(node) or _is_constant(node)
        for node in expression.walk()
    )


def _is_wider(node: exp.Expr) -> bool:
    """Whether it is a cast whose type has a value for every value of the type before."""
    if not isinstance(node, exp.Cast):
        return False
    source = node.this.type.this if node.this.type else None
    target = node.to.this
    orders = ((*_INTEGERS, *_FLOATS), (exp.DType.DECIMAL, *_FLOATS))
    return (
        bool(node.args.get("safe"))  # TRY_CAST; sqlglot has one class for it and Spark's CAST
        or target in _WORDS
        or (source in _DAYS and target in _DAYS)
        or (node.this.type == node.to)
        or any(
            source in order and target in order and order.index(source) <= order.index(target)
            for order in orders
            if not source == target == exp.DType.DECIMAL
        )
    )


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
    likely = any(_is_likely(node) for expression in expressions for node in expression.walk())
    return Net(rows.change) if likely and can_net(rows) else rows.change


def _is_likely(node: exp.Expr) -> bool:
    unlikely = isinstance(node, (*_SAFE, *_ARITHMETIC)) or _is_wider(node) or _is_try(node)
    return not unlikely and not _is_constant(node)
