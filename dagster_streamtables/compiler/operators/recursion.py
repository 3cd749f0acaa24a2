"""Recursion: a base relation, plus what a step derives from the relation itself.

    T = B + S(T)            S linear in T: each row of T derives its own rows

    ΔT = X₀ + X₁ + X₂ + …   X₀ = ΔB + ΔS(T⁻),   Xᵢ₊₁ = S⁺(Xᵢ)

X₀ is the change of the base, plus the rows that the new step derives from the old rows and the old
step did not, or the reverse. From there the new step continues, keeping signs, until no rows are
left: from a row of weight -1 it derives the same rows as before, with weight -1. Rows that no
change leads to are not recomputed.

With S⁺ = S⁻ + ΔS:  T⁺ − T⁻ = ΔB + S⁺(T⁺) − S⁻(T⁻) = ΔB + ΔS(T⁻) + S⁺(T⁺ − T⁻).

The solution is unique only if S⁺ has no cycle among these rows. A subtree that moves below itself
is lost, though its rows still derive each other: the delete, −2 by 1 → 2, and the insert, +2 by
3 → 2, cancel, which looks like "nothing changed" and is wrong. So inserts and deletes are carried
on separately, and nothing is netted before the end. If they terminate, no row they started from is
on a cycle of S⁺. T⁺ has no cycle, since its computation ended. And a row of T⁻ on a cycle of S⁺ has
a new step on that cycle, which starts there and never terminates. So if they terminate, their sum
is T⁺ − T⁻; if not, the bound stops them, and the query itself runs.

The two other recursions have other rules: `Rounds`, whose step combines the rows of a round, and
`Closure`, which has no copies.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    NO_INPUT,
    LinearOperator,
    Link,
    Operator,
    Restriction,
    Schema,
    Step,
    Union,
    all_columns,
    walk,
    weight_items,
)
from dagster_streamtables.compiler.operators.leaves import Leaf, scans_of
from dagster_streamtables.compiler.operators.net import Net
from dagster_streamtables.compiler.operators.refresh_time import TimeColumn, TimeFilter
from dagster_streamtables.compiler.operators.sql_builders import (
    WEIGHT,
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.step_trees import rebuild


@dataclass(frozen=True, eq=False)
class Reference(Leaf):
    """The relation's reference to itself in its step: the rows that the last round derived."""

    name: str
    columns: tuple[tuple[str, exp.DataType], ...]
    has_weight: bool = False
    rounds: int | None = None
    """Rounds of the step that may find rows, as the query's text says (MAX RECURSION LEVEL)."""

    law: ClassVar[str] = "fixpoint"
    cost: ClassVar[str] = "what the change leads to, and the rows it starts from"

    @property
    def has_weight_column(self) -> bool:
        return self.has_weight

    @cached_property
    def open(self) -> frozenset[str]:
        return frozenset({self.name})

    def select(self, *inputs: str) -> exp.Query:
        source = exp.Table(this=exp.to_identifier(self.name, quoted=True))
        columns = map(column, self.schema)
        return select(*columns, *weight_items(self)).from_(source, copy=False)

    def explain(self) -> str:
        return f"Reference to {self.name}"


@dataclass(frozen=True, eq=False)
class Recursion(Operator):
    base: Operator
    step: Operator
    reference: Reference = field(metadata=NO_INPUT)
    """The relation's reference to itself in `step`."""

    law: ClassVar[str] = "fixpoint"
    cost: ClassVar[str] = Reference.cost

    @property
    def schema(self) -> Schema:
        return self.reference.schema

    @property
    def has_weight_column(self) -> bool:
        return self.reference.has_weight_column

    @cached_property
    def open(self) -> frozenset[str]:
        return (self.base.open | self.step.open) - {self.reference.name}

    def empty_if(self, *inputs: bool) -> bool:
        return inputs[0]

    def delta(self) -> Operator:
        started = with_reference(every_reason(self.step.change), self.reference, self.before)
        name = f"{self.reference.name}@change"
        carried = Reference(name, self.reference.columns, True, self.reference.rounds)
        step = with_reference(self.step.after, self.reference, carried)
        return Recursion(self.base.change + started, step, carried)

    def select(self, *inputs: str) -> exp.Query:
        """SQL for people to read; `fixpoint` runs the recursion."""
        weighted = self.has_weight_column
        sides = zip((self.base, self.step), inputs, strict=True)
        arms = (all_columns(step, name, weighted=weighted) for step, name in sides)
        names = [*self.schema, *([WEIGHT] if weighted else [])]
        columns = [exp.to_identifier(name, quoted=name != WEIGHT) for name in names]
        own = exp.to_identifier(self.reference.name, quoted=True)
        alias = exp.TableAlias(this=own, columns=columns)
        cte = exp.CTE(this=exp.union(*arms, distinct=False), alias=alias)
        query = self.reference.select()
        query.set("with_", exp.With(expressions=[cte], recursive=True))
        # Nested, because shared subtrees would otherwise be added to this query's own WITH.
        rows = exp.Subquery(this=query, alias=exp.TableAlias(this=own.copy()))
        return select(exp.Star()).from_(rows, copy=False)

    def explain(self) -> str:
        return f"Recursion {self.reference.name} ({', '.join(self.schema)})"


