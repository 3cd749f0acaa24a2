"""Filter: keep the rows that satisfy a predicate.

    Δ σ_p(R) = σ_p(ΔR)

The predicate looks at one row at a time and leaves its weight alone, so it applies to inserted and
deleted rows just as to stored ones. An update is a deleted row and an inserted row; if only one of
the two satisfies the predicate, the result gains or loses a row, as it should.

The rule needs ``p(row)`` to be the same when the row is deleted as when it was inserted. `refuse`
rejects predicates for which it may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import select, table
from dagster_streamtables.compiler.operators.failing import before_failing
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Filter(Operator):
    input: Operator
    predicate: exp.Expr

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        return self.over(before_failing(self.input, [self.predicate]))

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        return (
            select(exp.Star())
            .from_(table(rows), copy=False)
            .where(self.predicate.copy(), copy=False)
        )

    def explain(self) -> str:
        return f"Filter {self.predicate.sql('spark')}"
