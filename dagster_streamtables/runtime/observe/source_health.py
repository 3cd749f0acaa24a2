"""How far a stream table or a slot is behind its sources, and how long it may stay so."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dagster_streamtables.amounts import duration
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.delta.actions import changes_rows, moment
from dagster_streamtables.runtime.delta.data_files import missing_files
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import SourceChange, change_between
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.model.table_state import SourceState
from dagster_streamtables.runtime.observe.slot_store import Slot, VersionHold

_FILES = "delta.deletedFileRetentionDuration", "interval 1 week"
_LOG = "delta.logRetentionDuration", "interval 30 days"
_UNITS = {
    "week": 7 * 86400, "day": 86400, "hour": 3600, "minute": 60, "second": 1,
    "millisecond": 1e-3, "microsecond": 1e-6,
}  # fmt: skip
_PART = re.compile(rf"(\d+)\s*({'|'.join(_UNITS)})s?\b", re.IGNORECASE)
_LOOKED_FOR = 100  # files of the version before; to look up a million would take minutes


@dataclass(frozen=True)
class SourceHealth:
    """One source of one stream table: how far the table is behind, and how long it may stay so."""

    table: str
    source: str
    frontier: int
    """The version of the source that the stream table reflects."""
    newest: int | None
    """None if the source no longer exists."""
    bytes_behind: int | None
    """Size of the files added after the frontier; None if the log no longer has them."""
    capture: str
    """How the window would be read now, as a `Capture`; empty if the source no longer exists."""
    seconds_left: float | None
    """Time until the source may delete what the next refresh needs; below 0, it may do so at any
    time; None if the refresh needs nothing."""
    lost: str
    """Why the next refresh must rebuild the table; empty if it need not."""
    behind_since: datetime | None = None
    """The commit time of the first version whose rows the table does not reflect; None if it
    reflects all, or if that is unknown."""

    feed: bool | None = None
    """Whether it writes a Change Data Feed; None if it no longer exists."""

    @property
    def is_missing(self) -> bool:
        """Whether the source no longer exists: refreshes fail until it does."""
        return self.newest is None

    @property
    def versions_behind(self) -> int | None:
        return None if self.newest is None else self.newest - self.frontier

    def warning(self, before: timedelta) -> str:
        """A warning if history is lost, or may be within `before`; empty if not."""
        if self.is_missing:
            return f"{self.lost}, so refreshes fail until it exists"
        if self.lost:
            return f'"{self.source}": {self.lost}, so the next refresh rebuilds the table'
        if self.seconds_left is None or self.seconds_left >= before.total_seconds():
            return ""
        left = duration(max(0.0, self.seconds_left))
        return (
            f'"{self.source}" need not keep version {self.frontier} for more than {left}; '
            "refresh the table before that"
        )


def health_of(table: str, name: str, seen: SourceState, log: TableLog | None) -> SourceHealth:
    """The health of a source for a stream table. It is `name` in the query, `seen` at the frontier,
    and `log` now; None if it no longer exists."""
    if log is None:
        gone = f'there is no table "{name}"'
        return SourceHealth(table, name, seen.version, None, None, "", None, gone)
    change = change_between(log, seen.version)
    return SourceHealth(
        table=table,
        source=name,
        frontier=seen.version,
        newest=log.version,
        bytes_behind=_bytes(log, change),
        capture=str(change.capture),
        seconds_left=_remaining_seconds(log, change),
        lost=_loss_reason(log, change, seen),
        behind_since=moment(_behind_since(log, change, seen)),
        feed=log.has_feed,
    )


def _behind_since(log: TableLog, change: SourceChange, seen: SourceState) -> float | None:
    same = seen.id == log.id
    if same and not change.has_changes:
        return None
    # A shorter table with the same id replaced the source: nothing in it is newer.
    begin = -1 if not same else min(change.before, change.after)
    for version, commit in log.commits(begin, change.after):
        if any(changes_rows(action) for action in commit or ()):
            return log.time_of(version)
    return log.committed_at


def _remaining_seconds(log: TableLog, change: SourceChange) -> float | None:
    if change.before >= change.after:
        return None
    at, since = log.time_of(change.before), out_of_use_since(log, change.before, change.after)
    ends = [at + _seconds(log, *_LOG)] if at is not None else []
    ends += [since + files_kept_for(log)] if since is not None else []
    return min(ends) - time.time() if ends else None


def out_of_use_since(log: TableLog, before: int, after: int) -> float | None:
    """When the first of the files that a window needs became unused, or was written as feed."""
    for version, commit in log.commits(before, after):
        if any("remove" in action or "cdc" in action for action in commit or ()):
            return log.time_of(version)
    return None


def files_kept_for(log: TableLog) -> float:
    """How long unused files are kept, by the table's own setting, in seconds."""
    return _seconds(log, *_FILES)


