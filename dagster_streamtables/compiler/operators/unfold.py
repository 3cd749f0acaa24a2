"""Unfold: for each row, the rows that a table function returns for it.

    Δ υ_g(R) = υ_g(ΔR)

A table function looks at one row at a time, as a projection does, and its rows inherit that row's
weight. OUTER keeps a row for which the function returns none, padded with NULLs; that, too, depends
on the row alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import (
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Unfold(Operator):
    input: Operator
    function: exp.Expr
    """The call, over columns of the input."""
    made: tuple[tuple[str, exp.DataType], ...]
    """The columns that the function returns."""
    outer: bool = False

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, **dict(self.made)}

    @property
    def computed(self) -> Mapping[str, exp.Expr]:
        return {name: self.function for name, _ in self.made}

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        return self.over(self.input.change)

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        columns: list[exp.Expr] = [column(name) for name in self.schema]
        if self.weighted:
            columns.append(weight_column())
        query = select(*columns).from_(table(rows), copy=False)
        made = exp.Lateral(this=self.function.copy(), alias=self._alias())
        if self._is_table_only:
            # With a condition, even ON TRUE, Spark passes no VARIANT to the function.
            return query.join(made, join_type="left" if self.outer else "inner", copy=False)
        made.set("view", True)
        made.set("outer", self.outer)
        return query.lateral(made)

    def _alias(self) -> exp.TableAlias:
        return exp.TableAlias(
            this=exp.to_identifier("__st_unfold"),
            columns=[exp.to_identifier(name, quoted=True) for name, _ in self.made],
        )

    @property
    def _is_table_only(self) -> bool:
        """Whether Spark supports it only as a table function, not in LATERAL VIEW."""
        return self.function.name.lower().startswith("variant_explode")

    def explain(self) -> str:
        return f"Unfold {'outer ' if self.outer else ''}{self.function.sql('spark')}"
