"""Slots of subscriptions: make one ahead of its reader, or move one by hand."""

from __future__ import annotations

from datetime import timedelta

from dagster_streamtables.changes.clock.bounds import AsOf
from dagster_streamtables.changes.clock.clock import Instant, SubscriptionClock
from dagster_streamtables.changes.position import Position
from dagster_streamtables.changes.relation.relation import SubscriptionRelation
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.errors.slots import of_another_relation
from dagster_streamtables.runtime.observe.slots import Slot, Slots, VersionHold


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
