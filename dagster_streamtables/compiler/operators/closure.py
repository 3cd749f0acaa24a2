"""Closure: the least relation without copies that contains the base and all that the step derives.

    T = δ(B ∪ S(T))                   S linear in T; WITH RECURSIVE … UNION …

A row may have many derivations, and on a cycle some depend on the row itself, so counting them
does not tell whether the row stays. The change is found by delete and rederive (Gupta, Mumick,
Subrahmanian: Maintaining Views Incrementally, 1993):

    lost     D = the rows that ΔB and ΔS(T⁻) delete, and all that S⁻ derived from them
    kept     K = T⁻ − D
    found    F = those rows of D, and of the rows that ΔB and ΔS(K) insert, that are in B⁺ or S⁺(K),
                 and all that S⁺ derives from them
    ΔT       = (F − D) − (D − F)

Spark's SQL can express neither this nor a recursion without copies: `fixpoint` runs both, one
statement per round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import column, select, table, weight_column
from dagster_streamtables.compiler.operators.recursion import (
    Recursion,
    Reference,
    every_reason,
)
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Closure(Recursion):
    __hash__ = Step.__hash__
    law: ClassVar[str] = "fixpoint"
    cost: ClassVar[str] = "what the change leads to; after deletes, one step over all rows"

    def delta(self) -> Operator:
        step = self.step
        return ClosureChange(
            self.before,
            self.base.after,
            self.base.change,
            step.before,
            step.after,
            every_reason(step.change),
            self.reference,
        )

    def select(self, *inputs: str) -> exp.Query:
        raise NotImplementedError("Spark has no UNION in a recursion; see `fixpoint`")

    def explain(self) -> str:
        return f"Closure {self.reference.name} ({', '.join(self.schema)})"


@dataclass(frozen=True)
class ClosureChange(Operator):
    """The change of a closure."""

    old: Operator
    """The closure before the change."""
    base: Operator
    base_change: Operator
    step_before: Operator
    step_after: Operator
    step_change: Operator
    reference: Reference

    __hash__ = Step.__hash__
    law: ClassVar[str] = "fixpoint"
    cost: ClassVar[str] = Closure.cost

    @cached_property
    def inputs(self) -> tuple[Step, ...]:
        return (
            *(self.old, self.base, self.base_change),
            *(self.step_before, self.step_after, self.step_change),
        )

    def over(self, *inputs: Step) -> ClosureChange:
        names = ("old", "base", "base_change", "step_before", "step_after", "step_change")
        return replace(self, **dict(zip(names, inputs, strict=True)))

    @property
    def schema(self) -> Schema:
        return self.reference.schema

    @property
    def has_weight_column(self) -> bool:
        return True

    @cached_property
    def open(self) -> frozenset[str]:
        return super().open - {self.reference.name}

    def empty_if(self, *inputs: bool) -> bool:
        _, _, base_change, _, _, step_change = inputs
        return base_change and step_change

    def delta(self) -> Operator:
        raise TypeError("a change has none of its own")

    def select(self, *inputs: str) -> exp.Query:
        raise NotImplementedError("Spark has no UNION in a recursion; see `fixpoint`")

    def explain(self) -> str:
        return f"Change of closure {self.reference.name}"


@dataclass(frozen=True)
class SignFilter(Operator):
    """The inserted rows of a change, or the deleted ones, without weights."""

    input: Operator
    came: bool

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def has_weight_column(self) -> bool:
        return False

    def delta(self) -> Operator:
        raise TypeError("part of a change has none of its own")

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        sign = (exp.GT if self.came else exp.LT)(
            this=weight_column(), expression=exp.Literal.number(0)
        )
        return (
            select(*map(column, self.schema)).from_(table(rows), copy=False).where(sign, copy=False)
        )

    def explain(self) -> str:
        return "Inserted rows" if self.came else "Deleted rows"
