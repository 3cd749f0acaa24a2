"""Top: the first rows of an order, after some that are left out.

    Δ τ(R) = τ(R⁺) − τ(R⁻)        if anything changed, copies that come and go apart

The keyed law with one group for all rows: which rows are first depends on all of them. Rows that
the order does not tell apart are told apart by all their columns, or the answer would be another
one each time; `determine` has seen to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import (
    column,
    select,
    table,
)
from dagster_streamtables.compiler.operators.net import Net
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Top(Operator):
    input: Operator
    order: tuple[exp.Expr, ...]
    limit: exp.Expr | None
    offset: exp.Expr | None = None

    __hash__ = Step.__hash__
    law: ClassVar[str] = "keyed"
    cost: ClassVar[str] = "all rows, as they are and as they were"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def delta(self) -> Operator:
        change = Net(self.input.change)
        now, then = self.input.after.only(change, ()), self.input.before.only(change, ())
        return self.over(now) - self.over(then)

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        query = select(*map(column, self.schema)).from_(table(rows), copy=False)
        query = query.order_by(*(each.copy() for each in self.order), copy=False)
        query = query.limit(self.limit.copy(), copy=False) if self.limit is not None else query
        return query.offset(self.offset.copy()) if self.offset is not None else query

    def explain(self) -> str:
        order = ", ".join(each.sql("spark") for each in self.order)
        limit = "all" if self.limit is None else self.limit.sql("spark")
        after = "" if self.offset is None else f" after {self.offset.sql('spark')}"
        return f"Top {limit}{after} by {order}"
