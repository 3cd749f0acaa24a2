"""Top: the first rows of an order (LIMIT), after skipping some (OFFSET).

    Δ τ(R) = τ(R⁺) − τ(R⁻)        if anything changed, after netting

The keyed law with one group: which rows are first depends on all rows. `make_deterministic` has
added all columns to the order to break ties; otherwise each run could return other rows.
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
    cost: ClassVar[str] = "all rows, before and after"

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
        if self.order:  # there is none where rows are alike
            query = query.order_by(*(each.copy() for each in self.order), copy=False)
        query = query.limit(self.limit.copy(), copy=False) if self.limit is not None else query
        return query.offset(self.offset.copy()) if self.offset is not None else query

    def explain(self) -> str:
        order = ", ".join(each.sql("spark") for each in self.order)
        limit = "all" if self.limit is None else self.limit.sql("spark")
        after = "" if self.offset is None else f" after {self.offset.sql('spark')}"
        return f"Top {limit}{after}" + f" by {order}" * bool(order)
