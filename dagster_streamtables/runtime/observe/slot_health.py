"""How far a slot is behind its sources, how long it may stay so, and what it holds back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.delta.delta_log import Logs, TableLog
from dagster_streamtables.runtime.observe.health import health_of, out_of_use_since
from dagster_streamtables.runtime.observe.slots import Slot, VersionHold


@dataclass(frozen=True)
class SlotLag:
    """One source of one slot: how far the slot is behind, and how long it may stay so."""

    slot: str
    source: str
    location: str
    """The path or URI of the source."""
    acknowledged: int
    """The version of the source that the slot holds."""
    newest: int | None
    """None if the source no longer exists, or cannot be read."""
    bytes_behind: int | None
    """Size of the files added after the acknowledged version; None if that is unknown."""
    seconds_behind: float | None
    """Time since the first rows that are not acknowledged; 0 if all are, None if unknown."""
    seconds_left: float | None
    """Time until the source may delete what the slot needs, if not vacuumed by `Retention.vacuum`;
    below 0, it may do so at any time; None if the slot needs nothing."""
    lost: str
    """Why the changes can no longer be read; empty if they can."""

    @property
    def versions_behind(self) -> int | None:
        return None if self.newest is None else self.newest - self.acknowledged


@dataclass(frozen=True)
class SlotHealth:
    """A slot, and how far it is behind each of its sources."""

    slot: Slot
    sources: tuple[SlotLag, ...]

    @property
    def loss_reason(self) -> str:
        """Why its reader must begin anew; empty if it need not."""
        found = (f'"{each.source}": {each.lost}' for each in self.sources if each.lost)
        return self.slot.reason or "; ".join(found)

    def warning(self, before: timedelta, now: datetime | None = None) -> str:
        """A warning if it is lost, or may be within `before`; empty if not."""
        if self.loss_reason:
            return f'slot "{self.slot.name}" is lost: {self.loss_reason}'
        if self.slot.expires_within(before, now) and self.slot.expires_at is not None:
            at = self.slot.expires_at.isoformat(timespec="seconds")
            return f'slot "{self.slot.name}" is let go at {at} unless somebody uses it'
        return ""


def slot_health(slot: Slot, logs: Logs, now: datetime | None = None) -> SlotHealth:
    now = now or datetime.now(UTC)
    held = sorted(slot.held.items())
    return SlotHealth(slot, tuple(_lag(slot.name, name, each, logs, now) for name, each in held))


def _lag(slot: str, name: str, held: VersionHold, logs: Logs, now: datetime) -> SlotLag:
    try:
        log = logs.newest(held.location)
        health = health_of(slot, name, held.source_state, log)
        lost = health.lost or (_history_mismatch(held, log) if log is not None else "")
    except StreamTablesError as error:  # one that cannot be read must not hide the others
        unknown = (None, None, None, None)
        return SlotLag(slot, name, held.location, held.version, *unknown, lost=error.what)
    since = health.behind_since
    seconds = 0.0 if since is None else max(0.0, (now - since).total_seconds())
    return SlotLag(
        slot=slot,
        source=name,
        location=held.location,
        acknowledged=held.version,
        newest=health.newest,
        bytes_behind=health.bytes_behind,
        seconds_behind=None if health.is_missing else seconds,
        seconds_left=health.seconds_left,
        lost=lost,
    )


def _history_mismatch(held: VersionHold, log: TableLog) -> str:
    """Why its history is another one, as after a restore from a backup; empty if it is not."""
    commit = log.commit_at(held.version)
    if commit in (None, held.commit):  # None: the commit was deleted, which is no change
        return ""
    return f"version {held.version} of it is another commit now"


def needs_of_slots(slots: Iterable[Slot], log: TableLog, logs: Logs) -> Mapping[str, float]:
    """Since when, in seconds since 1970, slots need files that a table has removed, by slot.

    The table is found by its id, so it does not matter how a slot names or reaches it.
    """
    found: dict[str, float] = {}
    for slot in slots:
        for source, held in slot.held.items():
            if slot.is_lost or held.table != log.id or _has_lost_changes(slot, source, held, logs):
                continue
            since = out_of_use_since(log, held.version, log.version)
            if since is not None:
                found[slot.name] = min(since, found.get(slot.name, since))
    return found


def _has_lost_changes(slot: Slot, source: str, held: VersionHold, logs: Logs) -> bool:
    return bool(_lag(slot.name, source, held, logs, datetime.now(UTC)).lost)
