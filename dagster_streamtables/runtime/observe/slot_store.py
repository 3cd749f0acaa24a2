"""`Slot`: the acknowledged position of one durable reader of changes, and what it needs kept.

Each is a document, ``<root>/_streamtables/slots/<name>``, and every change of it is one commit. So
a slot has one reader, wherever readers run.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from dagster_streamtables.runtime.delta.actions import moment
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_locations import is_remote
from dagster_streamtables.runtime.errors import slot_errors as errors
from dagster_streamtables.runtime.model.table_state import SourceState
from dagster_streamtables.runtime.observe.latest_versions import answers
from dagster_streamtables.runtime.observe.lease import Lease, for_json
from dagster_streamtables.runtime.storage.documents import SHORT, Documents, without_format

_FORMAT = 1


class SlotStatus(enum.StrEnum):
    ACTIVE = "ACTIVE"
    LOST = "LOST"
    """It no longer keeps anything, so the changes after its position may be gone."""


@dataclass(frozen=True)
class VersionHold:
    """A version of a source that must stay readable, with all changes after it."""

    location: str
    table: str
    """The table's id: one that is dropped and recreated has another."""
    version: int
    commit: str
    """A digest of the commit, as in `Snapshot`."""
    committed_at: datetime | None = None

    @classmethod
    def of(cls, log: TableLog) -> VersionHold:
        at = moment(log.committed_at)
        return cls(log.location, log.id, log.version, log.commit, at)

    @property
    def source_state(self) -> SourceState:
        """The same as a stream table stores it."""
        return SourceState(self.table, self.version, {}, self.commit)


