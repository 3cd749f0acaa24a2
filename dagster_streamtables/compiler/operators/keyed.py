"""Keyed operators: aggregates, windows and LIMIT, whose rows depend on the rows of the same key.

    Δ f(R) = f(R⁺ ⋉ K) − f(R⁻ ⋉ K)        K = the keys that occur in ΔR

A change affects only the keys that it mentions. The rule computes their rows twice: it adds them as
they are after the change and subtracts them as they were before. That is right for every function
and frame, and costs the size of the touched groups or partitions rather than that of the change. At
the root of a query, `fold` has cheaper forms. Without keys there is one group or partition.

`Expand`, which repeats rows for grouping sets, is linear; it stands here because `Aggregate` groups
its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    LinearOperator,
    Operator,
    Schema,
    weight_items,
)
from dagster_streamtables.compiler.operators.net import Net
from dagster_streamtables.compiler.operators.sql_builders import (
    as_column,
    column,
    select,
    table,
    type_of,
)


@dataclass(frozen=True, eq=False)
class KeyedOperator(Operator):
    input: Operator
    keys: tuple[str, ...]

    law: ClassVar[str] = "keyed"

    def delta(self) -> Operator:
        change = self.input.change
        now = self.input.after.only_keys(change, self.keys)
        then = self.input.before.only_keys(change, self.keys)
        return self.over(now) - self.over(then)


@dataclass(frozen=True, eq=False)
class Aggregate(KeyedOperator):
    """One row per group.

    DISTINCT is an aggregate whose keys are all columns, without measures. Without keys, SQL returns
    a row for the one group even when it is empty.
    """

    measures: tuple[tuple[str, exp.Expr], ...]
    """Output name and aggregate call over columns of the input."""

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
    return Aggregate(input, tuple(input.schema), ())


SET = "grouping set"
"""The column with the `grouping_id` of the row's set."""


@dataclass(frozen=True, eq=False)
class Expand(LinearOperator):
    """Repeat each row for every grouping set, with the keys outside the set NULL.    Δ ε(R) = ε(ΔR)

    So GROUPING SETS, CUBE and ROLLUP are one aggregate over more rows, grouped by the keys and the
    set. The set must be a key: a key that the set omits is NULL, but not the group of the key NULL.
    Sets are numbered by SQL's GROUPING_ID. As in Spark, an empty input has no groups, not even for
    the set without keys.
    """

    keys: tuple[str, ...]
    sets: tuple[frozenset[str], ...]
    """The keys of each set, without duplicate sets."""

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, SET: exp.DataType.build("int")}

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        ids = (grouping_id(self.keys, each) for each in self.sets)
        numbers = exp.Array(expressions=[exp.Literal.number(each) for each in ids])
        each = select(as_column(exp.Explode(this=numbers), SET)).subquery("s", copy=False)
        columns = [self._column_in_set(name) for name in self.input.schema]
        return (
            select(*columns, *weight_items(self, "r"), column(SET, "s"))
            .from_(table(rows, "r"), copy=False)
            .join(each, join_type="cross", copy=False)
        )

    def _column_in_set(self, name: str) -> exp.Expr:
        if name not in self.keys:
            return column(name, "r")
        ids = (grouping_id(self.keys, each) for each in self.sets if name in each)
        within = [exp.Literal.number(each) for each in ids]
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
    """GROUPING_ID of a set: one bit per key, the first key's the highest, 1 if the set omits it."""
    return sum(1 << (len(keys) - 1 - i) for i, key in enumerate(keys) if key not in within)


@dataclass(frozen=True, eq=False)
class WindowColumns(KeyedOperator):
    """Columns computed from the rows of the same partition.

    A window over another window is two operators, each with its own partitions.
    """

    outputs: tuple[tuple[str, exp.Expr], ...]
    """Name and call with its OVER clause, whose PARTITION BY lists `keys`."""

    cost: ClassVar[str] = "the touched partitions, before and after"

    @property
    def schema(self) -> Schema:
        return {**self.input.schema, **{name: type_of(call) for name, call in self.outputs}}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        return dict(self.outputs)

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        kept = [column(name) for name in self.input.schema]
        return select(*kept, *(as_column(call, name) for name, call in self.outputs)).from_(
            table(rows), copy=False
        )

    def explain(self) -> str:
        calls = ", ".join(call.sql("spark") for _, call in self.outputs)
        return f"Window {calls} by ({', '.join(self.keys)})"


@dataclass(frozen=True, eq=False)
class Top(Operator):
    """The first rows of an order (LIMIT), after skipping some (OFFSET).

    The keyed law with one group, if anything changed after netting: which rows are first depends on
    all rows. `make_deterministic` has added all columns to the order to break ties; otherwise each
    run could return other rows.
    """

    input: Operator
    order: tuple[exp.Expr, ...]
    limit: exp.Expr | None
    offset: exp.Expr | None = None

    law: ClassVar[str] = "keyed"
    cost: ClassVar[str] = "all rows, before and after"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def delta(self) -> Operator:
        change = Net(self.input.change)
        now, then = self.input.after.only(change, ()), self.input.before.only(change, ())
        return self.over(now) - self.over(then)

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        query = select(*map(column, self.schema)).from_(table(rows), copy=False)
        if self.order:  # there is none where rows are alike
            query = query.order_by(*(each.copy() for each in self.order), copy=False)
        query = query.limit(self.limit.copy(), copy=False) if self.limit is not None else query
        return query.offset(self.offset.copy()) if self.offset is not None else query

    def explain(self) -> str:
        order = ", ".join(each.sql("spark") for each in self.order)
        limit = "all" if self.limit is None else self.limit.sql("spark")
        after = "" if self.offset is None else f" after {self.offset.sql('spark')}"
        return f"Top {limit}{after}" + f" by {order}" * bool(order)
