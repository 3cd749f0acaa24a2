"""`Slot`: the acknowledged position of one durable reader of changes, and what it needs kept."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableIdentity, TableLog
from dagster_streamtables.runtime.errors import slots as errors
from dagster_streamtables.runtime.model.state import Seen
from dagster_streamtables.runtime.observe.lease import Lease

_FORMAT = 1


class SlotStatus(enum.StrEnum):
    ACTIVE = "ACTIVE"
    LOST = "LOST"
    """It keeps nothing any more, so the changes after its position may be gone."""


@dataclass(frozen=True)
class Held:
    """A version of a source that must stay readable, with all changes after it."""

    location: str
    table: str
    """The table's id: one that is dropped and recreated has another."""
    version: int
    commit: str
    """A digest of the commit, as in `Snapshot`."""
    committed_at: datetime | None = None

    @classmethod
    def of(cls, log: TableLog) -> Held:
        """The version of a log."""
        at = log.committed_at
        stamp = None if at is None else datetime.fromtimestamp(at, UTC)
        return cls(log.location, log.id, log.version, log.commit, stamp)

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(TableIdentity(self.location, self.table), self.version, self.commit)

    @property
    def seen(self) -> Seen:
        """The same as a stream table stores it."""
        return Seen(self.table, self.version, {}, self.commit)

    def precedes(self, other: Held) -> bool:
        """Whether it is an earlier version of the same table."""
        return self.table == other.table and self.version < other.version


@dataclass(frozen=True)
class Slot:
    """A named position in the changes of a relation.

    A slot keeps what its reader has not acknowledged: `Retention.vacuum` leaves the versions that
    it holds, and the changes after them.
    """

    name: str
    relation: str
    """What is followed: the name of a table, or the text of a query."""
    fingerprint: str
    """Identifies the relation: a token of another subscription has another."""
    clock: str
    token: str
    """The acknowledged position, opaque here; empty if nothing was acknowledged."""
    held: Mapping[str, Held]
    """By the name of each source."""
    created_at: datetime
    acked_at: datetime
    """The last time that the position was set."""
    used_at: datetime
    """The last time that a reader took, renewed, acknowledged or released it, or a person moved
    it."""
    deadline: float | None = None
    """The slot is lost if nobody has used it for this many seconds; None for never."""
    status: SlotStatus = SlotStatus.ACTIVE
    reason: str = ""
    """Why it is lost; empty if it is not."""
    reader: Lease | None = None
    """The lease of the last reader, unless it has released the slot."""

    @classmethod
    def new(
        cls,
        name: str,
        relation: str,
        *,
        fingerprint: str,
        clock: str,
        held: Mapping[str, Held],
        token: str = "",
        deadline: timedelta | None = None,
        now: datetime | None = None,
    ) -> Slot:
        """A slot that nobody has read yet."""
        now = now or datetime.now(UTC)
        seconds = None if deadline is None else deadline.total_seconds()
        return cls(name, relation, fingerprint, clock, token, held, now, now, now, seconds)

    @property
    def lost(self) -> bool:
        return self.status is SlotStatus.LOST

    @property
    def expires_at(self) -> datetime | None:
        """When it is let go unless somebody uses it; None if never, or if it is lost already."""
        if self.deadline is None or self.lost:
            return None
        end = self.used_at + timedelta(seconds=self.deadline)
        return end if self.reader is None else max(end, self.reader.until)

    def expires_within(self, time: timedelta, now: datetime | None = None) -> bool:
        """Whether it is let go soon unless somebody uses it. Also true if it is overdue."""
        end = self.expires_at
        return end is not None and end <= (now or datetime.now(UTC)) + time

    def is_abandoned(self, now: datetime | None = None) -> bool:
        """Whether nobody has used it for half of its deadline."""
        return self.deadline is not None and self.expires_within(
            timedelta(seconds=self.deadline / 2), now
        )

    def require_reader(self, reader: str) -> Lease:
        """
        Raises:
            SlotInUse: It is not the slot's reader, or no longer.
            LostSlot: The slot was let go.
        """
        current = self.reader
        if current is None or current.id != reader:
            raise errors.taken_over(self.name, str(current) if current is not None else "")
        if self.lost:
            raise errors.lost_slot(self.name, self.reason)
        return current

    def require_no_reader(self, now: datetime, *, but: str = "") -> None:
        """
        Raises:
            SlotInUse: The lease of a reader runs, except for this one.
        """
        current = self.reader
        if current is not None and current.id != but and current.runs(now):
            until = current.until.isoformat(timespec="seconds")
            raise errors.slot_in_use(self.name, str(current), until)

    def let_go(self, why: str) -> Slot:
        return replace(self, status=SlotStatus.LOST, reason=why)

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {"format": _FORMAT, **_plain(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Slot:
        """
        Raises:
            ValueError: Another format.
        """
        known = dict(values)
        if known.pop("format", None) != _FORMAT:
            raise ValueError(f"it is not in the format {_FORMAT}")
        for name in ("created_at", "acked_at", "used_at"):
            known[name] = datetime.fromisoformat(known[name])
        known["held"] = {name: _held(each) for name, each in known["held"].items()}
        known["status"] = SlotStatus(known["status"])
        reader = known["reader"]
        known["reader"] = reader and Lease.from_json(reader)
        return cls(**known)


def _held(values: Mapping[str, Any]) -> Held:
    at = values["committed_at"]
    return Held(**{**values, "committed_at": at and datetime.fromisoformat(at)})


def _plain(value: Any) -> Any:
    match value:
        case Lease():
            return value.to_json()
        case Slot() | Held():
            return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        case datetime():
            return value.isoformat()
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
    return value