@dataclass(frozen=True)
class Slot:
    """A named position in the changes of a relation.

    It keeps what its reader has not acknowledged: `Retention.vacuum` leaves the versions that it
    holds, and the changes after them.
    """

    name: str
    relation: str
    """What is followed: the name of a table, or the text of a query."""
    fingerprint: str
    """Identifies the relation: a token of another subscription has another."""
    clock: str
    token: str
    """The acknowledged position, opaque here; empty if nothing was acknowledged."""
    held: Mapping[str, VersionHold]
    """By the name of each source."""
    created_at: datetime
    acked_at: datetime
    """When the position was last set."""
    used_at: datetime
    """When a reader last took, renewed, acknowledged or released it, or a person moved it."""
    deadline: float | None = None
    """The slot is lost if unused for this many seconds; None for never."""
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
        held: Mapping[str, VersionHold],
        token: str = "",
        deadline: timedelta | None = None,
    ) -> Slot:
        """A slot without a reader."""
        now, seconds = _now(), None if deadline is None else deadline.total_seconds()
        return cls(name, relation, fingerprint, clock, token, held, now, now, now, seconds)

    @property
    def is_lost(self) -> bool:
        return self.status is SlotStatus.LOST

    @property
    def expires_at(self) -> datetime | None:
        """When it is released unless a reader uses it; None if never, or if it is already lost."""
        if self.deadline is None or self.is_lost:
            return None
        end = self.used_at + timedelta(seconds=self.deadline)
        return end if self.reader is None else max(end, self.reader.until)

    def expires_within(self, time: timedelta, now: datetime | None = None) -> bool:
        """Whether it is released soon unless a reader uses it. Also true if it is overdue."""
        end = self.expires_at
        return end is not None and end <= (now or datetime.now(UTC)) + time

    def is_idle(self) -> bool:
        """Whether it has been unused for half of its deadline."""
        half = timedelta(seconds=(self.deadline or 0) / 2)
        return self.deadline is not None and self.expires_within(half)

    def require_reader(self, reader: str) -> Lease:
        """
        Raises:
            SlotInUse: It is not the slot's reader, or no longer.
            LostSlot: The slot was released.
        """
        current = self.reader
        if current is None or current.id != reader:
            raise errors.slot_takeover(self.name, str(current) if current is not None else "")
        if self.is_lost:
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

    def with_loss(self, why: str) -> Slot:
        return replace(self, status=SlotStatus.LOST, reason=why)

    def to_json(self) -> dict[str, Any]:
        return {"format": _FORMAT, **asdict(self, dict_factory=for_json)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Slot:
        """
        Raises:
            ValueError: Another format.
        """
        known = without_format(values, _FORMAT)
        for name in ("created_at", "acked_at", "used_at"):
            known[name] = datetime.fromisoformat(known[name])
        known["held"] = {name: _hold_from_json(each) for name, each in known["held"].items()}
        known["status"] = SlotStatus(known["status"])
        known["reader"] = known["reader"] and Lease.from_json(known["reader"])
        return cls(**known)


def _hold_from_json(values: Mapping[str, Any]) -> VersionHold:
    at = values["committed_at"]
    return VersionHold(**{**values, "committed_at": at and datetime.fromisoformat(at)})


_Changed = TypeVar("_Changed", Slot, None)


class Slots:
    """The slots below one root. Threads and processes may share them.

    Methods raise `InvalidDefinition` for what cannot be the name of a slot, and, except for
    `create`, `find` and `release`, `MissingSlot` if there is none of that name.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self._documents = Documents(root, "slots", Slot, storage_options, noun="slot", kept=SHORT)

    def names(self) -> list[str]:
        return [slot.name for slot in self.all()]

    def all(self) -> list[Slot]:
        """The slots, sorted by name.

        Raises:
            DamagedTable: One of them cannot be read.
        """
        found = answers(self.find, self._documents.names(), remote=is_remote(self._root))
        return [slot for slot in found if slot is not None]

    def find(self, name: str) -> Slot | None:
        return self._documents.find(name)

    def read(self, name: str) -> Slot:
        return self._existing(name, self.find(name))

    def create(self, slot: Slot) -> Slot:
        """
        Raises:
            RefusedOperation: There is one of that name.
        """

        def insert_slot(known: Slot | None) -> Slot:
            if known is not None:
                raise errors.existing_slot(slot.name, known.relation)
            return slot

        return self._documents.change(slot.name, insert_slot)

    def drop(self, name: str, *, even_if_read: bool = False) -> None:
        """Remove a slot, which then holds nothing.

        Raises:
            SlotInUse: A reader's lease runs.
        """

        def delete_slot(slot: Slot) -> None:
            if not even_if_read:
                slot.require_no_reader(_now())

        self.change(name, delete_slot)

    def take(
        self,
        name: str,
        reader: str,
        lease: timedelta,
        *,
        fingerprint: str | None = None,
        relation: str = "",
        restart: bool = False,
        lost: str = "",
    ) -> Slot:
        """Become the reader of a slot; an expired lease is taken over.

        Args:
            name: The slot.
            reader: Identifies the reader, who may take a slot that it already has.
            lease: How long no other reader may take it, unless it is renewed.
            fingerprint: The fingerprint of the relation to read; None for any.
            relation: That relation, as it is written.
            restart: A lost slot becomes active, without a position and without what it held.
            lost: Why its reader found it to be lost.

        Raises:
            SlotInUse: The lease of another reader runs.
            LostSlot: It is lost, and must not be restarted.
            RefusedOperation: It follows another relation.
        """

        def take_over(slot: Slot) -> Slot:
            now = _now()
            slot.require_no_reader(now, but=reader)
            if lost and not slot.is_lost:
                slot = slot.with_loss(lost)
            again = restart and slot.is_lost and relation == slot.relation
            if fingerprint not in (None, slot.fingerprint) and not again:
                raise errors.of_another_relation(name, slot.relation)
            if slot.is_lost and not restart:
                raise errors.lost_slot(name, slot.reason)
            if slot.is_lost:
                slot = replace(slot, status=SlotStatus.ACTIVE, reason="", token="", held={})
                # Its relation may have other columns by now.
                slot = replace(slot, fingerprint=fingerprint or slot.fingerprint)
            return replace(slot, reader=Lease.begin(lease, reader), used_at=now)

        return self.change(name, take_over)

    def ack(self, name: str, reader: str, token: str, held: Mapping[str, VersionHold]) -> Slot:
        """Move a slot forward to what its reader has processed, and renew the lease.

        Args:
            name: The slot.
            reader: Its reader. An ended lease is renewed if no other reader took the slot.
            token: The new position.
            held: What must stay readable from now on, by the name of each source.

        Raises:
            SlotInUse: Another reader took it over; nothing was written.
            LostSlot: It was released meanwhile.
            RefusedOperation: The position would go back.
        """

        def acknowledge(slot: Slot) -> Slot:
            now, mine = _now(), slot.require_reader(reader)
            for source, new in held.items():
                old = slot.held.get(source)
                same = old is not None and old.table == new.table
                if old is not None and same and new.version < old.version:
                    raise errors.goes_back(name, source, new.version, old.version)
            return replace(
                slot, token=token, held=dict(held), acked_at=now, used_at=now,
                reader=mine.extend(),
            )  # fmt: skip

        return self.change(name, acknowledge)

    def renew(self, name: str, reader: str) -> Slot:
        """Begin the lease again.

        Raises:
            SlotInUse: Another reader took it over.
            LostSlot: It was released meanwhile.
        """

        def renew_lease(slot: Slot) -> Slot:
            now = _now()
            return replace(slot, used_at=now, reader=slot.require_reader(reader).extend())

        return self.change(name, renew_lease)

    def touch(self, name: str) -> Slot:
        """Begin the deadline again, unless the slot is lost: a reader is waiting."""
        return self.change(name, lambda s: s if s.is_lost else replace(s, used_at=_now()))

    def release(self, name: str, reader: str) -> None:
        """End the lease of a reader, so that another need not wait. Does nothing if the slot has
        another reader, or does not exist."""

        def release_lease(slot: Slot) -> Slot:
            mine = slot.reader is not None and slot.reader.id == reader
            return replace(slot, used_at=_now(), reader=None) if mine else slot

        with suppress(errors.MissingSlot):
            self.change(name, release_lease)

    def move(
        self,
        name: str,
        token: str,
        held: Mapping[str, VersionHold],
        *,
        fingerprint: str | None = None,
    ) -> Slot:
        """Set the position by hand, forward or back; a lost slot becomes active.

        Args:
            name: The slot.
            token: The new position.
            held: As for `ack`.
            fingerprint: The fingerprint of the relation there; None if it has not changed.

        Raises:
            SlotInUse: A reader's lease runs.
        """

        def move_position(slot: Slot) -> Slot:
            now = _now()
            slot.require_no_reader(now)
            return replace(
                slot, token=token, held=dict(held), acked_at=now, used_at=now, reader=None,
                status=SlotStatus.ACTIVE, reason="", fingerprint=fingerprint or slot.fingerprint,
            )  # fmt: skip

        return self.change(name, move_position)

    def invalidate(self, name: str, why: str) -> Slot:
        """Release what a slot holds. The first reason stays."""
        return self.change(name, lambda slot: slot if slot.is_lost else slot.with_loss(why))

    def expire(self, now: datetime | None = None) -> list[Slot]:
        """Release the slots whose deadline has passed, and return them."""
        now = now or _now()
        due = [slot for slot in self.all() if slot.expires_within(timedelta(0), now)]
        return [each for slot in due if (each := self._expire(slot.name, now)) is not None]

    def _expire(self, name: str, now: datetime) -> Slot | None:
        def expire_slot(slot: Slot) -> Slot:
            # It may have been used since it was found to be due.
            if not slot.expires_within(timedelta(0), now):
                return slot
            last = slot.used_at.isoformat(timespec="seconds")
            return slot.with_loss(f"it has been unused since {last}, and its deadline has passed")

        with suppress(errors.MissingSlot):
            found = self.change(name, expire_slot)
            return found if found.is_lost else None
        return None

    def change(self, name: str, change: Callable[[Slot], _Changed]) -> _Changed:
        """Change an existing slot."""
        return self._documents.change(name, lambda slot: change(self._existing(name, slot)))

    def _existing(self, name: str, slot: Slot | None) -> Slot:
        if slot is None:
            raise errors.missing_slot(name, ", ".join(self.names()))
        return slot


def _now() -> datetime:
    return datetime.now(UTC)
