"""The start of a refresh: the versions that it reads, and its stored table, as a `Job`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from dagster_streamtables.compiler import Plan, Text, View, asks_for_time
from dagster_streamtables.errors import UnsupportedQuery
from dagster_streamtables.runtime.delta.data_files import pads
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.errors.table_errors import MissingSource, name_of_catalog
from dagster_streamtables.runtime.model.costs import Costs, Effort
from dagster_streamtables.runtime.model.definition import (
    CHANGED_AT_TYPE,
    stored_plan,
    used_columns,
    visible_types,
)
from dagster_streamtables.runtime.model.refresh_work import fingerprint_of, with_present_names
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable
from dagster_streamtables.runtime.model.table_catalog import Source, TableCatalog, with_exact_names
from dagster_streamtables.runtime.model.table_state import (
    IntermediateState,
    RefreshRecord,
    SourceState,
    StreamTableState,
    TableInStorage,
    TableWithState,
    application,
    state_of,
)
from dagster_streamtables.runtime.refresh.alignment import TableLookup, align
from dagster_streamtables.runtime.storage.commit_target import ChangedAt, CommitTarget


@dataclass(frozen=True)
class Job:
    """The table, definition and source versions of one refresh."""

    table: StreamTable
    text: Text
    """Its query in Spark SQL with its views; for an intermediate table, the query of its stream
    table."""
    fingerprint: str
    plan: Plan | None
    """None in mode FULL, and in AUTO if the query cannot be maintained."""
    refusal: str | None
    location: str
    stored: TableInStorage | None
    sources: Mapping[str, Source]
    full: bool
    waiting: str | None = None
    """The reason to wait, if newer versions of its sources do not agree with each other."""
    later: str = ""
    """The time up to which sources with newer versions were read; empty if none has."""
    renewed: bool = False
    """Whether the fingerprint in the stored state is one of an older version."""
    blocked: bool = False
    """Whether no versions of its sources agree."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    intermediates: Mapping[str, IntermediateState] = field(
        default_factory=dict[str, IntermediateState]
    )
    """The known versions of intermediate tables that reflect the sources."""
    whole: str = ""
    """Fingerprint of a definition whose intermediate tables cannot be stored."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """The fingerprint of a definition whose column types forbid a change → the reason."""
    now: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    """The current time in the query."""
    keeps_times: bool = True
    """Whether the stored times of the rows' last changes can be read."""

    @cached_property
    def uses_time(self) -> bool:
        """Whether the query uses the current time, however it is maintained."""
        return self.plan.is_time_dependent if self.plan is not None else asks_for_time(self.text)

    @property
    def reflects_all(self) -> bool:
        """Whether the stored table already reflects these versions of the sources."""
        last = self.last_refresh
        versions = {name: source.log.version for name, source in self.sources.items()}
        return last is not None and last.state.frontier == versions

    @property
    def data_timestamp(self) -> float | None:
        """See `StreamTableState`."""
        states = self._states
        stamps = [
            source.log.committed_at if name not in states else states[name].data_timestamp
            for name, source in self.sources.items()
        ]
        return max((stamp for stamp in stamps if stamp is not None), default=None)

    @property
    def data_versions(self) -> dict[str, str]:
        """The data version of each source that is a stream table."""
        return {name: state.data_version for name, state in self._states.items()}

    @cached_property
    def _states(self) -> dict[str, StreamTableState]:
        """The state of each source that is a stream table."""
        found = {name: state_of(name, source.log) for name, source in self.sources.items()}
        return {name: state for name, state in found.items() if state is not None}

    @property
    def tables(self) -> tuple[TableLog, ...]:
        """The sources, and the stored table if there is one."""
        own = () if self.stored is None else (self.stored.log,)
        return (*(source.log for source in self.sources.values()), *own)

    @property
    def last_refresh(self) -> TableWithState | None:
        """The stored table with the state of its last refresh."""
        return self.stored.refreshed if self.stored is not None else None

    @property
    def counts(self) -> bool:
        """Whether the query may have all columns of a source, as `*` does."""
        return self.text.takes_all_columns

    @property
    def fits(self) -> bool:
        """Whether the stored rows can be updated by the change of the plan."""
        return self.last_refresh is not None and self.last_refresh.state.query == self.fingerprint

    @property
    def has_checked_columns(self) -> bool:
        """Whether the columns of the stored table were compared with those of the query."""
        return self.last_refresh is None or self.last_refresh.state.compared

    @property
    def key(self) -> tuple[str, ...] | None:
        """The columns that identify a row of the table; None for a bag."""
        return self.plan.key if self.plan is not None else None

    def without_intermediates(self, plan: Plan) -> Job:
        """The same job, maintained without intermediate tables."""
        plan = plan.whole or plan
        own = fingerprint_of(self.table, plan)
        return replace(self, plan=plan, fingerprint=own, intermediates={}, whole=self.fingerprint)

    def in_full(self, why: str) -> Job:
        """The same job in full, if mode AUTO finds column types that forbid a change."""
        own = fingerprint_of(self.table, None)
        read = {
            name: Source(name, source.log, used_columns(None, name, source.log))
            for name, source in self.sources.items()
        }
        return replace(
            self, plan=None, refusal=why, fingerprint=own, sources=read, intermediates={}, whole="",
            refused={self.whole or self.fingerprint: why},
        )  # fmt: skip

    @property
    def costs(self) -> Costs:
        """The effort of refreshes of this query."""
        last = self.last_refresh
        return last.costs if last is not None and self.fits else Costs()

    def target(
        self,
        account: RefreshRecord,
        *,
        changed: bool,
        replaces: bool = False,
        effort: Effort | None = None,
    ) -> CommitTarget:
        """The table to write, with the state for the commit."""
        before = self.last_refresh.state if self.last_refresh is not None else None
        kept = before if not changed else None  # rows that are not written stay as they are stored
        data_version = kept.data_version if kept is not None else uuid.uuid4().hex
        counts = before.counts if before is not None else {}
        state = StreamTableState(
            table=self.table.name,
            sequence=self.sequence,
            query=kept.query if kept is not None else self.fingerprint,
            sources={
                name: SourceState(
                    source.log.id,
                    source.log.version,
                    dict(source.columns),
                    source.log.commit,
                    source.encodings,
                    source.log.row_count,
                )
                for name, source in self.sources.items()
            },
            data_version=data_version,
            data_timestamp=self.data_timestamp,
            refresh=uuid.uuid4().hex,
            base=self.stored.log.version if self.stored is not None and not replaces else None,
            now=self.now if self.uses_time else None,
            effort=effort,
            costs=self.costs,
            intermediates=self.intermediates,
            whole=kept.whole if kept is not None else self.whole,
            refused=kept.refused if kept is not None else self.refused,
            account=account,
            counts={**counts, account.action: counts.get(account.action, 0) + 1},
            compared=True,
            changed_at=kept.changed_at if kept is not None else self.table.changed_at,
        )
        read = self.stored.log.version if self.stored is not None else -1
        rows = self.expected_rows
        return CommitTarget(
            self.location, state, self.key, self.storage_options, read, rows, self._changed_at
        )

    @property
    def _changed_at(self) -> ChangedAt | None:
        """The column with the time of each row's last change; None without it."""
        if not self.table.changed_at:
            return None
        last = self.last_refresh if self.keeps_times else None
        stored = last.state.changed_at if last is not None else ""
        if last is None or last.log.columns.get(stored) != CHANGED_AT_TYPE:
            return ChangedAt(self.table.changed_at, self.now)
        key = self.key if self.fits else None
        return ChangedAt(self.table.changed_at, self.now, stored, key or ())

    @property
    def expected_rows(self) -> int:
        """Approximate rows of the result: as stored, or else as in all sources together."""
        held = self.stored.log.row_count if self.stored is not None else None
        return held or sum(source.log.row_count or 0 for source in self.sources.values())

    @property
    def sequence(self) -> int:
        """One more than any refresh's commit in the log, even if its state cannot be read."""
        if self.stored is None:
            return 1
        known = self.stored.log.transaction(application(self.table.name))
        return (known or 0) + 1


