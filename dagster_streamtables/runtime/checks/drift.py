"""Do the columns of a stream table and of its sources still fit the definition?

Spark analyzes the query over empty relations with the present columns of the sources, and runs
nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import Text
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.delta.types import types_of
from dagster_streamtables.runtime.model.definition import visible
from dagster_streamtables.runtime.model.state import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Columns = Mapping[str, str]


class DriftKind(enum.StrEnum):
    """How a column differs."""

    MISSING = "missing"
    """It existed, or should exist, and does not."""
    TYPE = "another type"
    NEW = "new"
    """It exists, and did not, or should not."""


@dataclass(frozen=True)
class Drift:
    """One column that changed."""

    table: str
    """The stream table or a source."""
    column: str
    kind: DriftKind
    was: str = ""
    """The type that is stored, or that the last refresh saw; empty for a new column."""
    now: str = ""
    """The type in the definition, or in the source, now; empty for a missing column."""

    def __str__(self) -> str:
        return {
            DriftKind.MISSING: f"{self.table}.{self.column} ({self.was}) is gone",
            DriftKind.TYPE: f"{self.table}.{self.column} was {self.was} and is {self.now}",
            DriftKind.NEW: f"{self.table}.{self.column} ({self.now}) is new",
        }[self.kind]


def of_sources(state: State, sources: Mapping[str, Columns]) -> Iterator[Drift]:
    """The source columns that the query used at the last refresh and that have changed since.

    Args:
        state: The state of the stream table.
        sources: The present columns of the sources.
    """
    for name, seen in state.sources.items():
        if name in sources:
            there = {column: sources[name].get(column) for column in seen.columns}
            yield from _changed(name, seen.columns, there)


def of_result(table: str, stored: Columns, now: Columns) -> Iterator[Drift]:
    """The differences between the visible columns of a stored table and those of its query.

    Args:
        table: The stream table.
        stored: Its stored columns.
        now: The columns that its query returns, according to Spark.
    """
    stored = visible(stored)
    spelled = {name.lower(): name for name in now}
    there = {name: now.get(spelled.get(name.lower(), name)) for name in stored}
    yield from _changed(table, stored, there)
    known = {name.lower() for name in stored}
    for name, type_ in now.items():
        if name.lower() not in known:
            yield Drift(table, name, DriftKind.NEW, now=type_)


def columns_of(text: Text, sources: Mapping[str, Columns], spark: SparkSession) -> dict[str, str]:
    """The columns of a query, and their Spark types.

    Args:
        text: The query in Spark SQL.
        sources: The columns of each source.
        spark: Analyzes the query.
    """
    return types_of(spark.sql(text.over(lambda name: _empty(sources[name])).sql))


def _empty(columns: Columns) -> str:
    nulls = (f"CAST(NULL AS {type_}) AS {spark_name(name)}" for name, type_ in columns.items())
    return f"(SELECT {', '.join(nulls)} WHERE false)"


def _changed(table: str, was: Columns, now: Mapping[str, str | None]) -> Iterator[Drift]:
    for column, type_ in was.items():
        other = now.get(column)
        if other is None:
            yield Drift(table, column, DriftKind.MISSING, was=type_)
        elif _plain(other) != _plain(type_):
            yield Drift(table, column, DriftKind.TYPE, was=type_, now=other)


def _plain(type_: str) -> str:
    """A type for comparison: Spark and Delta quote the fields of structs differently."""
    return type_.replace("`", "").replace(" ", "").lower()
