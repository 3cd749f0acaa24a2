"""Net: add up the weights of equal rows, and drop the rows that cancel.

    net(ΔR) = ΔR

It is the same weighted relation with the fewest rows. NULLs equal each other here, as in GROUP BY;
the two zeros of floats do not, see `zeros`, nor do maps with another order of entries, see
`comparable`.

Most rules work on repeated rows. A change is netted at its end, and if only rows that were really
inserted or deleted may touch others.

It is also netted before an expression that can fail. It may contain rows that never existed for a
reader: a row inserted and deleted between two refreshes, or derived once with each sign.
They cancel in the end, but 1/x fails on the way. The rows left exist before or after, and the query
evaluates them too. Netting costs a grouping, so it is not done before a sum or a product. If one of
those fails on a row that never existed, the refresh runs the query in full, and reports only that
query's errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import LinearOperator, Operator, Step
from dagster_streamtables.compiler.operators.comparable import (
    comparable,
    has_form,
    has_zeros,
    zeros,
)
from dagster_streamtables.compiler.operators.sql_builders import (
    as_column,
    as_weight,
    column,
    select,
    table,
    weight_column,
)


@dataclass(frozen=True, eq=False)
class Net(LinearOperator):
    weighted: ClassVar[bool] = True

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        floats = {name: type_ for name, type_ in self.schema.items() if has_zeros(type_)}
        changed = {*floats, *(name for name, type_ in self.schema.items() if has_form(type_))}
        keys = [comparable(column(name), type_) for name, type_ in self.schema.items()]
        apart = [zeros(column(name), type_) for name, type_ in floats.items()]
        shown = [
            as_column(exp.AnyValue(this=column(name)), name) if name in changed else column(name)
            for name in self.schema
        ]
        one = exp.Literal.number(1)
        total = exp.Sum(this=weight_column() if self.input.has_weight_column else one)
        weight = as_weight(exp.cast(total.copy(), "BIGINT"))
        some = exp.NEQ(this=total, expression=exp.Literal.number(0))
        query = select(*shown, weight).from_(table(rows), copy=False)
        query = query.group_by(*keys, *apart, copy=False)
        return query.having(some, copy=False)

    def explain(self) -> str:
        return "Net"


def can_net(rows: Step) -> bool:
    """Whether Spark can group by all columns, as far as their types are known."""
    types = (part.this for type_ in rows.schema.values() for part in type_.find_all(exp.DataType))
    return bool(rows.schema) and exp.DType.OBJECT not in types


_SAFE = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple),
    *(exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Case, exp.If),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Coalesce, exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Concat, exp.DPipe),
    *(exp.Nullif, exp.Length, exp.Year, exp.Month, exp.Day, exp.DataType, exp.Collate, exp.Var),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Greatest, exp.Least)
"""These fail only on overflow."""
_INTEGERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_FLOATS = (exp.DType.FLOAT, exp.DType.DOUBLE)
_DAYS = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ)
_WORDS = (exp.DType.TEXT, exp.DType.VARCHAR)


def cannot_fail(expression: exp.Expr) -> bool:
    """Whether the expression has a value for every possible row."""
    return all(
        isinstance(node, _SAFE) or _is_wider(node) or _is_constant(node)
        for node in expression.walk()
    )


def _is_wider(node: exp.Expr) -> bool:
    """Whether it is a cast that succeeds for every value of the source type."""
    if not isinstance(node, exp.Cast):
        return False
    source = node.this.type.this if node.this.type else None
    target = node.to.this
    orders = ((*_INTEGERS, *_FLOATS), (exp.DType.DECIMAL, *_FLOATS))
    return (
        bool(node.args.get("safe"))  # TRY_CAST, which shares a class with CAST in sqlglot
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
    """Whether it is part of an expression without columns, which fails for all rows or none."""
    around = node
    while not isinstance(around.parent, _SAFE) and around.parent is not None:
        around = around.parent
    return around.find(exp.Column) is None


def _is_try(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower().startswith("try_")


def before_failing(rows: Operator, expressions: Iterable[exp.Expr]) -> Operator:
    """The change of `rows`, netted if an expression is more likely to fail than a sum."""
    likely = any(_is_likely(node) for expression in expressions for node in expression.walk())
    return Net(rows.change) if likely and can_net(rows) else rows.change


def _is_likely(node: exp.Expr) -> bool:
    unlikely = isinstance(node, (*_SAFE, *_ARITHMETIC)) or _is_wider(node) or _is_try(node)
    return not unlikely and not _is_constant(node)
