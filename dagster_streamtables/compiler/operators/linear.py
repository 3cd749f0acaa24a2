"""Project, filter, unfold: the result of a row depends on that row alone.

    Δ f(R) = f(ΔR)

The weight of a row passes to the rows computed from it. Projected rows that become equal are not
merged: two rows of weight 1 mean the same as one of weight 2.

An update is a deleted row and an inserted row. If only one of the two satisfies a filter, the
result gains or loses a row, as it should. The rule needs ``f(row)`` to be the same when the row is
deleted as when it was inserted; `refuse` rejects expressions for which it may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    LinearOperator,
    Operator,
    Schema,
    Step,
    weight_items,
)
from dagster_streamtables.compiler.operators.net import before_failing
from dagster_streamtables.compiler.operators.sql_builders import (
    as_column,
    column,
    map_columns,
    select,
    table,
    type_of,
    typed,
)


@dataclass(frozen=True, eq=False)
class Project(LinearOperator):
    outputs: tuple[tuple[str, exp.Expr], ...]

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
        outputs += weight_items(self)
        return select(*(outputs or [exp.Literal.number(1)])).from_(table(rows), copy=False)

    def explain(self) -> str:
        return "Project " + ", ".join(
            name if isinstance(e, exp.Column) and e.name == name else f"{e.sql('spark')} AS {name}"
            for name, e in self.outputs
        )


def column_outputs(
    schema: Schema, names: Iterable[str] | None = None
) -> tuple[tuple[str, exp.Expr], ...]:
    """The outputs of a `Project` that returns every column, under its own name or that in `names`,
    by position."""
    pairs = zip(schema if names is None else names, schema.items(), strict=True)
    return tuple((new, typed(column(name), type_)) for new, (name, type_) in pairs)


@dataclass(frozen=True, eq=False)
class Filter(LinearOperator):
    """Keep the rows that satisfy a predicate."""

    predicate: exp.Expr

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        return self.over(before_failing(self.input, [self.predicate]))

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        query = select(exp.Star()).from_(table(rows), copy=False)
        return query.where(self.predicate.copy(), copy=False)

    def explain(self) -> str:
        return f"Filter {self.predicate.sql('spark')}"


@dataclass(frozen=True, eq=False)
class Unfold(LinearOperator):
    """For each row, the rows that a table function returns for it.

    OUTER keeps a row for which the function returns none, or none that matches the condition of
    the join, padded with NULLs.
    """

    function: exp.Expr
    """The call, over columns of the input."""
    made: tuple[tuple[str, exp.DataType], ...]
    """The columns that the function returns."""
    outer: bool = False
    condition: exp.Expr = field(default_factory=exp.true)
    """Which returned rows match, over all columns; a filter instead without OUTER."""

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
        # Spark 4.0 and 4.1 take the quotes of `t.key` in LATERAL VIEW for a part of the name.
        prefix = "__st_unfold"
        while any(name.startswith(prefix) for name in self.input.schema):
            prefix += "_"
        plain = {name: f"{prefix}_{number}" for number, (name, _) in enumerate(self.made)}
        columns = [
            as_column(column(plain[name]), name) if name in plain else column(name)
            for name in self.schema
        ]
        query = select(*columns, *weight_items(self)).from_(table(rows), copy=False)
        alias = exp.TableAlias(
            this=exp.to_identifier("__st_unfold"),
            columns=[exp.to_identifier(each) for each in plain.values()],
        )
        made = exp.Lateral(this=self.function.copy(), alias=alias)
        if self._is_table_only or self.condition != exp.true():
            # With a condition, even ON TRUE, Spark passes no VARIANT to the function.
            on = map_columns(self.condition, lambda each: column(plain.get(each.name, each.name)))
            on = None if self.condition == exp.true() else on
            side = "left" if self.outer else "inner"
            return query.join(made, on=on, join_type=side, copy=False)
        made.set("view", True)
        made.set("outer", self.outer)
        return query.lateral(made)

    @property
    def _is_table_only(self) -> bool:
        """Whether Spark supports it only as a table function, not in LATERAL VIEW."""
        return self.function.name.lower() in ("range", "variant_explode", "variant_explode_outer")

    def explain(self) -> str:
        on = "" if self.condition == exp.true() else f" ON {self.condition.sql('spark')}"
        return f"Unfold {'outer ' if self.outer else ''}{self.function.sql('spark')}{on}"
