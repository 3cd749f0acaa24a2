"""Expand: each row once for every grouping set, with the keys of the others put to NULL.

    Δ ε(R) = ε(ΔR)

So GROUPING SETS, CUBE and ROLLUP are one aggregate over more rows, grouped by the keys and by the
set: a key that is NULL because the set leaves it out is another group than a key that is NULL.
The set is told by the number that SQL calls GROUPING_ID: a bit for each key, the first key's the
highest, 1 where the set leaves the key out.

As in Spark, no rows make no groups, not even for the set without keys.
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
"""The column that tells which set a row is for: its `grouping_id`."""


@dataclass(frozen=True)
class Expand(Operator):
    input: Operator
    keys: tuple[str, ...]
    sets: tuple[frozenset[str], ...]
    """The keys of each set; no set is there twice."""

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
        columns = [self._kept(name) for name in self.input.schema]
        if self.weighted:
            columns.append(weight_column("r"))
        return (
            select(*columns, column(SET, "s"))
            .from_(table(rows, "r"), copy=False)
            .join(each, join_type="cross", copy=False)
        )

    def _id(self, within: frozenset[str]) -> int:
        return grouping_id(self.keys, within)

    def _kept(self, name: str) -> exp.Expr:
        if name not in self.keys:
            return column(name, "r")
        within = [exp.Literal.number(self._id(each)) for each in self.sets if name in each]
        if not within:
            # Of the type that the key has, which only Spark knows.
            return as_column(exp.Case().when(exp.false(), column(name, "r")), name)
        asked = exp.In(this=column(SET, "s"), expressions=within)
        return as_column(exp.Case().when(asked, column(name, "r")), name)

    def explain(self) -> str:
        sets = ", ".join(
            f"({', '.join(key for key in self.keys if key in each)})" for each in self.sets
        )
        return f"Expand to grouping sets {sets}"


def grouping_id(keys: tuple[str, ...], within: frozenset[str]) -> int:
    """GROUPING_ID of a set: a bit for each key, the first one's the highest."""
    return sum(1 << (len(keys) - 1 - i) for i, key in enumerate(keys) if key not in within)