def with_reference(step: Operator, reference: Reference, other: Operator) -> Operator:

    def rule(each: Step, inputs: tuple[Step, ...]) -> Step:
        if isinstance(each, Union) and each.branches:
            left, right = (with_reference(side, reference, other) for side in each.branches)
            each = replace(each, branches=(left, right))
        return other if each == reference else each.over(*inputs)

    found = rebuild(step, rule, below=lambda each: reference.name in each.open)
    assert isinstance(found, Operator)
    return found


def every_reason(change: Operator) -> Operator:
    """The change of a step without netting: a row that loses one derivation and gains another is
    deleted first, because the new one may depend on rows that are deleted themselves."""

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        return inputs[0] if isinstance(step, Net) else step.over(*inputs)

    found = rebuild(change, rule, below=lambda step: bool(step.open))
    assert isinstance(found, Operator)
    return found


@dataclass(frozen=True, eq=False)
class Rounds(Recursion):
    """A recursion whose step combines the rows of the last round.

        T = R₀ + R₁ + R₂ + …    R₀ = B,   Rᵢ₊₁ = S(Rᵢ)

        Δ T = T⁺ − T⁻           if anything that B or S reads has changed

    Such steps contain R JOIN R, DISTINCT, or IN (SELECT … FROM R).

    Every reference of such a step has the rows of the last round, as in Spark. What a row derives
    depends on other rows of its round, and two rows that were in one round may now be in different
    ones. So no change can be carried on separately: the rounds run over all rows, before and after.
    At the root of a query, T⁻ is the stored table.
    """

    cost: ClassVar[str] = "all rows, before and after"

    def delta(self) -> Operator:
        if any(isinstance(step, TimeColumn | TimeFilter) for step in walk(self)):
            return self.after - self.before
        # Each change by itself: an inserted row of one and a deleted row of another do not cancel.
        changes = tuple(dict.fromkeys(scan.change for scan in scans_of(self)))
        links = (Link(),) * len(changes)
        now, then = (Restriction(rows, changes, links) for rows in (self.after, self.before))
        return now - then

    def explain(self) -> str:
        return f"Rounds {self.reference.name} ({', '.join(self.schema)})"


@dataclass(frozen=True, eq=False)
class Closure(Recursion):
    """The least relation without copies that contains the base and all that the step derives.

        T = δ(B ∪ S(T))                   S linear in T; WITH RECURSIVE … UNION …

    A row may have many derivations, and on a cycle some depend on the row itself, so their number
    does not decide whether the row stays. The change is found by delete and rederive (Gupta,
    Mumick, Subrahmanian: Maintaining Views Incrementally, 1993):

        lost     D = the rows that ΔB and ΔS(T⁻) delete, and all that S⁻ derived from them
        kept     K = T⁻ − D
        found    F = the rows of D, and of the rows that ΔB and ΔS(K) insert, that are in B⁺ or
                     S⁺(K), and all that S⁺ derives from them
        ΔT       = (F − D) − (D − F)

    `fixpoint` runs it, one statement per round: Spark's SQL has no recursion without copies.
    """

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


@dataclass(frozen=True, eq=False)
class ClosureChange(Operator):
    old: Operator
    """The closure before the change."""
    base: Operator
    base_change: Operator
    step_before: Operator
    step_after: Operator
    step_change: Operator
    reference: Reference = field(metadata=NO_INPUT)

    law: ClassVar[str] = "fixpoint"
    cost: ClassVar[str] = Closure.cost

    @property
    def schema(self) -> Schema:
        return self.reference.schema

    weighted: ClassVar[bool] = True

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


@dataclass(frozen=True, eq=False)
class SignFilter(LinearOperator):
    """The inserted rows of a change, or the deleted ones, without weights."""

    came: bool

    weighted: ClassVar[bool] = False

    def delta(self) -> Operator:
        raise TypeError("part of a change has none of its own")

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        sign = weight_column() > 0 if self.came else weight_column() < 0
        query = select(*map(column, self.schema)).from_(table(rows), copy=False)
        return query.where(sign, copy=False)

    def explain(self) -> str:
        return "Inserted rows" if self.came else "Deleted rows"
