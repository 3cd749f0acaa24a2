"""Scan and Constant, the operators without inputs: sources, and rows from the query itself.

The compiler cannot derive the change of a source. The caller that runs the plan binds three
relations for each source: its rows before, its rows after, and the change between the two, with a
weight column. SQL reads them by the names that `relation` returns.

The change need not be netted: a row may be inserted and deleted in it, and copies may be repeated
rows or one row with a larger weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    Moment,
    Operator,
    Schema,
    Step,
    walk,
    weight_items,
)
from dagster_streamtables.compiler.operators.sql_builders import as_weight, column, select


def relation(table: str, moment: Moment) -> str:
    """The name by which SQL reads a source at a moment.

    >>> relation("sales.orders", Moment.BEFORE)
    'sales.orders@before'
    """
    return f"{table}@{moment.value}"


class Leaf(Operator):
    """An operator without inputs. Its columns are a field of the subclass, in its own place."""

    columns: tuple[tuple[str, exp.DataType], ...]

    @property
    def schema(self) -> Schema:
        return dict(self.columns)

    def delta(self) -> Operator:
        return Empty(self.columns, True)


@dataclass(frozen=True, eq=False)
class Scan(Leaf):
    """Read a source.    Δ scan(t) = the rows inserted into and deleted from t"""

    table: str
    columns: tuple[tuple[str, exp.DataType], ...]
    moment: Moment = Moment.AFTER

    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def has_weight_column(self) -> bool:
        return self.moment is Moment.CHANGE

    def at(self, moment: Moment) -> Scan:
        return replace(self, moment=moment)

    def delta(self) -> Scan:
        return self.at(Moment.CHANGE)

    def select(self, *inputs: str) -> exp.Query:
        source = exp.to_identifier(relation(self.table, self.moment), quoted=True)
        # A query such as SELECT COUNT(*) reads no column, and SQL cannot SELECT no columns.
        columns = [column(name) for name in self.schema] or [exp.Literal.number(1)]
        return select(*columns, *weight_items(self)).from_(exp.Table(this=source), copy=False)

    def explain(self) -> str:
        return f"Scan {self.table} {self.moment.value} ({', '.join(self.schema)})"


def scans_of(root: Step) -> Iterator[Scan]:
    """The sources that a tree reads, in the order of their first mention."""
    return (step for step in walk(root) if isinstance(step, Scan))


@dataclass(frozen=True, eq=False)
class Empty(Leaf):
    """No rows: a term whose inputs did not change, according to the log."""

    columns: tuple[tuple[str, exp.DataType], ...]
    has_weight: bool

    law: ClassVar[str] = "constant"
    cost: ClassVar[str] = "nothing"

    @property
    def has_weight_column(self) -> bool:
        return self.has_weight

    def select(self, *inputs: str) -> exp.Query:
        nulls = [exp.alias_(_null(type_), name, quoted=True) for name, type_ in self.columns]
        weight = [as_weight(exp.cast(exp.null(), "BIGINT"))] if self.has_weight else []
        # SQL cannot SELECT no columns.
        columns = [*nulls, *weight] or [exp.Literal.number(1)]
        return select(*columns).where(exp.false(), copy=False)

    def explain(self) -> str:
        return "Empty"


def _null(type_: exp.DataType) -> exp.Expr:
    unknown = any(part.this is exp.DType.UNKNOWN for part in type_.find_all(exp.DataType))
    return exp.null() if unknown else exp.cast(exp.null(), type_.copy())


@dataclass(frozen=True, eq=False)
class Constant(Leaf):
    """VALUES, a table function of constants, and the row of a SELECT without FROM.    Δ c = 0"""

    query: exp.Query
    """A query that reads no table."""
    columns: tuple[tuple[str, exp.DataType], ...]

    law: ClassVar[str] = "constant"
    cost: ClassVar[str] = "nothing"

    def select(self, *inputs: str) -> exp.Query:
        return self.query.copy()

    def explain(self) -> str:
        return f"Constant {self.query.sql('spark')}"


ONE_ROW = Constant(exp.select("1"), ())
"""The input of a SELECT without FROM."""
