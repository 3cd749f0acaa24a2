"""`Monitor`: the stream tables below one root, observed through logs and controls only.

Nothing is stored for its events. Past ones come from logs and controls; a present state, such as a
stale table, is an event at the time it began, and leaves the list when it ends.

Orphaned tables are stored, but not declared. The log of a table does not contain its query, so only
declarations tell which stored tables are still refreshed: those of a folder, or of a code location.
Another code location over the same lake may declare what this one does not.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dagster_streamtables.amounts import count, duration
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh
from dagster_streamtables.runtime.model.refresh_work import meaning_in
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.observe.controls import Control, Controls, FailedRefresh
from dagster_streamtables.runtime.observe.lease import Heartbeat, newest_heartbeats
from dagster_streamtables.runtime.observe.retention import Retention
from dagster_streamtables.runtime.observe.source_health import SlotHealth
from dagster_streamtables.runtime.observe.table_status import (
    Condition,
    Deadline,
    Declarations,
    Status,
    Statuses,
    TableDeclaration,
)
from dagster_streamtables.runtime.storage.history import (
    PastRefresh,
    RefreshStatistics,
    last_refresh,
    past_refreshes,
    statistics,
)

WARN_BEFORE = timedelta(days=2)
"""A warning is given this long before a source may delete what the next refresh needs."""


class EventKind(enum.StrEnum):
    REFRESHED = "refreshed"
    REINITIALIZED = "reinitialized"
    """The query was run again, because the stored rows could not be updated."""
    FELL_BACK = "fell_back"
    """Its change should have been computed and could not be, so the query was run in full."""
    FAILED = "failed"
    """The last attempt, until one succeeds; `Monitor.failures` has the earlier ones."""
    SUSPENDED = "suspended"
    BROKEN = "broken"
    """Its declaration or its log is invalid, or a source no longer exists."""
    ORPHANED = "orphaned"
    """It is stored, and none of the given declarations has its name."""
    STALE = "stale"
    """It is staler than its schedule allows."""
    RETENTION = "retention"
    """A source may soon lose what the next refresh needs."""
    REINITIALIZE_NEEDED = "reinitialize_needed"
    """A source has lost what the next refresh needs."""
    SLOT_EXPIRES = "slot_expires"
    """A slot is released soon, unless a reader uses it."""
    SLOT_LOST = "slot_lost"
    """The changes after the position of a slot may be gone."""


ALERTS = frozenset(EventKind) - {
    EventKind.REFRESHED,
    EventKind.REINITIALIZED,
    EventKind.ORPHANED,  # declarations elsewhere may have its name
}
"""The events that need attention."""


@dataclass(frozen=True)
class MonitorEvent:
    time: datetime
    table: str
    """The stream table; for an event of a slot, the slot."""
    kind: EventKind
    message: str


def events_of(
    status: Status,
    control: Control,
    past: Iterable[PastRefresh],
    *,
    schedule: Deadline | None,
    now: datetime,
    warn_before: timedelta = WARN_BEFORE,
) -> list[MonitorEvent]:
    """The events of one table, newest first; `now` is the time of events that have no other."""
    if status.status is Condition.ORPHANED:  # no refresh follows that could be late or fail
        rows = "" if status.rows is None else f"; {count(status.rows, 'row')} stored"
        message = f"{status.why}{rows}"
        states = [MonitorEvent(now, status.table, EventKind.ORPHANED, message)]
    else:
        states = [
            *_attempts(status, control, now),
            *_staleness(status, schedule),
            *_retention(status, now, warn_before),
        ]
    found = [*_refreshes(past), *states]
    return sorted(found, key=lambda event: event.time, reverse=True)


def slot_events(
    slots: Iterable[SlotHealth], *, now: datetime, warn_before: timedelta = WARN_BEFORE
) -> Iterator[MonitorEvent]:
    """The events of slots that are lost, or will be."""
    for each in slots:
        said = each.warning(warn_before, now)
        if said:
            kind = EventKind.SLOT_LOST if each.loss_reason else EventKind.SLOT_EXPIRES
            yield MonitorEvent(now, each.slot.name, kind, said)


def _refreshes(past: Iterable[PastRefresh]) -> Iterator[MonitorEvent]:
    for each in past:
        again = each.action == Action.REINITIALIZE
        kind = EventKind.REINITIALIZED if again else EventKind.REFRESHED
        kind = EventKind.FELL_BACK if each.fallback else kind
        if each.time is not None:
            message = (
                f"{each.action}: {each.reason}; {count(each.inserted or 0, 'row')} stored, "
                f"{each.deleted or 0:,} deleted, {duration(each.seconds)}"
            )
            yield MonitorEvent(each.time, each.table, kind, message)


def _attempts(status: Status, control: Control, now: datetime) -> Iterator[MonitorEvent]:
    if status.error:
        row = "" if status.errors < 2 else f", {status.errors} errors in a row"
        at = status.error_at or now
        yield MonitorEvent(at, status.table, EventKind.FAILED, f"{status.error}{row}")
    if control.suspension:
        at = datetime.fromisoformat(control.suspended_at)
        yield MonitorEvent(at, status.table, EventKind.SUSPENDED, control.suspension)
    elif status.status is Condition.ERROR:
        yield MonitorEvent(now, status.table, EventKind.BROKEN, status.why)


def _staleness(status: Status, schedule: Deadline | None) -> Iterator[MonitorEvent]:
    if status.stale and schedule is not None and status.stale_since is not None:
        began = schedule.deadline(status.stale_since).astimezone(UTC)
        since = status.stale_since.isoformat(timespec="seconds")
        message = f"does not reflect the commit of {since}, and its schedule is {schedule.text}"
        yield MonitorEvent(began, status.table, EventKind.STALE, message)


def _retention(status: Status, now: datetime, warn_before: timedelta) -> Iterator[MonitorEvent]:
    for health in status.sources:
        said = health.warning(warn_before)
        if said and not health.is_missing:  # a missing source is reported as broken
            kind = EventKind.REINITIALIZE_NEEDED if health.lost else EventKind.RETENTION
            yield MonitorEvent(now, status.table, kind, said)


@dataclass(frozen=True)
class Monitor:
    """Statuses, histories and events of the stream tables below one root."""

    catalog: TableCatalog
    controls: Controls
    retention: Retention

    def status(self, tables: Declarations = None, *, now: datetime | None = None) -> list[Status]:
        """
        Args:
            tables: All declarations, by which stored tables that have none are found. None if they
                are not known: then no table counts as orphaned.
            now: The current time.
        """
        controls = self.controls.snapshot()
        return Statuses(self.catalog, controls, self.retention).of(tables, now or datetime.now(UTC))

    def history(self, name: str, limit: int | None = None) -> list[PastRefresh]:
        """The committed refreshes, newest first.

        Raises:
            MissingSource: There is no such table, and no refresh has tried to create it.
        """
        log = self.catalog.newest(name)
        if log is not None:
            return past_refreshes(name, log, limit)
        if not self.controls.read(name).failures:
            raise self.catalog.missing(name)
        return []

    def last_full(self, name: str) -> PastRefresh | None:
        """The newest refresh in the log that ran the whole query; None if missing.

        Raises:
            MissingSource: As `history`.
        """
        whole = (Action.FULL, Action.REINITIALIZE)
        return next((each for each in self.history(name) if each.action in whole), None)

    def last_refresh(self, name: str) -> Refresh | None:
        """The newest committed refresh; None if missing."""
        log = self.catalog.newest(name)
        return None if log is None else last_refresh(name, log, self.catalog.at)

    def failures(self, name: str) -> list[FailedRefresh]:
        """The newest failed attempts, newest first, even if a later one succeeded."""
        return list(self.controls.read(name).failures)

    def workers(self) -> dict[str, Heartbeat]:
        """The newest heartbeat of each worker that has ever run here, by its name."""
        return newest_heartbeats(self.catalog.names.root, self.catalog.logs.storage_options)

    def statistics(self, name: str) -> RefreshStatistics:
        return statistics(name, self.history(name))

    def events(
        self,
        tables: Declarations = None,
        *,
        limit: int | None = None,
        warn_before: timedelta = WARN_BEFORE,
        now: datetime | None = None,
    ) -> list[MonitorEvent]:
        """
        Args:
            tables: As for `status`.
            limit: Number of refreshes of each table to read, newest first.
            warn_before: Warn this long before history may be deleted.
            now: The current time.
        """
        now, tables = now or datetime.now(UTC), None if tables is None else list(tables)
        controls = self.controls.snapshot()
        schedules = {
            each.name: each.schedule for each in tables or () if isinstance(each, TableDeclaration)
        }
        found = [
            event
            for status in self.status(tables, now=now)
            for event in events_of(
                status,
                controls.read(status.table),
                self.history(status.table, limit) if status.populated else (),
                schedule=schedules.get(status.table),
                now=now,
                warn_before=warn_before,
            )
        ]
        found += slot_events(self.retention.slots(), now=now, warn_before=warn_before)
        return sorted(found, key=lambda event: event.time, reverse=True)


@dataclass(frozen=True)
class Orphan:
    """A stored table without a declaration."""

    table: str
    rows: int | None
    """None if its log does not have the number."""
    bytes: int | None
    refreshed_at: datetime | None
    """When a refresh last committed."""
    age_seconds: float | None
    """The time since then."""
    problem: str
    """Why its log cannot be read; empty if it can."""
    readers: tuple[str, ...]
    """The stream tables of this root that read it."""
    slots: tuple[str, ...]
    """The slots that follow it, or hold a version of it."""
    renamed: tuple[str, ...]
    """Declared tables that have its query and are not stored yet."""


def orphans(
    monitor: Monitor,
    tables: Iterable[StreamTable | TableDeclaration],
    *,
    now: datetime | None = None,
) -> list[Orphan]:
    """The stored tables without a declaration, by name; `tables` are all declarations."""
    declared, now = list(tables), now or datetime.now(UTC)
    statuses = monitor.status(declared, now=now)
    stored = {each.table for each in statuses if each.populated or each.unreadable}
    known = (each.table if isinstance(each, TableDeclaration) else each for each in declared)
    free = [each for each in known if each is not None and each.name not in stored]
    found: list[Orphan] = []
    for status in statuses:
        if not (status.status is Condition.ORPHANED or (status.unreadable and not status.declared)):
            continue
        name, at = status.table, status.refreshed_at
        place = monitor.catalog.names.own_location(name)
        alike = () if status.unreadable else tables_with_query(monitor.catalog, name, free)
        readers = (
            each.table
            for each in statuses
            if any(monitor.catalog.leads_to(source.source, place) for source in each.sources)
        )
        found.append(
            Orphan(
                table=name,
                rows=status.rows,
                bytes=status.bytes,
                refreshed_at=at,
                age_seconds=None if at is None else max(0.0, (now - at).total_seconds()),
                problem=status.why if status.unreadable else "",
                readers=tuple(readers),
                slots=monitor.retention.slots_of(name),
                renamed=alike,
            )
        )
    return found


def tables_with_query(
    catalog: TableCatalog, name: str, tables: Iterable[StreamTable]
) -> tuple[str, ...]:
    """The declared tables, given with their views, that have the query of a stored one: it may be
    renamed to one of them."""
    stored = catalog.table_at(catalog.names.own_location(name))
    state = stored.state if stored is not None else None
    meaning = meaning_in(state.query) if state is not None else ""
    return tuple(each.name for each in tables if meaning and _meaning(each) == meaning)


def _meaning(table: StreamTable) -> str:
    with suppress(StreamTablesError):  # reported when the table is examined
        return table.meaning
    return ""
