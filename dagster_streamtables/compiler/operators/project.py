"""Project: compute columns.

    Δ π_e(R) = π_e(ΔR)

Rows that become equal are not merged: two rows of weight 1 mean the same as one of weight 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import (
    as_column,
    select,
    table,
    type_of,
    weight_column,
)
from dagster_streamtables.compiler.operators.failing import before_failing
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Project(Operator):
    input: Operator
    outputs: tuple[tuple[str, exp.Expr], ...]

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return {name: type_of(expression) for name, expression in self.outputs}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        return dict(self.outputs)

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        return self.over(before_failing(self.input, (e for _, e in self.outputs)))

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        outputs = [as_column(expression, name) for name, expression in self.outputs]
        if self.has_weight_column:
            outputs.append(weight_column())
        return select(*(outputs or [exp.Literal.number(1)])).from_(table(rows), copy=False)

    def explain(self) -> str:
        return "Project " + ", ".join(
            name if isinstance(e, exp.Column) and e.name == name else f"{e.sql('spark')} AS {name}"
            for name, e in self.outputs
        )
