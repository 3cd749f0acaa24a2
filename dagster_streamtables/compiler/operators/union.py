"""Union: the rows of both inputs; the user's own UNION ALL.

    Δ(L ∪ R) = ΔL ∪ ΔR

As a relation this is `Sum`, but it also determines types: a column has the common type of both
sides, which only Spark knows. If only one side changed, the other stays as a side without rows;
otherwise a column could be INT in one refresh and BIGINT in the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator, Sum
from dagster_streamtables.compiler.operators.columns import (
    as_weight,
    column,
    select,
    table,
)
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Sides:
    left: Operator
    right: Operator


@dataclass(frozen=True)
class Union(Sum):
    sides: Sides | None = None
    """In a change: the union's inputs, for their types."""

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        sides = Sides(self.left.after, self.right.after)
        return Union(self.left.change, self.right.change, sides)

    def explain(self) -> str:
        return "Union"


@dataclass(frozen=True)
class Typed(Step):
    """The columns of a relation without its rows."""

    input: Step

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def has_weight_column(self) -> bool:
        return True

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        weight = as_weight(exp.cast(exp.null(), "BIGINT"))
        return (
            select(*map(column, self.schema), weight)
            .from_(table(rows), copy=False)
            .where(exp.false(), copy=False)
        )

    def explain(self) -> str:
        return "No rows, for their types"
