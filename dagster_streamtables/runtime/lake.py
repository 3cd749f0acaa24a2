"""`Lake`: all that can be done with a stream table, without an orchestrator."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import Plan, Text, compile_query, read
from dagster_streamtables.compiler.operators import Scan, Step
from dagster_streamtables.errors import SourceProblem, StreamTablesError, UnsupportedQuery
from dagster_streamtables.runtime import refresh as refreshing
from dagster_streamtables.runtime.compare import Comparison, compare
from dagster_streamtables.runtime.compute import LIMIT, Inputs
from dagster_streamtables.runtime.decide import Source
from dagster_streamtables.runtime.delta_log import Logs, Place, TableLog
from dagster_streamtables.runtime.names import Names
from dagster_streamtables.runtime.quote import spark_name
from dagster_streamtables.runtime.report import Refresh
from dagster_streamtables.runtime.state import Stored, read_state
from dagster_streamtables.runtime.table import Mode, StreamTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dagster_streamtables.runtime.sources import Relations

_HIDDEN = "__st_"


class MissingSource(SourceProblem):
    """A table that a query reads is not there, or is no Delta table."""

    source: str = ""


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
    ) -> None:
        """
        Args:
            root: A folder, or the URI of one in an object store. The table ``sales.orders`` is
                ``<root>/sales/orders``, and ``orders`` is ``<root>/public/orders``.
            spark: A session, an address (``sc://…``, ``local[2]``), or None for the local server.
            storage_options: What delta-rs needs to reach an object store.
            driver_rows: A change of up to so many rows is brought to this process and committed
                by delta-rs; a larger one stays in Spark.
        """
        text = str(root)
        self.root = text if "://" in text else str(Path(text).expanduser().absolute())
        self._names = Names(self.root)
        self._given = spark
        self._logs = Logs(storage_options)
        self._limit = driver_rows
        self._opened: dict[str, tuple[SparkSession, Relations]] = {}
        self._opening = threading.RLock()

    def refresh(self, table: StreamTable, *, full: bool = False) -> Refresh:
        """Bring a stream table up to the newest versions of its sources, in at most one commit.

        Args:
            table: The declaration. The table is created by its first refresh.
            full: Run the query again, whatever the change.

        Raises:
            InvalidDefinition: The query cannot be maintained, or names what is not there.
            MissingSource: A source is not there, or is no Delta table.
            ConflictingCommit: Another refresh of the table committed first; nothing was written.
        """
        clock = refreshing.Clock()
        try:
            with clock.phase("log"):
                job = self._job(table, full=full)
            return refreshing.run(job, self._inputs(job), clock)
        except StreamTablesError as error:
            raise error.about(table.name) from error.__cause__

    def check(self, table: StreamTable) -> Comparison:
        """Compare a stream table with its query, run by plain Spark at the table's own frontier.

        Raises:
            MissingSource: The table has never been refreshed, or a source is gone.
        """
        stored = self._stored(self.location(table.name))
        if stored is None or stored.state is None:
            raise MissingSource("has never been refreshed", fix="refresh it once").about(table.name)
        places = {n: Place(self.location(n), seen.id) for n, seen in stored.state.sources.items()}
        session, relations = self._session(table.name)
        return compare(table, stored, places, session, relations)

    def plan(self, table: StreamTable, *, upstream: Mapping[str, Plan] | None = None) -> Plan:
        """Compile a stream table's query, without Spark.

        Args:
            table: The declaration.
            upstream: Plans of stream tables that it reads and that are not there yet.

        Raises:
            InvalidDefinition: The query cannot be maintained, or names what is not there.
            MissingSource: The columns of a source are not known.
        """
        columns: dict[str, Mapping[str, str]] = {}
        text = read(table.query)
        for name in text.sources:
            log = self._logs.newest(self.location(name))
            if log is not None:
                columns[name] = _visible(log.columns)
            elif upstream and name in upstream:
                columns[name] = _guessed(upstream[name])
            else:
                raise self._missing(name)
        return compile_query(text, columns)

    def read(self, name: str) -> DataFrame:
        """The rows of a table as Spark has them now; the columns of its own state left out."""
        log = self._logs.newest(self.location(name))
        if log is None:
            raise self._missing(name)
        session, _ = self._session(name)
        rows = session.read.format("delta").load(log.location)
        return rows.select(*[spark_name(column) for column in _visible(log.columns)])

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
        return None if log is None else _visible(log.columns)

    def frontier(self, table: StreamTable) -> Mapping[str, int] | None:
        """The version of each source that the table reflects; None before its first refresh."""
        stored = self._stored(self.location(table.name))
        return None if stored is None or stored.state is None else stored.state.frontier

    def _job(self, table: StreamTable, *, full: bool) -> refreshing.Job:
        plan, refusal = None, None
        text = read(table.query)
        logs = {name: self._source_log(name) for name in text.sources}
        if table.mode is not Mode.FULL:
            columns = {name: _visible(log.columns) for name, log in logs.items()}
            try:
                plan = compile_query(text, columns)
            except UnsupportedQuery as error:
                if table.mode is not Mode.AUTO:
                    raise
                refusal = error.what
        used = {name: _used(plan, name, log) for name, log in logs.items()}
        sources = {name: Source(name, log, used[name]) for name, log in logs.items()}
        location = self.location(table.name)
        return refreshing.Job(
            table=table,
            fingerprint=_fingerprint(text, plan),
            plan=plan,
            refusal=refusal,
            location=location,
            stored=self._stored(location),
            sources=sources,
            full=full,
            storage_options=self._logs.storage_options,
        )

    def _inputs(self, job: refreshing.Job) -> Inputs:
        name = job.table.name
        return Inputs(lambda: self._session(name), job.sources, self._stored, self._limit)

    def _stored(self, location: str) -> Stored | None:
        log = self._logs.newest(location)
        return None if log is None else read_state(log)

    def _source_log(self, name: str) -> TableLog:
        log = self._logs.newest(self.location(name))
        if log is None:
            raise self._missing(name)
        return log

    def _missing(self, name: str) -> MissingSource:
        place = self.location(name)
        there = "://" not in place and Path(place).exists()
        error = MissingSource(
            f'source "{name}" is not a Delta table' if there else f'there is no table "{name}"',
            where=place,
            why="its folder has no Delta log" if there else "nothing is stored at that place",
            fix="create it, refresh the stream table of that name first, or correct the query",
        )
        error.source = name
        return error

    def _session(self, table: str) -> tuple[SparkSession, Relations]:
        """The session of a stream table: its views and confs are its own, where Spark allows."""
        from dagster_streamtables.runtime.session import open_session
        from dagster_streamtables.runtime.sources import Relations

        with self._opening:
            identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.root}#{table}"))
            session = open_session(self._given, session_id=identity)
            kept = self._opened.get(table)
            if kept is None or kept[0] is not session:
                kept = self._opened[table] = (session, Relations(session))
            return kept


def _visible(columns: Mapping[str, str]) -> dict[str, str]:
    return {name: type_ for name, type_ in columns.items() if not name.startswith(_HIDDEN)}


def _guessed(plan: Plan) -> dict[str, str]:
    """The columns of a table that is not there yet.

    Where the text does not tell a type, any will do: a refresh compiles again, with the types that
    the table then has.
    """
    known = {n: t for n, t in plan.schema.items() if not t.is_type("unknown")}
    return {n: known[n].sql("spark") if n in known else "string" for n in plan.schema}


def _used(plan: Plan | None, name: str, log: TableLog) -> dict[str, str]:
    """The columns that a query uses of a source, as the log spells them; all, without a plan."""
    visible = _visible(log.columns)
    if plan is None:
        return visible
    used = {
        column.lower() for scan in _scans(plan.view) if scan.table == name for column in scan.schema
    }
    return {column: type_ for column, type_ in visible.items() if column.lower() in used}


def _scans(step: Step) -> list[Scan]:
    if isinstance(step, Scan):
        return [step]
    return [scan for each in step.inputs for scan in _scans(each)]


def _fingerprint(text: Text, plan: Plan | None) -> str:
    """Changes when what is stored could not be built upon by this definition."""
    hidden = ",".join(plan.stored_columns) if plan is not None else ""
    definition = "\x00".join([text.sql, hidden, plan.entry if plan is not None else "full"])
    return hashlib.sha256(definition.encode()).hexdigest()[:16]
