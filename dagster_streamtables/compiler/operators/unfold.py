"""Unfold: for each row, the rows that a table function returns for it.

    Δ υ_g(R) = υ_g(ΔR)

A table function looks at one row at a time, as a projection does, and its rows inherit that row's
weight. OUTER keeps a row for which the function returns none, or none that matches the condition of
the join, padded with NULLs; that, too, depends on the row alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.columns import (
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.failing import before_failing
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Unfold(Operator):
    input: Operator
    function: exp.Expr
    """The call, over columns of the input."""
    made: tuple[tuple[str, exp.DataType], ...]
    """The columns that the function returns."""
    outer: bool = False
    condition: exp.Expr = field(default_factory=exp.true)
    """Which returned rows match, over all columns. Without OUTER, a filter says the same."""

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, **dict(self.made)}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        return {name: self.function for name, _ in self.made}

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        return self.over(before_failing(self.input, [self.condition]))

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        columns: list[exp.Expr] = [column(name) for name in self.schema]
        if self.has_weight_column:
            columns.append(weight_column())
        query = select(*columns).from_(table(rows), copy=False)
        made = exp.Lateral(this=self.function.copy(), alias=self._alias())
        if self._is_table_only or self.condition != exp.true():
            # With a condition, even ON TRUE, Spark passes no VARIANT to the function.
            on = None if self.condition == exp.true() else self.condition
            side = "left" if self.outer else "inner"
            return query.join(made, on=on, join_type=side, copy=False)
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
        return self.function.name.lower() in ("range", "variant_explode", "variant_explode_outer")

    def explain(self) -> str:
        on = "" if self.condition == exp.true() else f" ON {self.condition.sql('spark')}"
        return f"Unfold {'outer ' if self.outer else ''}{self.function.sql('spark')}{on}"
