"""`Slots`: the durable positions of readers of changes, below one root.

Each slot is a document, ``<root>/_streamtables/slots/<name>``, and every change of it is one
commit. So a slot has one reader, wherever readers run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.errors import slots as errors
from dagster_streamtables.runtime.observe.lease import Lease
from dagster_streamtables.runtime.observe.log_heads import answers
from dagster_streamtables.runtime.observe.slot import Held, Slot, SlotStatus
from dagster_streamtables.runtime.storage.document import SHORT
from dagster_streamtables.runtime.storage.documents import Documents

_Changed = TypeVar("_Changed", Slot, None)


class Slots:
    """The slots below one root. Threads and processes may share them.

    Methods raise `InvalidDefinition` for what cannot be the name of a slot, and, except for
    `create`, `find` and `release`, `MissingSlot` if there is none of that name.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        """
        Args:
            root: As for `Lake`.
            storage_options: What delta-rs needs to reach an object store.
        """
        self._root = root.rstrip("/")
        self._documents = Documents(root, "slots", Slot, storage_options, noun="slot", kept=SHORT)

    def names(self) -> list[str]:
        """The names of the slots, sorted."""
        return [slot.name for slot in self.all()]

    def all(self) -> list[Slot]:
        """The slots, sorted by name.

        Raises:
            DamagedTable: One of them cannot be read.
        """
        found = answers(self.find, self._documents.names(), remote=is_remote(self._root))
        return [slot for slot in found if slot is not None]

    def find(self, name: str) -> Slot | None:
        """The slot of a name; None if there is none."""
        return self._documents.find(name)

    def read(self, name: str) -> Slot:
        return self._existing(name, self.find(name))

    def create(self, slot: Slot) -> Slot:
        """
        Raises:
            RefusedOperation: There is one of that name.
        """

        def created(known: Slot | None) -> Slot:
            if known is not None:
                raise errors.existing_slot(slot.name, known.relation)
            return slot

        return self._documents.change(slot.name, created)

    def drop(self, name: str, *, even_if_read: bool = False) -> None:
        """Remove a slot, which then holds nothing.

        Raises:
            SlotInUse: A reader's lease runs.
        """

        def dropped(slot: Slot) -> None:
            if not even_if_read:
                slot.require_no_reader(_now())

        self.change(name, dropped)

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
        """Become the reader of a slot, if nobody else is; an expired lease is taken over.

        Args:
            name: The slot.
            reader: Identifies the reader, who may take what it has.
            lease: How long nobody else may take it, unless it is renewed.
            fingerprint: That of the relation that is to be read; None for any.
            relation: That relation, as it is written.
            restart: A lost slot becomes active, without a position and without what it held.
            lost: Why it is lost, if its reader found that.

        Raises:
            SlotInUse: The lease of another reader runs.
            LostSlot: It is lost, and not to be restarted.
            RefusedOperation: It follows another relation.
        """

        def taken(slot: Slot) -> Slot:
            now = _now()
            slot.require_no_reader(now, but=reader)
            if lost and not slot.lost:
                slot = slot.let_go(lost)
            anew = restart and slot.lost and relation == slot.relation
            if fingerprint not in (None, slot.fingerprint) and not anew:
                raise errors.of_another_relation(name, slot.relation)
            if slot.lost and not restart:
                raise errors.lost_slot(name, slot.reason)
            if slot.lost:
                # What it follows may have other columns by now.
                follows = fingerprint or slot.fingerprint
                slot = replace(slot, status=SlotStatus.ACTIVE, reason="", fingerprint=follows)
                slot = replace(slot, token="", held={})
            return replace(slot, reader=Lease.begin(lease, reader), used_at=now)

        return self.change(name, taken)

    def ack(self, name: str, reader: str, token: str, held: Mapping[str, Held]) -> Slot:
        """Move a slot forward to what its reader has processed, and renew the lease.

        Args:
            name: The slot.
            reader: Its reader. A lease that ended is renewed if nobody else took the slot.
            token: The new position.
            held: What must stay readable from now on, by the name of each source.

        Raises:
            SlotInUse: Another reader took it over; nothing was written.
            LostSlot: It was let go meanwhile.
            RefusedOperation: The position would go back.
        """

        def acknowledged(slot: Slot) -> Slot:
            now, mine = _now(), slot.require_reader(reader)
            for source, new in held.items():
                old = slot.held.get(source)
                if old is not None and new.precedes(old):
                    raise errors.goes_back(name, source, new.version, old.version)
            return replace(
                slot, token=token, held=dict(held), acked_at=now, used_at=now,
                reader=mine.renewed(),
            )  # fmt: skip

        return self.change(name, acknowledged)

    def renew(self, name: str, reader: str) -> Slot:
        """Begin the lease anew.

        Raises:
            SlotInUse: Another reader took it over.
            LostSlot: It was let go meanwhile.
        """

        def renewed(slot: Slot) -> Slot:
            now = _now()
            return replace(slot, used_at=now, reader=slot.require_reader(reader).renewed())

        return self.change(name, renewed)

    def touch(self, name: str) -> Slot:
        """Begin the deadline anew, unless the slot is lost: somebody watches over it."""
        return self.change(name, lambda s: s if s.lost else replace(s, used_at=_now()))

    def release(self, name: str, reader: str) -> None:
        """End the lease of a reader, so that another need not wait. Does nothing if the slot has
        another reader, or does not exist."""

        def released(slot: Slot) -> Slot:
            mine = slot.reader is not None and slot.reader.id == reader
            return replace(slot, used_at=_now(), reader=None) if mine else slot

        with suppress(errors.MissingSlot):
            self.change(name, released)

    def move(
        self, name: str, token: str, held: Mapping[str, Held], *, fingerprint: str | None = None
    ) -> Slot:
        """Set the position by hand, forward or back. A lost slot becomes active.

        Args:
            name: The slot.
            token: The new position.
            held: What must stay readable from now on, by the name of each source.
            fingerprint: That of the relation at that position; None if it has not changed.

        Raises:
            SlotInUse: A reader's lease runs.
        """

        def moved(slot: Slot) -> Slot:
            now = _now()
            slot.require_no_reader(now)
            return replace(
                slot, token=token, held=dict(held), acked_at=now, used_at=now, reader=None,
                status=SlotStatus.ACTIVE, reason="", fingerprint=fingerprint or slot.fingerprint,
            )  # fmt: skip

        return self.change(name, moved)

    def mark_lost(self, name: str, why: str) -> Slot:
        """Let go of what a slot holds. The first reason stays."""
        return self.change(name, lambda slot: slot if slot.lost else slot.let_go(why))

    def expire(self, now: datetime | None = None) -> list[Slot]:
        """Let go of the slots whose deadline has passed, and return them."""
        now = now or _now()
        due = [slot for slot in self.all() if slot.expires_within(timedelta(0), now)]
        return [each for slot in due if (each := self._expire(slot.name, now)) is not None]

    def _expire(self, name: str, now: datetime) -> Slot | None:
        def expired(slot: Slot) -> Slot:
            # It may have been used since it was found to be due.
            if not slot.expires_within(timedelta(0), now):
                return slot
            last = slot.used_at.isoformat(timespec="seconds")
            return slot.let_go(f"nobody has used it since {last}, and its deadline has passed")

        with suppress(errors.MissingSlot):
            found = self.change(name, expired)
            return found if found.lost else None
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
