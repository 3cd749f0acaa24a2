"""Expand: repeat each row for every grouping set, with the keys outside the set NULL.

    Δ ε(R) = ε(ΔR)

So GROUPING SETS, CUBE and ROLLUP are one aggregate over more rows, grouped by the keys and the
set. The set must be a key: a key that the set omits is NULL, but not the group of the key NULL.
Sets are numbered as by SQL's GROUPING_ID: one bit per key, the first key's the highest, 1 if the
set omits the key.

As in Spark, an empty input has no groups, not even for the set without keys.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from dagster_streamtables.compiler.operators.step import Schema, Step

SET = "grouping set"
"""The column with the `grouping_id` of the row's set."""


@dataclass(frozen=True)
class Expand(Operator):
    input: Operator
    keys: tuple[str, ...]
    sets: tuple[frozenset[str], ...]
    """The keys of each set, without duplicate sets."""

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, SET: exp.DataType.build("int")}

    def delta(self) -> Operator:
        return self.over(self.input.change)

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        numbers = exp.Array(expressions=[exp.Literal.number(self._id(each)) for each in self.sets])
        each = select(as_column(exp.Explode(this=numbers), SET)).subquery("s", copy=False)
        columns = [self._column_in_set(name) for name in self.input.schema]
        if self.has_weight_column:
            columns.append(weight_column("r"))
        return (
            select(*columns, column(SET, "s"))
            .from_(table(rows, "r"), copy=False)
            .join(each, join_type="cross", copy=False)
        )

    def _id(self, within: frozenset[str]) -> int:
        return grouping_id(self.keys, within)

    def _column_in_set(self, name: str) -> exp.Expr:
        if name not in self.keys:
            return column(name, "r")
        within = [exp.Literal.number(self._id(each)) for each in self.sets if name in each]
        if not within:
            # A NULL of the key's type, which only Spark knows.
            return as_column(exp.Case().when(exp.false(), column(name, "r")), name)
        asked = exp.In(this=column(SET, "s"), expressions=within)
        return as_column(exp.Case().when(asked, column(name, "r")), name)

    def explain(self) -> str:
        sets = ", ".join(
            f"({', '.join(key for key in self.keys if key in each)})" for each in self.sets
        )
        return f"Expand to grouping sets {sets}"


def grouping_id(keys: tuple[str, ...], within: frozenset[str]) -> int:
    """GROUPING_ID of a set: one bit per key, the first key's the highest."""
    return sum(1 << (len(keys) - 1 - i) for i, key in enumerate(keys) if key not in within)
