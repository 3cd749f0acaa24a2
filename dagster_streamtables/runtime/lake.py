"""`Lake`: everything that can be done with stream tables, without an orchestrator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dagster_streamtables.compiler import UNKNOWN, Plan, UnknownType, View
from dagster_streamtables.errors import SourceProblem, StreamTablesError, UnsupportedQuery
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.catalogs.external_catalogs import ExternalCatalogs
from dagster_streamtables.runtime.catalogs.session_catalog import register
from dagster_streamtables.runtime.checks.comparison import Comparison, Sample
from dagster_streamtables.runtime.checks.lake_checks import Checks
from dagster_streamtables.runtime.compute.access import Access
from dagster_streamtables.runtime.compute.change_reader import at_version
from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.compute.spark_relations import Views
from dagster_streamtables.runtime.dag import Outcome, outcomes
from dagster_streamtables.runtime.delta.actions import moment
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.delta.table_locations import (
    DEFAULT_SCHEMA,
    TableNames,
    is_remote,
)
from dagster_streamtables.runtime.delta.table_schema import spark_name
from dagster_streamtables.runtime.drop import Dropping, DropResult
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.error_translation import translate_final_errors
from dagster_streamtables.runtime.errors.table_errors import name_of_catalog
from dagster_streamtables.runtime.model.definition import (
    Explanation,
    refuse_without_columns,
    stored_plan,
    visible_types,
)
from dagster_streamtables.runtime.model.refresh_report import CONNECT, Action, Refresh, Stopwatch
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import (
    TableCatalog,
    match_name,
    with_exact_names,
)
from dagster_streamtables.runtime.observe.controls import Controls
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions
from dagster_streamtables.runtime.observe.monitor import Monitor
from dagster_streamtables.runtime.observe.retention import Retention
from dagster_streamtables.runtime.observe.slot_store import Slots
from dagster_streamtables.runtime.refresh import refresh as refreshing
from dagster_streamtables.runtime.refresh.completion import with_feeds
from dagster_streamtables.runtime.refresh.refresh_job import Job, prepare, with_views
from dagster_streamtables.runtime.rename import RenameResult, Renaming
from dagster_streamtables.runtime.storage.catalog_memory import CatalogMemory
from dagster_streamtables.runtime.storage.conditional_puts import require_conditional_puts
from dagster_streamtables.setting import NON_EMPTY, Range, check_arguments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_LOOKUP = "catalogs"
"""The owner of the session that looks up tables of catalogs."""


_Items = tuple[tuple[str, str], ...]


@lru_cache(maxsize=64)
def _catalogs_without_spark(
    root: str, storage_options: _Items, catalogs: _Items, token: str
) -> ExternalCatalogs:
    """Catalogs without Spark, shared by the lakes of a root: a sensor opens one a tick."""
    memory = CatalogMemory(root, dict(storage_options))
    return ExternalCatalogs(dict(catalogs), root=root, token=token, memory=memory)


def _items(options: Mapping[str, str] | None) -> _Items:
    return tuple(sorted((options or {}).items()))


class Lake:
    """Delta tables under one root, and the stream tables among them.

    Creating one costs nothing: the first refresh with work to do finds or starts Spark. Threads may
    share one, and several processes may each have one over the same root: of two concurrent
    refreshes of one table, the second fails with `ConflictingCommit`.
    """

    @check_arguments
    def __init__(
        self,
        root: Annotated[str | Path, NON_EMPTY],
        *,
        spark: SparkSession | str | None = None,
        storage_options: Mapping[str, str] | None = None,
        driver_rows: Annotated[int, Range(0)] | None = None,
        preview_rows: Annotated[int, Range(0)] = 0,
        allow_unsafe_commits: bool = False,
        views: Iterable[View] = (),
        catalogs: Mapping[str, str] | None = None,
        catalog_token: str = "",
        register_in: str = "",
        ask_spark: bool = True,
    ) -> None:
        """
        Args:
            root: A folder, or the URI of one in an object store. The table ``sales.orders`` is
                ``<root>/sales/orders``, and ``orders`` is ``<root>/public/orders``.
            spark: A session, an address (``sc://…``, ``local[2]``), or None for the local server.
            storage_options: What delta-rs needs to reach an object store.
            driver_rows: A change of up to this many rows comes to this process and is committed by
                delta-rs; a larger one stays in Spark. None: 500,000 rows, or 2,000,000 narrow ones
                of some hundred bytes.
            preview_rows: Number of changed rows in the report of a differential refresh.
            allow_unsafe_commits: Whether Spark may commit to S3 by a log store that could erase
                the commits of other writers: only where Spark alone writes the tables.
            views: Queries that those of stream tables may name like tables. A stream table's own
                views take precedence.
            catalogs: Catalogs by the first parts of the names of their tables: the URL of a Unity
                Catalog, or ``spark`` for a catalog of the Spark session, as in
                ``{"main": "https://catalog.internal", "sales": "spark"}``.
            catalog_token: The bearer token for Unity Catalog.
            register_in: A catalog of the Spark session that gets each stream table after a refresh
                that created or rebuilt it; see `register`.
            ask_spark: Whether a table of a catalog of Spark may be looked up, which starts Spark;
                if not, only tables that were looked up before are known.
        """
        text = str(root)
        self.root = text if is_remote(text) else str(Path(text).expanduser().absolute())
        self.storage_options = storage_options
        self._catalogs = (
            ExternalCatalogs(
                catalogs,
                root=self.root,
                token=catalog_token,
                session=lambda: self.access.session(_LOOKUP).spark,
                memory=CatalogMemory(self.root, storage_options),
            )
            if ask_spark
            else _catalogs_without_spark(
                self.root, _items(storage_options), _items(catalogs), catalog_token
            )
        )
        self._catalog = TableCatalog(
            TableNames(self.root, self._catalogs), Logs(storage_options, self._catalogs)
        )
        self._register_in = register_in
        self._preview = preview_rows
        self._views = tuple(views)
        self.access = Access(self._catalog, self._views, spark, driver_rows, allow_unsafe_commits)
        """The tables and the Spark sessions, for what follows their changes."""
        self.slots = Slots(self.root, storage_options)
        """The durable positions of readers of changes."""

    @cached_property
    def controls(self) -> Controls:
        """Suspend or resume stream tables, and read their errors."""
        return Controls(self.root, self.storage_options, self._views)

    @cached_property
    def retention(self) -> Retention:
        """How far behind stream tables are and may be, and a vacuum that keeps what they need."""
        return Retention(self._catalog, self.slots, lambda name: self.access.session(name).spark)

    @cached_property
    def checks(self) -> Checks:
        """Whether a stream table is equal to its query, intact, fresh, and as defined."""
        return Checks(self._catalog, self.access.session_of, self._resolve_names)

    @cached_property
    def monitor(self) -> Monitor:
        """Status, history, statistics and events of stream tables, without Spark."""
        return Monitor(self._catalog, self.controls, self.retention)

    @check_arguments
    def refresh(
        self,
        table: StreamTable,
        *,
        full: bool = False,
        until: Mapping[str, datetime] | None = None,
        by_hand: bool = False,
    ) -> Refresh:
        """Bring a stream table up to the newest versions of its sources, in at most one commit.

        Versions that do not agree, because two sources reflect different versions of a third one,
        are never combined; see `alignment`.

        Args:
            table: The declaration. The table is created by its first refresh.
            full: Run the query again, whatever the change.
            until: Ignore later commits of sources that are not stream tables. Tables that are
                refreshed one after another with one `until` reflect one state.
            by_hand: A person tries it: an error does not count towards suspension.

        Raises:
            InvalidDefinition: The query cannot be maintained, or names what does not exist.
            MissingSource: A source does not exist, or is not a Delta table.
            ConflictingCommit: Another refresh of the table committed first; nothing was written.
            FailedQuery: The query fails on the rows of its sources; nothing was written.
            SuspendedTable: It was suspended, or failed too often; nothing was read.
        """
        clock = Stopwatch()
        table = with_views(table, self._views)
        try:
            with self.controls.watching(table, by_hand=by_hand), translate_final_errors():
                with clock.phase("log"):
                    require_conditional_puts(self.root, self.storage_options)
                    job = prepare(table, self._catalog, full=full, until=until)
                with closing(self._inputs(job, clock)) as inputs:
                    done = with_feeds(job, refreshing.run(job, inputs, clock), inputs)
                    if self._register_in and done.action is Action.REINITIALIZE:
                        return self._with_registration(table, done)
                    return done
        except StreamTablesError as error:
            placed = error.within(table.file or "", table.line)
            raise placed.about(table.name) from error.__cause__

    @check_arguments
    def refresh_all(
        self,
        tables: Iterable[StreamTable],
        *,
        full: bool = False,
        by_hand: bool = False,
        max_concurrent: Annotated[int, Range(1)] = 4,
        on_outcome: Callable[[Outcome], None] = lambda outcome: None,
    ) -> list[Outcome]:
        """Refresh tables, each after those of them that it reads, otherwise concurrently.

        If a table fails, those that read it are skipped; the others go on. All read their other
        sources as of the start of this call.

        Args:
            tables: The declarations, in any order.
            full: Run the queries again, whatever the change.
            by_hand: See `refresh`.
            max_concurrent: Number of concurrent refreshes, each in a thread, all on one Spark.
            on_outcome: Called with each outcome as it becomes known, in this thread.

        Raises:
            InvalidDefinition: Tables read one another in a cycle.
        """
        listed = list(tables)
        own, began = {table.name for table in listed}, datetime.now(UTC)
        declared = [
            with_exact_names(each, lambda name: match_name(name, own) or name) for each in listed
        ]

        def work(table: StreamTable) -> Refresh:
            until = {name: began for name in table.sources if name not in own}
            alike = until if len(declared) > 1 else None
            return self.refresh(table, full=full, until=alike, by_hand=by_hand)

        found: list[Outcome] = []
        for outcome in outcomes(declared, work, parallel=max_concurrent):
            found.append(outcome)
            on_outcome(outcome)
        return found

    def drop(self, name: str, *, even_if_read: bool = False, dry: bool = False) -> DropResult:
        """Delete a stream table, its intermediate tables and its control; see `drop`.

        Args:
            name: The table.
            even_if_read: Also if a stream table reads it.
            dry: Delete nothing; return what would be deleted.

        Raises:
            MissingSource: There is no such table.
            RefusedOperation: It is not a stream table, or another one reads it.
        """
        dropping = Dropping(self._catalog, self.controls, self.retention)
        return dropping.drop(name, even_if_read=even_if_read, dry=dry)

    def register(self, table: StreamTable, catalog: str) -> None:
        """Register a stream table in a catalog of the Spark session, as an external table with its
        description as comment. ``mart.revenue`` becomes ``<catalog>.mart.revenue``.

        Raises:
            MissingSource: The table does not exist yet.
            RefusedOperation: The catalog has another table of that name.
        """
        location = self._catalog.existing(table.name).location
        schema = "" if "." in table.name else f"{DEFAULT_SCHEMA}."
        spark = self.access.session(_LOOKUP).spark
        register(spark, f"{catalog}.{schema}{table.name}", location, table.description)

    @check_arguments
    def rename(self, old: str, new: str, tables: Iterable[StreamTable]) -> RenameResult:
        """Keep the stored rows, the history and the control of a stream table under another name.

        The declaration is renamed first, and has the same query. Stream tables that read it follow,
        if nothing but the name has changed in their declarations. A second call finishes one that
        was interrupted.

        Args:
            old: The name that is stored, and no longer declared.
            new: The name that is declared, and not stored yet.
            tables: All declarations.

        Raises:
            MissingSource: No table has the old name.
            RefusedOperation: The query is another one, the table is followed by a slot, the new
                name is stored already, or the tables are in an object store.
            ConflictingCommit: A refresh committed at the same time.
            InvalidDefinition: The declaration of the new name is invalid.
        """
        known = {each.name: with_views(each, self._views) for each in tables}
        return Renaming(self.access, self.controls, self.monitor, known, old, new).rename()

    @check_arguments
    def check(
        self, table: StreamTable, *, sample: Sample | None = None, seed: int | None = None
    ) -> Comparison:
        """Compare a stream table with its query; see `Checks.equality`."""
        return self.checks.equality(table, sample=sample, seed=seed)

    def plan(
        self, table: StreamTable, *, upstream: Mapping[str, Mapping[str, str | None]] | None = None
    ) -> Plan:
        """Compile a stream table's query, without Spark.

        Args:
            table: The declaration.
            upstream: The columns of stream tables that it reads and that do not exist yet, with
                their types; None for a type that is not known. See `planned_columns`.

        Raises:
            InvalidDefinition: The query cannot be maintained, or names what does not exist.
            MissingSource: The columns of a source are not known.
        """
        if self._catalogs.has(table.name):
            raise name_of_catalog(table.name)
        table = with_views(table, self._views)
        columns: dict[str, Mapping[str, str]] = {}
        known: dict[str, Mapping[str, str]] = {}
        for name in table.sources:
            log = self._catalog.newest(name)
            if log is not None:
                known[name] = columns[name] = visible_types(log.columns)
            elif upstream and name in upstream:
                types = upstream[name]  # a refresh compiles again, with the stored types
                columns[name] = {column: type_ or UNKNOWN for column, type_ in types.items()}
                known[name] = {
                    column: type_ for column, type_ in types.items() if type_ is not None
                }
            elif self.exact_name(name) != name:
                return self.plan(self._resolve_names(table), upstream=upstream)
            else:
                refuse_without_columns(table)
                raise self._catalog.missing(name, table, upstream or ())
        try:
            return stored_plan(table, table.text(known), columns)
        except UnknownType as error:
            if known == columns:
                raise
            raise error.with_parts(
                SourceProblem, fix="refresh the stream tables that it reads first, or add a cast"
            ) from None

    def explain(
        self, table: StreamTable, *, upstream: Mapping[str, Mapping[str, str | None]] | None = None
    ) -> Explanation:
        """How a table is maintained, or why its change cannot be computed; without Spark.

        Args:
            table: The declaration.
            upstream: As for `plan`.

        Raises:
            InvalidDefinition: The query is invalid, or names what does not exist.
            MissingSource: The columns of a source are not known.
        """
        try:
            plan = self.plan(table, upstream=upstream).with_intermediates
        except UnsupportedQuery as error:
            return Explanation(table.name, table.mode, table.sources, refusal=error)
        return Explanation(table.name, table.mode, table.sources, plan)

    def read(self, name: str) -> DataFrame:
        """The present rows of a table in Spark, without its hidden columns."""
        log = self._catalog.existing(self.exact_name(name))
        rows = at_version(self.access.session(name).spark, log.snapshot.table, log.version)
        return rows.select(*[spark_name(column) for column in visible_types(log.columns)])

    def location(self, name: str) -> str:
        """The path or URI of a table.

        Raises:
            MissingSource: The catalog of the name does not know it.
        """
        return self._catalog.names.location(name)

    def latest_versions(self) -> LatestVersions:
        """The newest commits of the tables, for frequent requests."""
        return LatestVersions(self._catalog.names.find, self.storage_options, self._catalogs)

    def exact_name(self, name: str) -> str:
        """The name of a table as the table is called, whose case may differ; see `TableCatalog`."""
        return self._catalog.exact_name(name)

    def version(self, name: str) -> int | None:
        """The newest Delta version of a table, found in milliseconds; None if missing."""
        log = self._catalog.newest(self.exact_name(name))
        return None if log is None else log.version

    def changed_at(self, name: str) -> datetime | None:
        """When rows of a table were last inserted, deleted or updated, by the time of that commit;
        None if there is no table, or if none of its last 100 commits changed rows."""
        log = self._catalog.newest(self.exact_name(name))
        return None if log is None else moment(log.changed_at)

    def columns(self, name: str) -> Mapping[str, str] | None:
        """The visible columns of a table and their types; None if there is no such table."""
        log = self._catalog.newest(self.exact_name(name))
        return None if log is None else visible_types(log.columns)

    def frontier(self, table: StreamTable) -> Mapping[str, int] | None:
        """The version of each source that the table reflects; None before its first refresh."""
        state = (stored := self._catalog.table_at(self.location(table.name))) and stored.state
        return state and state.frontier

    def _with_registration(self, table: StreamTable, done: Refresh) -> Refresh:
        """The report of a refresh, after registering its table. The refresh has committed, so an
        error of the catalog must not fail it."""
        try:
            self.register(table, self._register_in)
            said = f"registered in {self._register_in}"
        except Exception as error:
            said = f"it could not be registered in {self._register_in}"
            logger.warning("%s: %s: %s", table.name, said, error)
            said += f": {first_line(str(error))}"
        return replace(done, reason=f"{done.reason}; {said}")

    def _resolve_names(self, table: StreamTable) -> StreamTable:
        return with_exact_names(with_views(table, self._views), self._catalog.exact_name)

    def _inputs(self, job: Job, clock: Stopwatch) -> Inputs:
        def session() -> Views:
            with clock.phase(CONNECT):
                return self.access.session_of(job.table)

        state = job.stored.state if job.stored is not None else None
        return Inputs(
            session=session,
            stored=self._catalog.table_at,
            driver_rows=self.access.driver_rows,
            tables=job.tables,
            preview=self._preview,
            recursion=job.table.recursion,
            now=job.now,
            then=(state.now if state is not None else None) or job.now,
        )
