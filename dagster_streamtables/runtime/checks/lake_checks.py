"""Checks of an existing stream table: is it equal to its query, intact, fresh, and as defined?

No check changes a table, and none needs an orchestrator. Spark decides whether the columns still
fit the definition: it analyzes the query over empty relations with the present columns of the
sources, and runs nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import Plan, Text
from dagster_streamtables.errors import SourceProblem, StreamTablesError
from dagster_streamtables.runtime.checks.comparison import Comparison, Sample, compare, sampled_rows
from dagster_streamtables.runtime.checks.refresh_invariants import (
    Findings,
    PlannedTable,
    check_invariants,
)
from dagster_streamtables.runtime.compute.spark_relations import Relations, Views
from dagster_streamtables.runtime.delta.delta_log import Snapshot
from dagster_streamtables.runtime.delta.table_schema import spark_name, types_of
from dagster_streamtables.runtime.errors.error_translation import translate_final_errors
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from dagster_streamtables.runtime.model.definition import compile_table, time_column, visible_types
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.model.table_state import (
    SourceState,
    StreamTableState,
    TableWithState,
)
from dagster_streamtables.runtime.observe.source_health import SourceHealth, health_of
from dagster_streamtables.runtime.refresh.refresh_job import prepare
from dagster_streamtables.setting import check_arguments

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


def of_sources(state: StreamTableState, sources: Mapping[str, Columns]) -> Iterator[Drift]:
    """The source columns that the query used at the last refresh and that have changed since."""
    for name, seen in state.sources.items():
        if name in sources:
            there = {column: sources[name].get(column) for column in seen.columns}
            yield from _compare_columns(name, seen.columns, there)


def of_result(table: str, stored: Columns, now: Columns) -> Iterator[Drift]:
    """The differences between the stored columns of a table, and those that its query returns now
    according to Spark."""
    stored = visible_types(stored)
    spelled = {name.lower(): name for name in now}
    there = {name: now.get(spelled.get(name.lower(), name)) for name in stored}
    yield from _compare_columns(table, stored, there)
    known = {name.lower() for name in stored}
    for name, type_ in now.items():
        if name.lower() not in known:
            yield Drift(table, name, DriftKind.NEW, now=type_)


def columns_of(text: Text, sources: Mapping[str, Columns], spark: SparkSession) -> dict[str, str]:
    """The columns of a query over sources with these columns, and their Spark types."""
    return types_of(spark.sql(text.over(lambda name: _empty(sources[name])).sql))


def _empty(columns: Columns) -> str:
    nulls = (f"CAST(NULL AS {type_}) AS {spark_name(name)}" for name, type_ in columns.items())
    return f"(SELECT {', '.join(nulls)} WHERE false)"


def _compare_columns(table: str, was: Columns, now: Mapping[str, str | None]) -> Iterator[Drift]:
    for column, type_ in was.items():
        other = now.get(column)
        if other is None:
            yield Drift(table, column, DriftKind.MISSING, was=type_)
        elif _plain(other) != _plain(type_):
            yield Drift(table, column, DriftKind.TYPE, was=type_, now=other)


def _plain(type_: str) -> str:
    """A type for comparison: Spark and Delta quote the fields of structs differently."""
    return type_.replace("`", "").replace(" ", "").lower()


class Checks:
    """The checks of the stream tables below one root."""

    def __init__(
        self,
        catalog: TableCatalog,
        session: Callable[[StreamTable], Views],
        declared: Callable[[StreamTable], StreamTable],
    ) -> None:
        """Args: declared: Adds the views that a declaration may name."""
        self._catalog, self._session, self._declared = catalog, session, declared

    @check_arguments
    @translate_final_errors()
    def equality(
        self, table: StreamTable, *, sample: Sample | None = None, seed: int | None = None
    ) -> Comparison:
        """Compare a stream table with its query, run by plain Spark at the table's own frontier.

        Args:
            table: The declaration.
            sample: The fraction of the rows to compare, such as 0.01; None for all. See `Sample`.
            seed: Selects the sample, to repeat a comparison; random without it.

        Raises:
            MissingSource: The table has never been refreshed, or a source no longer exists.
            InvalidDefinition: `sample` is not a fraction above 0, up to 1.
        """
        table, stored = self._declared(table), self._read_table(table)
        part = sampled_rows(table, stored, sample, seed)
        sources = stored.state.sources
        snapshots = {name: self._snapshot(name, seen) for name, seen in sources.items()}
        with closing(Relations(self._session(table))) as relations:
            return compare(table, stored, snapshots, relations, part)

    @translate_final_errors()
    def invariants(self, table: StreamTable) -> Findings:
        """Find properties of a stored table that no refresh produces; see `refresh_invariants`.

        Raises:
            MissingSource: The table has never been refreshed.
        """
        table, stored = self._declared(table), self._read_table(table)
        sources = {name: self._catalog.newest(name) for name in stored.state.sources}
        planned = PlannedTable(table.name, stored, self._plan(table, stored.state))
        with closing(Relations(self._session(table))) as relations:
            return check_invariants(planned, sources, self._catalog.logs, relations)

    @translate_final_errors()
    def drift(self, table: StreamTable) -> list[Drift]:
        """The columns of a stream table, and those it uses of its sources, that have changed.

        Raises:
            MissingSource: The table has never been refreshed, or a source no longer exists.
            InvalidDefinition: The query is no longer valid over its sources.
        """
        table, stored = self._declared(table), self._read_table(table)
        logs = {name: self._catalog.newest(name) for name in table.sources}
        for name, log in logs.items():
            if log is None:
                raise self._catalog.missing(name, table).about(table.name)
        sources = {
            name: visible_types(log.columns) for name, log in logs.items() if log is not None
        }
        text = table.text(sources)
        if table.is_differential_only:  # the compiler's messages are better than Spark's
            compile_table(table, text, sources)
        now = columns_of(text, sources, self._session(table).spark) | time_column(table)
        found = of_result(table.name, stored.log.columns, now)
        return [*of_sources(stored.state, sources), *found]

    @translate_final_errors()
    def behind(self, table: StreamTable) -> list[SourceHealth]:
        """The sources with rows that a stream table does not reflect, or that no longer exist.

        Needs no Spark. A table without any is as fresh as possible, however old its last refresh.

        Raises:
            MissingSource: The table has never been refreshed.
        """
        state = self._read_table(table).state
        found = (
            health_of(table.name, name, seen, self._catalog.newest(name))
            for name, seen in state.sources.items()
        )
        return [each for each in found if each.is_missing or each.behind_since is not None]

    @translate_final_errors()
    def pending(self, table: StreamTable) -> tuple[str, ...]:
        """What the next refresh of a stream table has to do, each a clause; empty if nothing.

        Needs no Spark.
        """
        return self._catalog.pending(self._declared(table))

    def _snapshot(self, name: str, seen: SourceState) -> Snapshot:
        """The version of a source that a stream table read last."""
        log = self._catalog.newest(name)
        snapshot = seen.snapshot(self._catalog.names.location(name))
        if log is not None:
            table = replace(snapshot.table, name_in_spark=log.name_in_spark)
            snapshot = replace(snapshot, table=table)
        if log is not None and log.commit_at(seen.version) not in (None, seen.commit):
            raise SourceProblem(
                f'"{name}" no longer has the version {seen.version} that the table reflects',
                why="it was restored from a copy, or replaced, and its version of that number "
                "is a different one",
                fix="refresh the stream table, which rebuilds it",
            )
        return snapshot

    def _read_table(self, table: StreamTable) -> TableWithState:
        stored = self._catalog.table_at(self._catalog.names.own_location(table.name))
        if stored is None or stored.refreshed is None:
            raise MissingSource("has never been refreshed", fix="refresh it once").about(table.name)
        return stored.refreshed

    def _plan(self, table: StreamTable, state: StreamTableState) -> Plan | None:
        """The plan that built a stored table; None if the definition has changed since."""
        try:
            job = prepare(table, self._catalog, until=None)
        except StreamTablesError:
            return None
        return job.plan if job.fingerprint == state.query else None