def _seconds(log: TableLog, setting: str, default: str) -> float:
    """A setting that is an interval of Spark, in seconds; Delta accepts no months and years."""
    parts = _PART.findall(log.settings.get(setting, default)) or _PART.findall(default)
    return sum(int(number) * _UNITS[unit.lower()] for number, unit in parts)


def _loss_reason(log: TableLog, change: SourceChange, seen: SourceState) -> str:
    if seen.id != log.id:
        return "it was dropped and created again"
    if change.before > change.after:
        return f"it is at version {change.after}, before the {change.before} read last"
    if change.lost:
        return "the log no longer has all commits of the window"
    if not change.has_changes:
        return ""
    gone = missing_files(log, change.without_feed.removed[:_LOOKED_FOR])
    return f"files of version {change.before} are gone: {len(gone)}" if gone else ""


def _bytes(log: TableLog, change: SourceChange) -> int | None:
    if change.lost:
        return None
    return sum(
        action["add"]["size"]
        for _, commit in log.commits(change.before, change.after)
        for action in commit or ()
        if action.get("add", {}).get("dataChange")
    )


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
        """Why its reader must begin again; empty if it need not."""
        found = (f'"{each.source}": {each.lost}' for each in self.sources if each.lost)
        return self.slot.reason or "; ".join(found)

    def warning(self, before: timedelta, now: datetime | None = None) -> str:
        """A warning if it is lost, or may be within `before`; empty if not."""
        if self.loss_reason:
            return f'slot "{self.slot.name}" is lost: {self.loss_reason}'
        if self.slot.expires_within(before, now) and self.slot.expires_at is not None:
            at = self.slot.expires_at.isoformat(timespec="seconds")
            return f'slot "{self.slot.name}" is released at {at} unless a reader uses it'
        return ""


def slot_health(slot: Slot, catalog: TableCatalog) -> SlotHealth:
    now, held = datetime.now(UTC), sorted(slot.held.items())
    return SlotHealth(slot, tuple(_lag(slot.name, name, each, catalog, now) for name, each in held))


def _lag(slot: str, name: str, held: VersionHold, catalog: TableCatalog, now: datetime) -> SlotLag:
    try:
        log = catalog.newest_at(name, held.location)
        health = health_of(slot, name, held.source_state, log)
        lost = health.lost
        if not lost and log is not None:
            commit = log.commit_at(held.version)
            # A deleted commit is no change; another one is, as after a restore from a backup.
            if commit not in (None, held.commit):
                lost = f"version {held.version} of it is another commit now"
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


def needs_of_slots(
    slots: Iterable[Slot], log: TableLog, catalog: TableCatalog
) -> Mapping[str, float]:
    """Since when, in seconds since 1970, slots need files that a table has removed, by slot.

    The table is found by its id, so it does not matter how a slot names or reaches it.
    """
    found: dict[str, float] = {}
    for slot in slots:
        for source, held in slot.held.items():
            if slot.is_lost or held.table != log.id:
                continue
            if _lag(slot.name, source, held, catalog, datetime.now(UTC)).lost:
                continue
            since = out_of_use_since(log, held.version, log.version)
            if since is not None:
                found[slot.name] = min(since, found.get(slot.name, since))
    return found
