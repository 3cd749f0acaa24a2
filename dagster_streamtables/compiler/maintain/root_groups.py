"""The groups at the root of a query, their stored columns, and how to recompute them (`Regroup`).

    Δ γ(R) = γ(R⁺ ⋉ K) − stored ⋉ K        K = the keys that occur in ΔR

This is the keyed law, with the old half read from the table instead of computed from R⁻. `Regroup`
returns at most one row per key: the stored columns, and in the weight column the action:

     1    store this row, replacing the stored row of its key if any
    -1    delete the stored row of this key; all columns except the key are NULL

Keys whose rows did not change are omitted. Keys are compared null-safely.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Schema, Step
from dagster_streamtables.compiler.operators.comparable import comparable
from dagster_streamtables.compiler.operators.keyed import SET, Aggregate, Expand
from dagster_streamtables.compiler.operators.linear import Project
from dagster_streamtables.compiler.operators.sql_builders import (
    as_column,
    as_weight,
    column,
    is_null,
    map_columns,
    select,
    table,
)
from dagster_streamtables.compiler.text.column_names import in_words, unflat
from dagster_streamtables.compiler.text.query_text import DIALECT

ROWS = "__st_n"
"""The stored column with the number of rows of a group."""


@dataclass(frozen=True)
class RootGroups:
    aggregate: Aggregate
    outputs: tuple[tuple[str, exp.Expr], ...]
    """The user's columns, over the keys and measures of `aggregate`."""
    key: tuple[tuple[str, str], ...]
    """(stored column, key of `aggregate`) for each key; together they identify a stored row."""
    states: tuple[tuple[str, exp.Expr], ...] = ()
    """(stored column, aggregate call over the input of `aggregate`) for the state of a fold."""
    exact: bool = False
    """Never fold a sum of floats, because the reader of the groups may compare it."""

    @property
    def internal_keys(self) -> tuple[tuple[str, str], ...]:
        visible = {name for name, _ in self.outputs}
        return tuple((name, key) for name, key in self.key if name not in visible)

    @property
    def internal_states(self) -> tuple[tuple[str, exp.Expr], ...]:
        visible = {name for name, _ in self.outputs}
        return tuple((name, call) for name, call in self.states if name not in visible)

    @property
    def is_expressible(self) -> bool:
        """Whether all hidden columns can be written in the query's own SELECT.

        A call over the result of a subquery cannot: it reads a column that the text lacks.
        """
        below = self._below
        hidden = [column(key) for _, key in self.internal_keys if key != SET]
        parts = [*hidden, *(call for _, call in self.internal_states)]
        columns = (each for part in parts for each in part.find_all(exp.Column))
        read = (each for one in columns for each in below[one.name].find_all(exp.Column))
        return all("." in each.name for each in read)

    @property
    def _below(self) -> dict[str, exp.Expr]:
        """The expressions of the columns below the groups, in the names of the FROM clause."""
        rows = self.aggregate.input
        rows = rows.input if isinstance(rows, Expand) else rows
        return dict(rows.outputs) if isinstance(rows, Project) else {}

    def internal_sql(self, aliases: Set[str]) -> dict[str, str]:
        """The hidden columns as the user could write them in the query's own SELECT.

        `aliases` are the names of tables and subqueries in the text, in lower case: columns of a
        subquery without an alias cannot be qualified.
        """
        keys = {name: column(key) for name, key in self.internal_keys}
        calls: dict[str, exp.Expr] = {**keys, **dict(self.internal_states)}
        return {name: self._to_query_sql(call, aliases) for name, call in calls.items()}

    def _to_query_sql(self, expression: exp.Expr, aliases: Set[str]) -> str:
        """An expression over the input of the groups, in the names of the FROM clause."""
        below = self._below
        if expression == column(SET):
            return "GROUPING_ID()"

        def name_in_query(each: exp.Column) -> exp.Expr:
            table, name = in_words(*unflat(each.name), aliases)
            return column(name, table or None)

        written = map_columns(expression, lambda e: map_columns(below[e.name], name_in_query))
        return written.sql(DIALECT)


def foldable(call: exp.Expr) -> bool:
    """Whether a measure follows from the group's stored state and the change of its rows."""
    simple = isinstance(call, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max)
    return simple and not isinstance(call.this, exp.Distinct) and not call.expressions


def state_calls(call: exp.Expr) -> tuple[exp.Expr, ...]:
    """The aggregates from which a measure is computed."""
    if isinstance(call, exp.Sum | exp.Avg):
        return exp.Sum(this=call.this.copy()), exp.Count(this=call.this.copy())
    if isinstance(call, exp.Count):
        return (exp.Count(this=call.this.copy()),)
    return (type(call)(this=call.this.copy()),)


@dataclass(frozen=True, eq=False)
class Regroup(Step):
    """The recomputed groups, as replacements of the stored rows of the same keys."""

    groups: Step
    stored: Step
    key: tuple[tuple[str, str], ...]
    """The stored key columns, and the keys of the groups."""

    @property
    def schema(self) -> Schema:
        return self.stored.schema

    weighted: ClassVar[bool] = True

    def select(self, *inputs: str) -> exp.Query:
        keys = {name for name, _ in self.key}
        gone = is_null(column("is new", "n"))
        values = {n: column(n, "n") for n in self.schema}
        values |= {n: exp.Coalesce(this=values[n], expressions=[column(n, "s")]) for n in keys}
        kept = [as_column(values[n], n) for n in self.schema]
        weight = exp.Case().when(gone, exp.Literal.number(-1)).else_(exp.Literal.number(1))
        new, old = (
            select(exp.Star(), exp.alias_(exp.Literal.number(1), mark, quoted=True))
            .from_(table(name), copy=False)
            .subquery(alias, copy=False)
            for name, mark, alias in zip(inputs, ("is new", "is old"), "ns", strict=True)
        )
        both = (exp.Not(this=gone.copy()), exp.Not(this=is_null(column("is old", "s"))))
        same = [
            same_value(column(n, "n"), column(n, "s"), type_)
            for n, type_ in self.schema.items()
            if n not in keys
        ]
        on = [null_safe(column(n, "n"), column(n, "s")) for n, _ in self.key] or [exp.true()]
        query = select(*kept, as_weight(weight)).from_(new, copy=False)
        query = query.join(old, on=exp.and_(*on), join_type="full", copy=False)
        return query.where(exp.Not(this=exp.paren(exp.and_(*both, *same))), copy=False)

    def explain(self) -> str:
        return "Regroup: the recomputed groups replace their stored rows"


def null_safe(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=left, expression=right)


def same_value(left: exp.Expr, right: exp.Expr, type_: exp.DataType) -> exp.Expr:
    """Whether two values of a stored column are equal, be they maps or NULL."""
    return null_safe(comparable(left, type_), comparable(right, type_))
