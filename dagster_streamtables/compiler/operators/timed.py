"""The time of a refresh beside each row, and conditions on it.

    θ_n(R)        each row with the time n              Timed
    σ_p(n)(R)     the rows of which p(n) is true        TimedFilter

    Δ θ = θ_n⁺(ΔR) + θ_n⁺(R⁻) − θ_n⁻(R⁻)
    Δ σ = σ_p(n⁺)(ΔR) + σ_{p(n⁺) ∧ ¬p(n⁻)}(R⁻) − σ_{p(n⁻) ∧ ¬p(n⁺)}(R⁻)

For one value of n both are linear in R; the rest is what time alone does to the rows that were
there. Of a condition that is what it let in and what it put out, which for ``t > n − 1 day`` is
what lies between two values of ``t``: Delta skips the files beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import (
    as_column,
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.scan import relation
from dagster_streamtables.compiler.operators.step import Moment, Schema, Step
from dagster_streamtables.compiler.text.current_time import NOW

_MOMENT = "moment"


def time_at(moment: Moment) -> exp.Expr:
    """The name under which SQL reads the time; whoever runs it puts a value in its place.

    It is marked: a source may have a column of that name.
    """
    name = exp.column(relation(NOW, moment), quoted=True)
    name.meta[_MOMENT] = moment
    return name


def set_time(query: exp.Query, times: Mapping[Moment, exp.Expr]) -> None:
    """Put values in the places of the time."""
    for node in list(query.find_all(exp.Column)):
        if _MOMENT in node.meta:
            node.replace(times[node.meta[_MOMENT]].copy())


def _with_time(predicate: exp.Expr, moment: Moment) -> exp.Expr:
    def settle(node: exp.Expr) -> exp.Expr:
        return time_at(moment) if node == column(NOW) else node

    return predicate.copy().transform(settle)


@dataclass(frozen=True)
class Timed(Operator):
    input: Operator
    moment: Moment = Moment.AFTER

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "all rows, as time goes on for each"

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, NOW: exp.DataType.build("timestamp")}

    def at(self, moment: Moment) -> Operator:
        if moment is Moment.CHANGE:
            return self.change
        return replace(self, input=self.input.at(moment), moment=moment)

    def delta(self) -> Operator:
        came = Timed(self.input.change, Moment.AFTER)
        now, then = (Timed(self.input.before, m) for m in (Moment.AFTER, Moment.BEFORE))
        return came + now - then

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        kept = [column(name) for name in self.input.schema]
        weight = [weight_column()] if self.weighted else []
        return select(*kept, as_column(time_at(self.moment), NOW), *weight).from_(
            table(rows), copy=False
        )

    def explain(self) -> str:
        return f"Time {self.moment.value} beside each row"


@dataclass(frozen=True)
class TimedFilter(Operator):
    input: Operator
    predicate: exp.Expr
    moment: Moment = Moment.AFTER
    unless: Moment | None = None
    """Without the rows that satisfy the predicate at this moment."""

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change, and the rows that time lets in or puts out"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def at(self, moment: Moment) -> Operator:
        if moment is Moment.CHANGE:
            return self.change
        return replace(self, input=self.input.at(moment), moment=moment)

    def delta(self) -> Operator:
        old = self.input.before
        entered = TimedFilter(old, self.predicate, Moment.AFTER, Moment.BEFORE)
        left = TimedFilter(old, self.predicate, Moment.BEFORE, Moment.AFTER)
        return TimedFilter(self.input.change, self.predicate) + entered - left

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        query = (
            select(exp.Star())
            .from_(table(rows), copy=False)
            .where(_with_time(self.predicate, self.moment), copy=False)
        )
        if self.unless is None:
            return query
        other = exp.paren(_with_time(self.predicate, self.unless))
        known = exp.Coalesce(this=other, expressions=[exp.false()])
        return query.where(exp.Not(this=known), copy=False)

    def explain(self) -> str:
        without = f", not {self.unless.value}" if self.unless else ""
        return f"Filter {self.moment.value}{without}: {self.predicate.sql('spark')}"