Until = Mapping[str, datetime]


def prepare(
    table: StreamTable, catalog: TableCatalog, *, full: bool = False, until: Until | None
) -> Job:
    """The job of a refresh of a table.

    Raises:
        InvalidDefinition: The query cannot be maintained, or names what does not exist.
        MissingSource: A source does not exist, or is not a Delta table.
    """
    try:
        return _prepare_job(table, catalog, full=full, until=until)
    except MissingSource:  # the name of a source may be spelled in another case
        spelled = with_exact_names(table, catalog.exact_name)
        missing = [name for name in spelled.sources if catalog.newest(name) is None]
        if missing:
            raise catalog.missing(missing[0], spelled) from None
        return _prepare_job(spelled, catalog, full=full, until=until)


def _prepare_job(
    table: StreamTable, catalog: TableCatalog, *, full: bool, until: Until | None
) -> Job:
    location = catalog.names.own_location(table.name)
    if catalog.names.catalogs.has(table.name):
        raise name_of_catalog(table.name)
    stored = catalog.table_at(location)
    last = stored.state if stored is not None else None
    same = last is not None and set(last.frontier) == set(table.sources)
    consumed = last.frontier if last is not None and same else None
    newest = _newest(table.sources, catalog, until or {}, consumed or {})
    lookup = TableLookup(catalog.newest, catalog.at, catalog.state, catalog.name_by_id)
    agreed = align(newest, consumed, lookup)
    logs = agreed.logs or newest
    columns = {name: visible_types(log.columns) for name, log in logs.items()}
    text, plan, refusal = plan_query(table, columns)
    fingerprint = fingerprint_of(table, plan)
    known = stored
    if stored is not None:
        stored = with_present_names(table, text, plan, stored)
    state = stored.state if stored is not None else None
    used = {name: used_columns(plan, name, log) for name, log in logs.items()}
    job = Job(
        table=table,
        text=text,
        fingerprint=fingerprint,
        plan=plan,
        refusal=refusal,
        location=location,
        stored=stored,
        sources={name: Source(name, log, used[name]) for name, log in logs.items()},
        full=full,
        waiting=agreed.waiting,
        blocked=bool(newest) and not agreed.logs,
        storage_options=catalog.logs.storage_options,
        intermediates=state.intermediates if state is not None else {},
        renewed=stored is not known,
        later=_later(newest, catalog, until or {}),
    )
    refused = state.refused.get(fingerprint) if state is not None else None
    if refused is not None and table.mode is Mode.AUTO:
        if table.is_differential_only:
            raise UnsupportedQuery(
                "the types of the query's columns do not allow a change",
                why=refused,
                fix="set on_full to allow or warn, or change the query; the table is unchanged",
            )
        return job.in_full(refused)
    kept_whole = state is not None and state.whole == fingerprint
    if plan is None:
        return job
    # For Spark, CHAR(n) is not just text: `c = 'ab'` pads the literal. Stored, it is text.
    padded = plan.intermediates and any(pads(log, used[name]) for name, log in logs.items())
    return job.without_intermediates(plan) if kept_whole or padded else job


