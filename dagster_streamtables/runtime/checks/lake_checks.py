"""Checks of an existing stream table: is it equal to its query, intact, fresh, and as defined?

No check changes a table, and none needs an orchestrator.
"""

from __future__ import annotations

from collections.abc import Callable

from dagster_streamtables.compiler import Plan
from dagster_streamtables.errors import SourceProblem, StreamTablesError
from dagster_streamtables.runtime.checks.compare import Comparison, compare
from dagster_streamtables.runtime.checks.drift import Drift, columns_of, of_result, of_sources
from dagster_streamtables.runtime.checks.invariants import Findings, PlannedTable, examine
from dagster_streamtables.runtime.checks.sample import sampled_rows
from dagster_streamtables.runtime.compute.relations import Relations
from dagster_streamtables.runtime.compute.version_views import Views
from dagster_streamtables.runtime.delta.delta_log import Snapshot
from dagster_streamtables.runtime.errors.tables import MissingSource
from dagster_streamtables.runtime.errors.translate import last_word
from dagster_streamtables.runtime.model.definition import compiled, time_column, visible
from dagster_streamtables.runtime.model.state import Refreshed, Seen, State
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.observe.health import SourceHealth, health_of
from dagster_streamtables.runtime.refresh.prepare import prepare


class Checks:
    """The checks of the stream tables below one root."""

    def __init__(
        self,
        catalog: TableCatalog,
        session: Callable[[StreamTable], Views],
        declared: Callable[[StreamTable], StreamTable],
    ) -> None:
        """
        Args:
            catalog: The tables.
            session: Opens the session of a stream table.
            declared: Adds the views that a declaration may name.
        """
        self._catalog = catalog
        self._session = session
        self._declared = declared

    @last_word()
    def equality(
        self, table: StreamTable, *, sample: float | None = None, seed: int | None = None
    ) -> Comparison:
        """Compare a stream table with its query, run by plain Spark at the table's own frontier.

        Args:
            table: The declaration.
            sample: The fraction of the rows to compare, such as 0.01; None for all. See `sample`.
            seed: Selects the sample, to repeat a comparison; random without it.

        Raises:
            MissingSource: The table has never been refreshed, or a source no longer exists.
            InvalidDefinition: `sample` is not a fraction.
        """
        table, stored = self._declared(table), self._stored(table)
        part = sampled_rows(table, stored, sample, seed)
        sources = stored.state.sources
        snapshots = {name: self._snapshot(name, seen) for name, seen in sources.items()}
        with Relations(self._session(table)) as relations:
            return compare(table, stored, snapshots, relations, part)

    @last_word()
    def invariants(self, table: StreamTable) -> Findings:
        """Find what no refresh can have left in a stored table; see `invariants`.

        Raises:
            MissingSource: The table has never been refreshed.
        """
        table, stored = self._declared(table), self._stored(table)
        sources = {name: self._catalog.newest(name) for name in stored.state.sources}
        planned = PlannedTable(table.name, stored, self._plan(table, stored.state))
        with Relations(self._session(table)) as relations:
            return examine(planned, sources, self._catalog.logs, relations)

    @last_word()
    def drift(self, table: StreamTable) -> list[Drift]:
        """The columns of a stream table, and those it uses of its sources, that have changed.

        Raises:
            MissingSource: The table has never been refreshed, or a source no longer exists.
            InvalidDefinition: The query is no longer valid over its sources.
        """
        table, stored = self._declared(table), self._stored(table)
        logs = {name: self._catalog.newest(name) for name in table.sources}
        for name, log in logs.items():
            if log is None:
                raise self._catalog.missing(name, table).about(table.name)
        sources = {name: visible(log.columns) for name, log in logs.items() if log is not None}
        text = table.text(sources)
        if table.mode is Mode.DIFFERENTIAL:  # the compiler's messages are better than Spark's
            compiled(table, text, sources)
        now = columns_of(text, sources, self._session(table).spark) | time_column(table)
        found = of_result(table.name, stored.log.columns, now)
        return [*of_sources(stored.state, sources), *found]

    @last_word()
    def behind(self, table: StreamTable) -> list[SourceHealth]:
        """The sources with rows that a stream table does not reflect, or that no longer exist.

        Needs no Spark. A table without any is as fresh as possible, however old its last refresh.

        Raises:
            MissingSource: The table has never been refreshed.
        """
        state = self._stored(table).state
        found = (
            health_of(table.name, name, seen, self._catalog.newest(name))
            for name, seen in state.sources.items()
        )
        return [each for each in found if each.gone or each.behind_since is not None]

    @last_word()
    def pending(self, table: StreamTable) -> tuple[str, ...]:
        """What the next refresh of a stream table has to do, each a clause; empty if nothing.

        Needs no Spark.
        """
        return self._catalog.pending(self._declared(table))

    def _snapshot(self, name: str, seen: Seen) -> Snapshot:
        """The version of a source that a stream table read last."""
        location = self._catalog.names.location(name)
        snapshot, log = seen.snapshot(location), self._catalog.newest(name)
        if log is not None and log.commit_at(seen.version) not in (None, seen.commit):
            raise SourceProblem(
                f'"{name}" no longer has the version {seen.version} that the table reflects',
                why="it was restored from a copy, or replaced, and its version of that number "
                "is a different one",
                fix="refresh the stream table, which rebuilds it",
            )
        return snapshot

    def _stored(self, table: StreamTable) -> Refreshed:
        stored = self._catalog.stored(self._catalog.names.location(table.name))
        if stored is None or stored.refreshed is None:
            raise MissingSource("has never been refreshed", fix="refresh it once").about(table.name)
        return stored.refreshed

    def _plan(self, table: StreamTable, state: State) -> Plan | None:
        """The plan that built a stored table; None if the definition has changed since."""
        try:
            job = prepare(table, self._catalog, until=None)
        except StreamTablesError:
            return None
        return job.plan if job.fingerprint == state.query else None
