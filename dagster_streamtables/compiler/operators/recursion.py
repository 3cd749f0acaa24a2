"""Recursion: a relation that is the base, and what a step makes of the relation itself.

    T = B + S(T)            S linear in T: each row of T makes its own rows

    ΔT = X₀ + X₁ + X₂ + …   X₀ = ΔB + ΔS(T⁻),   Xᵢ₊₁ = S⁺(Xᵢ)

What comes to the base, and what the step now makes of the old rows and did not before (or no longer
makes), starts it; from there the new step carries it on, with its sign, until nothing is left. So
a change of T is a recursion of the same kind over rows with weights, retractions included: a row
that went takes all that was made of it along, because the step makes of it, with weight -1, what it
made of it before. No row is computed again that no change leads to.

With S⁺ = S⁻ + ΔS:  T⁺ − T⁻ = ΔB + S⁺(T⁺) − S⁻(T⁻) = ΔB + ΔS(T⁻) + S⁺(T⁺ − T⁻).

That has one solution only where S⁺ has no circle among the rows in question. A subtree that moves
below itself is lost, though each of its rows still leads to the other: what went, −2 by 1 → 2, and
what came, +2 by 3 → 2, add up to nothing, as does "nothing changed", which is wrong. So what comes
and what goes are carried on apart, and nothing is netted before the end. If they come to an end, no
row from which they started is on a circle of S⁺. T⁺ has no circle, since it ended. And a row of T⁻
on a circle of S⁺ has a step on that circle that is new, which starts there and does not end. So
where they end, the sum is T⁺ − T⁻; where they do not, the bound stops them, and the query itself is
run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import (
    WEIGHT,
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.net import Empty, Net
from dagster_streamtables.compiler.operators.step import Moment, Schema, Step, weight_of


@dataclass(frozen=True)
class Reference(Operator):
    """The relation itself, in its own step: of all its rows, those that were made last."""

    name: str
    columns: tuple[tuple[str, exp.DataType], ...]
    has_weight: bool = False

    __hash__ = Step.__hash__
    law: ClassVar[str] = "fixpoint"
    cost: ClassVar[str] = "what the change leads to, and the rows it starts from"

    @property
    def schema(self) -> Schema:
        return dict(self.columns)

    @property
    def weighted(self) -> bool:
        return self.has_weight

    @cached_property
    def open(self) -> frozenset[str]:
        return frozenset({self.name})

    def at(self, moment: Moment) -> Operator:
        return self.delta() if moment is Moment.CHANGE else self

    def delta(self) -> Operator:
        return Empty(self.columns, True)

    def empty_if(self, *inputs: bool) -> bool:
        return False

    def select(self, *inputs: str) -> exp.Query:
        weight = [weight_column()] if self.has_weight else []
        source = exp.Table(this=exp.to_identifier(self.name, quoted=True))
        return select(*map(column, self.schema), *weight).from_(source, copy=False)

    def explain(self) -> str:
        return f"Reference to {self.name}"


@dataclass(frozen=True)
class Recursion(Operator):
    base: Operator
    step: Operator
    reference: Reference
    """What stands in `step` for the relation itself."""

    __hash__ = Step.__hash__
    law: ClassVar[str] = "fixpoint"
    cost: ClassVar[str] = "what the change leads to, and the rows it starts from"

    @cached_property
    def inputs(self) -> tuple[Step, ...]:
        return self.base, self.step

    @property
    def schema(self) -> Schema:
        return self.reference.schema

    @property
    def weighted(self) -> bool:
        return self.reference.weighted

    @cached_property
    def open(self) -> frozenset[str]:
        return (self.base.open | self.step.open) - {self.reference.name}

    def empty_if(self, *inputs: bool) -> bool:
        return inputs[0]

    def over(self, *inputs: Step) -> Recursion:
        base, step = inputs
        return replace(self, base=base, step=step)

    def delta(self) -> Operator:
        started = with_reference(every_reason(self.step.change), self.reference, self.before)
        name = f"{self.reference.name}@change"
        carried = Reference(name, self.reference.columns, True)
        step = with_reference(self.step.after, self.reference, carried)
        return Recursion(self.base.change + started, step, carried)

    def select(self, *inputs: str) -> exp.Query:
        """For a person to read; `fixpoint` runs it."""
        sides = [
            select(*map(column, operator.schema), *self._weight(operator)).from_(
                table(name), copy=False
            )
            for operator, name in zip((self.base, self.step), inputs, strict=True)
        ]
        names = [*self.schema, *([WEIGHT] if self.weighted else [])]
        columns = [exp.to_identifier(name, quoted=name != WEIGHT) for name in names]
        own = exp.to_identifier(self.reference.name, quoted=True)
        cte = exp.CTE(
            this=exp.union(*sides, distinct=False),
            alias=exp.TableAlias(this=own, columns=columns),
        )
        query = self.reference.select()
        query.set("with_", exp.With(expressions=[cte], recursive=True))
        # Around it, for the shared subtrees would be added to the WITH that a query has already.
        return select(exp.Star()).from_(
            exp.Subquery(this=query, alias=exp.TableAlias(this=own.copy())), copy=False
        )

    def _weight(self, operator: Operator) -> list[exp.Expr]:
        return [weight_of(operator)] if self.weighted else []

    def explain(self) -> str:
        return f"Recursion {self.reference.name} ({', '.join(self.schema)})"


def with_reference(step: Operator, reference: Reference, other: Operator) -> Operator:
    """The same step with something else in place of the relation itself."""
    if step == reference:
        return other
    if reference.name not in step.open:
        return step
    inputs = (
        with_reference(each, reference, other) if isinstance(each, Operator) else each
        for each in step.inputs
    )
    return step.over(*inputs)


def every_reason(change: Operator) -> Operator:
    """The change of a step with each reason for a row apart: a row that lost one and got another is
    lost first, for the new one may rest on rows that are lost themselves."""
    if not change.open:
        return change
    inputs = tuple(
        every_reason(each) if isinstance(each, Operator) else each for each in change.inputs
    )
    if not isinstance(change, Net):
        return change.over(*inputs)
    apart = inputs[0]
    assert isinstance(apart, Operator)
    return apart
