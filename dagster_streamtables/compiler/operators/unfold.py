"""Unfold: for each row, the rows that a table function makes of it.

    Δ υ_g(R) = υ_g(ΔR)

A table function looks at one row at a time, as a projection does; a row that it makes weighs what
the row weighs that it was made from. OUTER keeps a row of which the function makes none, padded
with NULLs, and that too is decided by the row alone.
"""

from __future__ import annotations

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
    """The columns of the rows that it makes."""
    outer: bool = False

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, **dict(self.made)}

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
            return query.join(
                made, on=exp.true(), join_type="left" if self.outer else "inner", copy=False
            )
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
        """Whether Spark knows it as a table function only, which no LATERAL VIEW takes."""
        return self.function.name.lower().startswith("variant_explode")

    def explain(self) -> str:
        return f"Unfold {'outer ' if self.outer else ''}{self.function.sql('spark')}"
