"""Join: pair the rows of two inputs that satisfy a condition.

    Δ(L ⋈ R) = ΔL ⋈ R⁺ + L⁻ ⋈ ΔR          L⁻ before the change, R⁺ after it

The weight of a pair is the product of its rows' weights, so ⋈ multiplies out like a product:

    (L⁻ + ΔL) ⋈ (R⁻ + ΔR)  -  L⁻ ⋈ R⁻  =  ΔL ⋈ R⁻ + L⁻ ⋈ ΔR + ΔL ⋈ ΔR

and ``R⁺ = R⁻ + ΔR`` folds the first and the last term into one. Reading both sides *after* would
count the pairs of two new rows twice; reading both *before* would miss them.

Delta tables keep the version before the change readable, so ``L⁻`` is a scan, not a
reconstruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.sql_builders import (
    as_weight,
    broadcast,
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True, eq=False)
class Join(Operator):
    left: Operator
    right: Operator
    condition: exp.Expr
    small: str = ""
    """The side that is known to have few rows, ``l`` or ``r``; empty if neither is."""

    law: ClassVar[str] = "bilinear"
    cost: ClassVar[str] = "the change, joined with the other side"

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, **self.right.schema}

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return len(inputs) == 1

    def empty_if(self, *inputs: bool) -> bool:
        return any(inputs)

    def delta(self) -> Operator:
        left, right = self.left, self.right
        return self.over(left.change, right.after) + self.over(left.before, right.change)

    def select(self, *inputs: str) -> exp.Query:
        left, right = inputs
        sides = zip("lr", (self.left, self.right), strict=True)
        weights = [weight_column(side) for side, operator in sides if operator.has_weight_column]
        columns = [column(name) for name in self.schema]
        if weights:
            # At most one: the rule pairs a change with a table, never with another change.
            [weight] = weights
            columns = [*columns, as_weight(weight)]
        query = select(*(columns or [exp.Literal.number(1)])).from_(table(left, "l"), copy=False)
        query = query.join(table(right, "r"), on=self.condition.copy(), copy=False)
        return broadcast(query, self.small) if self.small else query

    def explain(self) -> str:
        return f"Join on {self.condition.sql('spark')}"
