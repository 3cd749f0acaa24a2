"""Project: compute columns.

    Δ π_e(R) = π_e(ΔR)

Rows that become equal are not merged: two rows of weight 1 mean the same as one of weight 2.

Filter: keep the rows that satisfy a predicate.

    Δ σ_p(R) = σ_p(ΔR)

The predicate looks at one row at a time and leaves its weight alone, so it applies to inserted and
deleted rows just as to stored ones. An update is a deleted row and an inserted row; if only one of
the two satisfies the predicate, the result gains or loses a row, as it should.

The rule needs ``p(row)`` to be the same when the row is deleted as when it was inserted. `refuse`
rejects predicates for which it may differ.

Unfold: for each row, the rows that a table function returns for it.

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
from dagster_streamtables.compiler.operators.failing import before_failing
from dagster_streamtables.compiler.operators.sql_builders import (
    as_column,
    column,
    select,
    table,
    type_of,
    weight_column,
)
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Project(Operator):
    input: Operator
    outputs: tuple[tuple[str, exp.Expr], ...]

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return {name: type_of(expression) for name, expression in self.outputs}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        return dict(self.outputs)

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        return self.over(before_failing(self.input, (e for _, e in self.outputs)))

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        outputs = [as_column(expression, name) for name, expression in self.outputs]
        if self.has_weight_column:
            outputs.append(weight_column())
        return select(*(outputs or [exp.Literal.number(1)])).from_(table(rows), copy=False)

    def explain(self) -> str:
        return "Project " + ", ".join(
            name if isinstance(e, exp.Column) and e.name == name else f"{e.sql('spark')} AS {name}"
            for name, e in self.outputs
        )


@dataclass(frozen=True)
class Filter(Operator):
    input: Operator
    predicate: exp.Expr

    __hash__ = Step.__hash__
    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        return self.over(before_failing(self.input, [self.predicate]))

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        return (
            select(exp.Star())
            .from_(table(rows), copy=False)
            .where(self.predicate.copy(), copy=False)
        )

    def explain(self) -> str:
        return f"Filter {self.predicate.sql('spark')}"


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
