"""`Monitor`: the stream tables below one root, observed through logs and controls only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dagster_streamtables.runtime.model.report import Refresh
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.observe.control import FailedRefresh
from dagster_streamtables.runtime.observe.controls import Controls
from dagster_streamtables.runtime.observe.events import (
    WARN_BEFORE,
    MonitorEvent,
    events_of,
    slot_events,
)
from dagster_streamtables.runtime.observe.heartbeat import Heartbeat, newest_heartbeats
from dagster_streamtables.runtime.observe.retention import Retention
from dagster_streamtables.runtime.observe.status import (
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
        return Statuses(self.catalog, controls, self.retention).of(tables, now or _now())

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

    def last_refresh(self, name: str) -> Refresh | None:
        """The newest committed refresh; None if there is none."""
        log = self.catalog.newest(name)
        return None if log is None else last_refresh(name, log, self.catalog.at)

    def failures(self, name: str) -> list[FailedRefresh]:
        """The newest failed attempts, newest first, even if a later one succeeded."""
        return list(self.controls.read(name).failures)

    def workers(self) -> dict[str, Heartbeat]:
        """What each worker that has ever run here said last, by its name."""
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
        now, tables = now or _now(), None if tables is None else list(tables)
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


def _now() -> datetime:
    return datetime.now(UTC)