def plan_query(
    table: StreamTable, columns: Mapping[str, Mapping[str, str]]
) -> tuple[Text, Plan | None, str | None]:
    """The query in Spark SQL, its plan, and in mode AUTO why it has none.

    Raises:
        InvalidDefinition: The query cannot be maintained, or names a missing table or column.
    """
    text = table.text(columns)
    if table.mode is Mode.FULL:
        return text, None, None
    try:
        return text, stored_plan(table, text, columns).with_intermediates, None
    except UnsupportedQuery as error:
        if table.is_differential_only:
            raise
        return text, None, error.what


def with_views(table: StreamTable, views: Iterable[View]) -> StreamTable:
    """The table with more views; its own take precedence."""
    own = {view.name for view in table.views}
    more = [view for view in views if view.name not in own]
    return replace(table, views=(*table.views, *more)) if more else table


def _newest(
    sources: Iterable[str], catalog: TableCatalog, until: Until, consumed: Mapping[str, int]
) -> dict[str, TableLog]:
    read: dict[str, TableLog] = {}  # two names of one table are read at one version
    found: dict[str, TableLog] = {}
    for name in sources:
        place = catalog.names.find(name)
        if place is None:
            raise catalog.missing(name)
        if place not in read:
            read[place] = catalog.source(name, until.get(name), consumed.get(name, 0))
        found[name] = read[place]
    return found


def _later(read: Mapping[str, TableLog], catalog: TableCatalog, until: Until) -> str:
    """The time for which a source with newer versions was asked; empty without one."""
    for name, time in until.items():
        log = catalog.newest(name) if name in read else None
        if log is not None and log.version > read[name].version:
            return f"{time:%H:%M:%S}"
    return ""
