"""The slots of subscriptions: create one before its reader, move one by hand, read and move one."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from dagster_streamtables.changes.clock.clock import AsOf, Instant, SubscriptionClock
from dagster_streamtables.changes.position import (
    Position,
    StartPoint,
    SubscriptionRequest,
    position_of,
)
from dagster_streamtables.changes.relation.relation import SubscriptionRelation
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.errors.slot_errors import (
    MissingSlot,
    lost_slot,
    of_another_relation,
    slot_takeover,
)
from dagster_streamtables.runtime.model.table_catalog import TableCatalog
from dagster_streamtables.runtime.observe.lease import LENGTH
from dagster_streamtables.runtime.observe.slot_store import Slot, Slots, VersionHold


def new_slot(
    slots: Slots,
    name: str,
    relation: SubscriptionRelation,
    clock: SubscriptionClock,
    as_of: AsOf,
    *,
    snapshot: bool = True,
    deadline: timedelta | None = None,
) -> Slot:
    """Make a slot that holds what its first reader will need.

    Raises:
        RefusedOperation: There is one of that name, or the time is in the future.
        HistoryUnavailable: The time can no longer be read.
    """
    first = _first(clock, as_of)
    relation = relation.as_of(first.frontier)
    slot = Slot.new(
        name,
        relation.given,
        fingerprint=relation.fingerprint,
        clock=clock.name,
        held=_versions_at(first),
        token=Position.of(relation, clock.name, first, snapshot=snapshot).token,
        deadline=deadline,
    )
    return slots.create(slot)


def move_slot(
    slots: Slots,
    name: str,
    relation: SubscriptionRelation,
    clock: SubscriptionClock,
    as_of: AsOf,
    *,
    snapshot: bool,
) -> Slot:
    """Let the next reader of a slot begin at a time: with its rows, or with the changes after it.

    Raises:
        MissingSlot: There is none of that name.
        RefusedOperation: It follows another relation, or the time is in the future.
        HistoryUnavailable: It can no longer be read.
        SlotInUse: The slot is being read.
    """
    known = slots.read(name)
    if relation.given != known.relation:
        raise of_another_relation(name, known.relation)
    first = _first(clock, as_of)
    relation = relation.as_of(first.frontier)
    token = Position.of(relation, clock.name, first, snapshot=snapshot).token
    return slots.move(name, token, _versions_at(first), fingerprint=relation.fingerprint)


def _first(clock: SubscriptionClock, as_of: AsOf) -> Instant:
    first = clock.first(as_of)
    if first is None:
        raise RefusedOperation(
            f"a slot cannot begin at {as_of}",
            why="that time is in the future, and a slot holds versions that exist",
            fix="give a time that has passed, or none for now",
        )
    return first


def _versions_at(at: Instant) -> dict[str, VersionHold]:
    return {name: VersionHold.of(log) for name, log in at.frontier.items()}


_RENEW_AFTER = LENGTH.total_seconds() / 3


class SlotReader:
    """Holds a slot until it is released, or its process has been gone for a minute."""

    def __init__(self, slots: Slots, slot: Slot, reader: str, catalog: TableCatalog) -> None:
        self._slots, self._name, self._reader, self._catalog = slots, slot.name, reader, catalog
        self.position = position_of(slot.token) if slot.token else None
        """What was acknowledged last; None for nothing."""
        self._renewed = time.monotonic()
        self._acknowledged = slot.token
        self._released = False

    @classmethod
    def take(cls, slots: Slots, name: str, begin: StartPoint, *, restart: bool) -> SlotReader:
        """Become the reader of a slot.

        Raises:
            MissingSlot: There is none of that name.
            SlotInUse: Somebody else reads it.
            LostSlot: It was let go, and is not to be restarted.
            RefusedOperation: It is a slot of another relation.
        """
        reader = uuid.uuid4().hex
        relation = begin.relation
        slot = slots.take(
            name, reader, LENGTH, fingerprint=relation.fingerprint, relation=relation.given,
            restart=restart, lost=begin.lost,
        )  # fmt: skip
        return cls(slots, slot, reader, relation.access.catalog)

    def adjust_start(
        self, followed: SubscriptionRequest, begin: StartPoint, *, restart: bool
    ) -> StartPoint:
        """Where to begin with the position of the slot: it was made just now, or another reader
        moved it since it was looked up."""
        known = begin.position
        if self.position is None or (known is not None and known.token == self._acknowledged):
            return begin
        try:
            return followed.resume_at(self.position, restart=restart)
        except BaseException:
            self.release()
            raise

    def ack(self, position: Position) -> None:
        """Move the slot. A released one is taken for it, unless another reader moved it."""
        token = position.token
        if token == self._acknowledged:
            return
        held = versions_to_keep(position, self._catalog)
        if self._released:
            self._take_again()
        self._slots.ack(self._name, self._reader, token, held)
        self._acknowledged, self._renewed = token, time.monotonic()
        if self._released:
            self.release()

    def _take_again(self) -> None:
        slot = self._slots.take(self._name, self._reader, LENGTH)
        if slot.token != self._acknowledged:
            self.release()
            raise slot_takeover(self._name, "")

    def renew(self) -> None:
        """Keep others out while nothing is there to be acknowledged."""
        if time.monotonic() - self._renewed > _RENEW_AFTER:
            self._slots.renew(self._name, self._reader)
            self._renewed = time.monotonic()

    def release(self) -> None:
        self._released = True
        self._slots.release(self._name, self._reader)


def find_slot(slots: Slots, name: str, *, restart: bool) -> Slot | None:
    """The slot of a name, if there is one.

    Raises:
        LostSlot: It was let go, and is not to be restarted.
    """
    with suppress(MissingSlot):
        slot = slots.read(name)
        if slot.is_lost and not restart:
            raise lost_slot(name, slot.reason)
        return replace(slot, token="") if slot.is_lost else slot
    return None


def versions_to_keep(position: Position, catalog: TableCatalog) -> dict[str, VersionHold]:
    """What a vacuum must leave for a position."""
    found: dict[str, VersionHold] = {}
    for name, snapshot in position.frontier.items():
        log = catalog.at(name, snapshot.version)
        if log is not None:
            found[name] = VersionHold.of(log)
    return found
