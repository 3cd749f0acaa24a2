"""`Lake`: all that can be done with a stream table, without an orchestrator."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import Plan
from dagster_streamtables.compiler.dialect import UnknownType
from dagster_streamtables.compiler.views import View
from dagster_streamtables.errors import SourceProblem, StreamTablesError, UnsupportedQuery
from dagster_streamtables.runtime import refresh as refreshing
from dagster_streamtables.runtime.align import Reading, aligned
from dagster_streamtables.runtime.blame import last_word
from dagster_streamtables.runtime.checks import Checks
from dagster_streamtables.runtime.clock import CONNECT, Clock
from dagster_streamtables.runtime.compare import Comparison
from dagster_streamtables.runtime.control import Controls
from dagster_streamtables.runtime.decide import Source
from dagster_streamtables.runtime.definition import (
    compiled,
    fingerprint_of,
    guessed,
    known_types,
    used_columns,
    visible,
)
from dagster_streamtables.runtime.delta_log import Logs, TableLog
from dagster_streamtables.runtime.inputs import LIMIT, Inputs
from dagster_streamtables.runtime.job import Job
from dagster_streamtables.runtime.missing import missing
from dagster_streamtables.runtime.names import Names
from dagster_streamtables.runtime.quote import spark_name
from dagster_streamtables.runtime.report import Refresh
from dagster_streamtables.runtime.retention import Retention
from dagster_streamtables.runtime.sources import Views, views_of
from dagster_streamtables.runtime.state import Stored, read_state, state_of
from dagster_streamtables.runtime.table import Mode, StreamTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """Delta tables under one root, and the stream tables among them.

    Making one costs nothing: Spark is found, or started, by the first refresh that has rows to work
    on.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        spark: SparkSession | str | None = None,
        storage_options: Mapping[str, str] | None = None,
        driver_rows: int = LIMIT,
        preview_rows: int = 0,
        views: Iterable[View] = (),
    ) -> None:
        """
        Args:
            root: A folder, or the URI of one in an object store. The table ``sales.orders`` is
                ``<root>/sales/orders``, and ``orders`` is ``<root>/public/orders``.
            spark: A session, an address (``sc://…``, ``local[2]``), or None for the local server.
            storage_options: What delta-rs needs to reach an object store.
            driver_rows: A change of up to so many rows is brought to this process and committed
                by delta-rs; a larger one stays in Spark.
            preview_rows: So many changed rows are in the report of a differential refresh.
            views: Queries that those of stream tables may name as they name tables. A view of a
                stream table's own goes first.
        """
        text = str(root)
        self.root = text if "://" in text else str(Path(text).expanduser().absolute())
        self._names = Names(self.root)
        self._given = spark
        self.storage_options = storage_options
        self._logs = Logs(storage_options)
        self._limit, self._preview = driver_rows, preview_rows
        self._views = tuple(views)
        self.controls = Controls(self.root, storage_options)
        """Suspend a stream table, resume it, and see its errors."""
        self.retention = Retention(self._names, self._logs, lambda name: self._session(name).spark)
        """How far behind stream tables are and may be; a vacuum that leaves what they need."""
        self.checks = Checks(
            self._names,
            self._logs,
            lambda table: self._session(table.name, table.session_timezone),
            self._with_views,
        )
        """Whether a stream table is right, whole, fresh, and as defined."""

    def refresh(
        self,
        table: StreamTable,
        *,
        full: bool = False,
        until: Mapping[str, datetime] | None = None,
    ) -> Refresh:
        """Bring a stream table up to the newest versions of its sources, in at most one commit.

        Versions that do not agree with each other, because two sources read a third one at
        different versions, are never combined; see `align`.

        Args:
            table: The declaration. The table is created by its first refresh.
            full: Run the query again, whatever the change.
            until: For sources that are no stream tables: leave out what came later. Tables that
                are refreshed one after another until one time reflect one state.

        Raises:
            InvalidDefinition: The query cannot be maintained, or names what is not there.
            MissingSource: A source is not there, or is no Delta table.
            ConflictingCommit: Another refresh of the table committed first; nothing was written.
            FailedQuery: The query fails on the rows of its sources; nothing was written.
            SuspendedTable: It was suspended, or failed too often; nothing was read.
        """
        clock = Clock()
        table = self._with_views(table)
        try:
            with self.controls.watching(table), last_word():
                with clock.phase("log"):
                    job = self._job(table, full=full, until=until)
                with closing(self._inputs(job, clock)) as inputs:
                    return refreshing.run(job, inputs, clock)
        except StreamTablesError as error:
            raise error.about(table.name) from error.__cause__

    def check(
        self, table: StreamTable, *, sample: float | None = None, seed: int | None = None
    ) -> Comparison:
        """Compare a stream table with its query; see `Checks.equality`."""
        return self.checks.equality(table, sample=sample, seed=seed)

    def plan(self, table: StreamTable, *, upstream: Mapping[str, Plan] | None = None) -> Plan:
        """Compile a stream table's query, without Spark.

        Args:
            table: The declaration.
            upstream: Plans of stream tables that it reads and that are not there yet.

        Raises:
            InvalidDefinition: The query cannot be maintained, or names what is not there.
            MissingSource: The columns of a source are not known.
        """
        table = self._with_views(table)
        columns: dict[str, Mapping[str, str]] = {}
        known: dict[str, Mapping[str, str]] = {}
        for name in table.sources:
            log = self._logs.newest(self.location(name))
            if log is not None:
                known[name] = columns[name] = visible(log.columns)
            elif upstream and name in upstream:
                columns[name] = guessed(upstream[name])
                known[name] = known_types(upstream[name])
            else:
                raise missing(name, self.location(name))
        try:
            return compiled(table, table.text(known), columns)
        except UnknownType as error:
            if known == columns:
                raise
            raise SourceProblem(
                error.what, where=error.where, why=error.why,
                fix="refresh the stream tables that it reads first, or add a cast",
            ) from None  # fmt: skip

    def read(self, name: str) -> DataFrame:
        """The rows of a table as Spark has them now; the columns of its own state left out."""
        log = self._logs.newest(self.location(name))
        if log is None:
            raise missing(name, self.location(name))
        rows = self._session(name).spark.read.format("delta").load(log.location)
        return rows.select(*[spark_name(column) for column in visible(log.columns)])

    def location(self, name: str) -> str:
        """The path or URI of a table."""
        return self._names.location(name)

    def version(self, name: str) -> int | None:
        """The newest Delta version of a table, in milliseconds; None where there is none."""
        log = self._logs.newest(self.location(name))
        return None if log is None else log.version

    def columns(self, name: str) -> Mapping[str, str] | None:
        """The visible columns of a table and their types; None where there is none."""
        log = self._logs.newest(self.location(name))
        return None if log is None else visible(log.columns)

    def frontier(self, table: StreamTable) -> Mapping[str, int] | None:
        """The version of each source that the table reflects; None before its first refresh."""
        stored = self._stored(self.location(table.name))
        return None if stored is None or stored.state is None else stored.state.frontier

    def _job(self, table: StreamTable, *, full: bool, until: Mapping[str, datetime] | None) -> Job:
        plan, refusal = None, None
        location = self.location(table.name)
        stored = self._stored(location)
        consumed = _consumed(stored, table.sources)
        read: dict[str, TableLog] = {}  # two names of one table are read at one version
        for name in table.sources:
            times = (until or {}).get(name), (consumed or {}).get(name, 0)
            read.setdefault(self.location(name), self._source_log(name, *times))
        newest = {name: read[self.location(name)] for name in table.sources}
        agreed = aligned(newest, consumed, self._reading)
        logs = agreed.logs or newest
        columns = {name: visible(log.columns) for name, log in logs.items()}
        text = table.text(columns)
        if table.mode is not Mode.FULL:
            try:
                plan = compiled(table, text, columns).with_intermediates
            except UnsupportedQuery as error:
                if table.mode is not Mode.AUTO:
                    raise
                refusal = error.what
        fingerprint = fingerprint_of(text, plan, table.session_timezone)
        state = stored.state if stored is not None else None
        used = {name: used_columns(plan, name, log) for name, log in logs.items()}
        sources = {name: Source(name, log, used[name]) for name, log in logs.items()}
        job = Job(
            table=table,
            text=text,
            fingerprint=fingerprint,
            plan=plan,
            refusal=refusal,
            location=location,
            stored=stored,
            sources=sources,
            full=full,
            waiting=agreed.waiting,
            blocked=not agreed.logs,
            storage_options=self._logs.storage_options,
            intermediates=state.intermediates if state is not None else {},
        )
        kept_whole = state is not None and state.whole == fingerprint
        return job.without_intermediates if kept_whole else job

    @property
    def _reading(self) -> Reading:
        return Reading(
            lambda name: self._logs.newest(self.location(name)),
            lambda name, version: self._logs.at(self.location(name), version),
            state_of,
        )

    def _inputs(self, job: Job, clock: Clock) -> Inputs:
        def session() -> Views:
            with clock.phase(CONNECT):
                return self._session(job.table.name, job.table.session_timezone)

        state = job.stored.state if job.stored is not None else None
        return Inputs(
            session=session,
            stored=self._stored,
            limit=self._limit,
            preview=self._preview,
            now=job.now,
            then=(state.now if state is not None else None) or job.now,
        )

    def _with_views(self, table: StreamTable) -> StreamTable:
        own = {view.name for view in table.views}
        more = [view for view in self._views if view.name not in own]
        return replace(table, views=(*table.views, *more)) if more else table

    def _stored(self, location: str) -> Stored | None:
        log = self._logs.newest(location)
        return None if log is None else read_state(log)

    def _source_log(self, name: str, until: datetime | None, consumed: int) -> TableLog:
        log = self._logs.newest(self.location(name))
        if log is None:
            raise missing(name, self.location(name))
        if until is None or state_of(name, log) is not None:
            return log
        return self._logs.until(log, until.timestamp(), consumed)

    def _session(self, table: str, zone: str | None = None) -> Views:
        """The views of a stream table; its session is its own too, where Spark allows.

        Args:
            table: Its name.
            zone: The time zone that its statements run in; None where none of them asks.
        """
        from dagster_streamtables.runtime.session import open_session

        about = f"{self.root}#{table}" if zone in (None, "UTC") else f"{self.root}#{table}#{zone}"
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, about))
        return views_of(open_session(self._given, session_id=identity, zone=zone), about)


def _consumed(stored: Stored | None, sources: Iterable[str]) -> Mapping[str, int] | None:
    """The versions of the sources that the last refresh read."""
    state = stored.state if stored is not None else None
    return state.frontier if state is not None and set(state.frontier) == set(sources) else None
