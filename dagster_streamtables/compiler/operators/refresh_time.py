"""The time of a refresh as a column, and conditions on it.

    θ_n(R)        each row with the time n              `TimeColumn`
    σ_p(n)(R)     the rows for which p(n) is true       `TimeFilter`

    Δ θ = θ_n⁺(ΔR) + θ_n⁺(R⁻) − θ_n⁻(R⁻)
    Δ σ = σ_p(n⁺)(ΔR) + σ_{p(n⁺) ∧ ¬p(n⁻)}(R⁻) − σ_{p(n⁻) ∧ ¬p(n⁺)}(R⁻)

For a fixed n both are linear in R; the other terms are the effect of time on the rows before. For
a condition, those are the rows that start or stop matching as time passes. With ``t > n − 1 day``
they lie between two values of ``t``, and Delta skips the files outside that range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    LinearOperator,
    Moment,
    Operator,
    Schema,
    weight_items,
)
from dagster_streamtables.compiler.operators.leaves import relation
from dagster_streamtables.compiler.operators.sql_builders import (
    as_column,
    column,
    map_columns,
    select,
    table,
)
from dagster_streamtables.compiler.text.current_time import NOW

_MOMENT = "moment"


def time_at(moment: Moment) -> exp.Expr:
    """A placeholder for the time, replaced by a value before the SQL runs.

    It is marked, because a source may have a column of the same name.
    """
    name = exp.column(relation(NOW, moment), quoted=True)
    name.meta[_MOMENT] = moment
    return name


def set_time(query: exp.Query, times: Mapping[Moment, exp.Expr]) -> None:
    """Replace the placeholders for the time with values."""
    for node in list(query.find_all(exp.Column)):
        if _MOMENT in node.meta:
            node.replace(times[node.meta[_MOMENT]].copy())


def _with_time(predicate: exp.Expr, moment: Moment) -> exp.Expr:
    return map_columns(predicate, lambda each: time_at(moment) if each == column(NOW) else each)


@dataclass(frozen=True, eq=False)
class TimeOperator(LinearOperator):
    """Reads the time at the moment in its field `moment`."""

    def at(self, moment: Moment) -> Operator:
        return replace(self, input=self.input.at(moment), moment=moment)


@dataclass(frozen=True, eq=False)
class TimeColumn(TimeOperator):
    moment: Moment = Moment.AFTER

    cost: ClassVar[str] = "all rows, because each contains the time"

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, NOW: exp.DataType.build("timestamp")}

    def delta(self) -> Operator:
        came = TimeColumn(self.input.change, Moment.AFTER)
        now, then = (TimeColumn(self.input.before, m) for m in (Moment.AFTER, Moment.BEFORE))
        return came + now - then

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        columns = [*map(column, self.input.schema), as_column(time_at(self.moment), NOW)]
        return select(*columns, *weight_items(self)).from_(table(rows), copy=False)

    def explain(self) -> str:
        return f"Time {self.moment.value} in each row"


@dataclass(frozen=True, eq=False)
class TimeFilter(TimeOperator):
    predicate: exp.Expr
    moment: Moment = Moment.AFTER
    unless: Moment | None = None
    """Exclude the rows that satisfy the predicate at this moment."""

    cost: ClassVar[str] = "the change, and the rows that start or stop matching as time passes"

    def delta(self) -> Operator:
        old = self.input.before
        entered = TimeFilter(old, self.predicate, Moment.AFTER, Moment.BEFORE)
        left = TimeFilter(old, self.predicate, Moment.BEFORE, Moment.AFTER)
        return TimeFilter(self.input.change, self.predicate) + entered - left

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        query = select(exp.Star()).from_(table(rows), copy=False)
        query = query.where(_with_time(self.predicate, self.moment), copy=False)
        if self.unless is None:
            return query
        other = exp.paren(_with_time(self.predicate, self.unless))
        known = exp.Coalesce(this=other, expressions=[exp.false()])
        return query.where(exp.Not(this=known), copy=False)

    def explain(self) -> str:
        without = f", not {self.unless.value}" if self.unless else ""
        return f"Filter {self.moment.value}{without}: {self.predicate.sql('spark')}"
