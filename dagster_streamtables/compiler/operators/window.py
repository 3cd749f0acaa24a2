"""Windowed: columns computed from the rows of the same partition.

    Δ ω(R) = ω(R⁺ ⋉ K) − ω(R⁻ ⋉ K)        K = the partitions that occur in ΔR

Whatever the function and the frame, a row's window columns depend only on the rows of its
partition. So the partitions that a change mentions are computed after it, to add, and before it,
to subtract. The cost is the size of the touched partitions. Without PARTITION BY there is one.

A window over another window is two operators, each with its own partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import (
    as_column,
    column,
    select,
    table,
    type_of,
)
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Windowed(Operator):
    input: Operator
    keys: tuple[str, ...]
    outputs: tuple[tuple[str, exp.Expr], ...]
    """Name and call with its OVER clause, whose PARTITION BY lists `keys`."""

    __hash__ = Step.__hash__
    law: ClassVar[str] = "keyed"
    cost: ClassVar[str] = "the touched partitions, before and after"

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, **{name: type_of(call) for name, call in self.outputs}}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        return dict(self.outputs)

    def delta(self) -> Operator:
        change = self.input.change
        now = self.input.after.only_keys(change, self.keys)
        then = self.input.before.only_keys(change, self.keys)
        return self.over(now) - self.over(then)

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        kept = [column(name) for name in self.input.schema]
        return select(*kept, *(as_column(call, name) for name, call in self.outputs)).from_(
            table(rows), copy=False
        )

    def explain(self) -> str:
        calls = ", ".join(call.sql("spark") for _, call in self.outputs)
        return f"Window {calls} by ({', '.join(self.keys)})"
