"""Aggregate: one row per group.

    Δ γ(R) = γ(R⁺ ⋉ K) - γ(R⁻ ⋉ K)        K = the keys that occur in ΔR

A group's row depends on the rows of that group only, so a change affects only the groups whose
keys it mentions. The rule computes those groups twice: it adds them as they are after the change
and subtracts them as they were before. That is right for every aggregate function, and costs the
size of the touched groups rather than that of the change. At the root of a query, `fold` has
cheaper forms.

DISTINCT is an aggregate whose keys are all columns, without measures.

Without keys there is one group, and SQL returns a row for it even when it is empty.
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
class Aggregate(Operator):
    input: Operator
    keys: tuple[str, ...]
    measures: tuple[tuple[str, exp.Expr], ...]
    """Output name and aggregate call over columns of the input."""

    __hash__ = Step.__hash__
    law: ClassVar[str] = "keyed"
    cost: ClassVar[str] = "the touched groups, before and after"

    @property
    def schema(self) -> Schema:
        keys = {key: self.input.schema[key] for key in self.keys}
        return {**keys, **{name: type_of(call) for name, call in self.measures}}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        return dict(self.measures)

    def empty_if(self, *inputs: bool) -> bool:
        return bool(self.keys) and all(inputs)

    def delta(self) -> Operator:
        change = self.input.change
        now = self.input.after.only_keys(change, self.keys)
        then = self.input.before.only_keys(change, self.keys)
        return self.over(now) - self.over(then)

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        keys = [column(key) for key in self.keys]
        measures = [as_column(call, name) for name, call in self.measures]
        if not keys and not measures:
            # SQL cannot SELECT no columns, and this query returns one row.
            measures = [as_column(exp.Count(this=exp.Star()), "rows")]
        query = select(*keys, *measures).from_(table(rows), copy=False)
        return query.group_by(*(key.copy() for key in keys), copy=False) if keys else query

    def explain(self) -> str:
        keys = ", ".join(self.keys)
        if not self.measures:
            return f"Distinct ({keys})"
        measures = ", ".join(call.sql("spark") for _, call in self.measures)
        return f"Aggregate {measures} by ({keys})"


def distinct(input: Operator) -> Aggregate:
    """One copy of every row."""
    return Aggregate(input, tuple(input.schema), ())
