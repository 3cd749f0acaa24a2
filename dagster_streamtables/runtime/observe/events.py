"""The events of stream tables: past refreshes and failures, and present states.

Nothing is stored for them. Past events come from logs and controls; a present state, such as a
stale table, is an event at the time it began, and leaves the list when it ends.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dagster_streamtables.amounts import count, duration
from dagster_streamtables.runtime.model.report import Action
from dagster_streamtables.runtime.observe.control import Control
from dagster_streamtables.runtime.observe.slot_health import SlotHealth
from dagster_streamtables.runtime.observe.status import Condition, Deadline, Status
from dagster_streamtables.runtime.storage.history import PastRefresh

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
    """A slot is let go soon, unless somebody uses it."""
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
    """The events of one table, newest first.

    Args:
        status: Its status.
        control: Its attempts and its suspension.
        past: Its refreshes.
        schedule: When it is late; None if it never is.
        now: The time of events without a time of their own.
        warn_before: See `WARN_BEFORE`.
    """
    if status.status is Condition.ORPHANED:  # no refresh follows that could be late or fail
        states = [MonitorEvent(now, status.table, EventKind.ORPHANED, _as_orphan(status))]
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
            yield MonitorEvent(each.time, each.table, kind, _in_words(each))


def _as_orphan(status: Status) -> str:
    rows = "" if status.rows is None else f"; {count(status.rows, 'row')} stored"
    return f"{status.why}{rows}"


def _in_words(past: PastRefresh) -> str:
    return (
        f"{past.action}: {past.reason}; {count(past.inserted or 0, 'row')} stored, "
        f"{past.deleted or 0:,} deleted, {duration(past.seconds)}"
    )


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
