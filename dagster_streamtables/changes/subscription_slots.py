"""The slots of subscriptions: create one before its reader, move one by hand, read and move one."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from datetime import timedelta

from dagster_streamtables.changes.clock.clock import AsOf
from dagster_streamtables.changes.position import (
    Position,
    StartPoint,
    SubscriptionRequest,
    position_of,
)
from dagster_streamtables.changes.relation.relation import SubscriptionRelation
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.errors.slot_errors import (
    lost_slot,
    of_another_relation,
    slot_takeover,
)
from dagster_streamtables.runtime.observe.lease import LENGTH
from dagster_streamtables.runtime.observe.slot_store import Slot, Slots, VersionHold


def new_slot(
    slots: Slots, name: str, begin: StartPoint, as_of: AsOf, *, deadline: timedelta | None
) -> Slot:
    """Create a slot that holds what its first reader will need.

    Raises:
        RefusedOperation: The name is taken, or the time is in the future.
        HistoryUnavailable: The time can no longer be read.
    """
    relation, token, held = _slot_start(begin, as_of)
    slot = Slot.new(
        name, relation.given, fingerprint=relation.fingerprint, clock=begin.clock.name, held=held,
        token=token, deadline=deadline,
    )  # fmt: skip
    return slots.create(slot)


def move_slot(slots: Slots, name: str, begin: StartPoint, as_of: AsOf) -> Slot:
    """Let the next reader of a slot begin at a time: with its rows, or with the changes after it.

    Raises:
        MissingSlot: It does not exist.
        RefusedOperation: It follows another relation, or the time is in the future.
        HistoryUnavailable: It can no longer be read.
        SlotInUse: The slot is being read.
    """
    known = slots.read(name)
    if begin.relation.given != known.relation:
        raise of_another_relation(name, known.relation)
    relation, token, held = _slot_start(begin, as_of)
    return slots.move(name, token, held, fingerprint=relation.fingerprint)


def _slot_start(
    begin: StartPoint, as_of: AsOf
) -> tuple[SubscriptionRelation, str, dict[str, VersionHold]]:
    """The relation, the position and the versions to hold of a slot that begins at a time."""
    first = begin.clock.first(as_of)
    if first is None:
        raise RefusedOperation(
            f"a slot cannot begin at {as_of}",
            why="that time is in the future, and a slot holds versions that exist",
            fix="give a time that has passed, or none for now",
        )
    relation = begin.relation.as_of(first.frontier)
    position = Position.of(relation, begin.clock.name, first, snapshot=begin.snapshot)
    held = {name: VersionHold.of(log) for name, log in first.frontier.items()}
    return relation, position.token, held


_RENEW_AFTER = LENGTH.total_seconds() / 3


class SlotReader:
    """Holds a slot until it is released, or its process has been gone for a minute."""

    def __init__(self, slots: Slots, name: str, begin: StartPoint, *, restart: bool) -> None:
        """Become the reader of a slot.

        Raises:
            MissingSlot: It does not exist.
            SlotInUse: It has another reader.
            LostSlot: It was released, and must not be restarted.
            RefusedOperation: It is a slot of another relation.
        """
        relation = begin.relation
        self._slots, self._name, self._reader = slots, name, uuid.uuid4().hex
        self._catalog = relation.access.catalog
        slot = slots.take(
            name, self._reader, LENGTH, fingerprint=relation.fingerprint, relation=relation.given,
            restart=restart, lost=begin.lost,
        )  # fmt: skip
        self.position = position_of(slot.token) if slot.token else None
        """What was acknowledged last; None for nothing."""
        self._renewed = time.monotonic()
        self._acknowledged = slot.token
        self._released = False

    def adjust_start(
        self, followed: SubscriptionRequest, begin: StartPoint, *, restart: bool
    ) -> StartPoint:
        """The start at the position of the slot, if that was created or moved after `begin`."""
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
        frontier = position.frontier.items()
        logs = ((name, self._catalog.at(name, each.version)) for name, each in frontier)
        held = {name: VersionHold.of(log) for name, log in logs if log is not None}
        if self._released:
            slot = self._slots.take(self._name, self._reader, LENGTH)
            if slot.token != self._acknowledged:
                self.release()
                raise slot_takeover(self._name, "")
        self._slots.ack(self._name, self._reader, token, held)
        self._acknowledged, self._renewed = token, time.monotonic()
        if self._released:
            self.release()

    def renew(self) -> None:
        """Keep others out while there is nothing to acknowledge."""
        if time.monotonic() - self._renewed > _RENEW_AFTER:
            self._slots.renew(self._name, self._reader)
            self._renewed = time.monotonic()

    def release(self) -> None:
        self._released = True
        self._slots.release(self._name, self._reader)


def find_slot(slots: Slots, name: str, *, restart: bool) -> Slot | None:
    """The slot of a name; None if missing.

    Raises:
        LostSlot: It was released, and must not be restarted.
    """
    slot = slots.find(name)
    if slot is None or not slot.is_lost:
        return slot
    if not restart:
        raise lost_slot(name, slot.reason)
    return replace(slot, token="")
