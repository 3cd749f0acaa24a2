"""Errors of slots."""

from __future__ import annotations

from dagster_streamtables.errors import RefusedOperation, SourceProblem


class MissingSlot(RefusedOperation):
    """There is no slot of that name."""


class SlotInUse(RefusedOperation):
    """Another reader has the slot."""


class LostSlot(SourceProblem):
    """The slot was released, so what it held may be deleted: read the relation again."""


def missing_slot(name: str, there: str) -> MissingSlot:
    return MissingSlot(
        f'there is no slot "{name}"', fix=f"create it, or name one of these: {there or 'none yet'}"
    )


def existing_slot(name: str, relation: str) -> RefusedOperation:
    return RefusedOperation(
        f'slot "{name}" already exists',
        why=f"it follows {relation}",
        fix="choose another name, or drop it first (streamtables slots drop)",
    )


def of_another_relation(name: str, relation: str) -> RefusedOperation:
    return RefusedOperation(
        f'slot "{name}" follows another relation',
        why=f"it was created for {relation}, in that form",
        fix="subscribe to that one, or create another slot",
    )


def slot_in_use(name: str, reader: str, until: str) -> SlotInUse:
    return SlotInUse(
        f'slot "{name}" has a reader',
        why=f"{reader} reads it, until {until} if it does not renew its lease",
        fix="end that reader, or wait; a slot has one reader, so create one for each",
    )


def slot_takeover(name: str, reader: str) -> SlotInUse:
    now = f"{reader} reads it now" if reader else "it was released"
    return SlotInUse(
        f'slot "{name}" is no longer read by this reader',
        why=f"its lease ended, and {now}",
        fix="subscribe again: the slot goes on where it was acknowledged; renew the lease in time",
    )


def lost_slot(name: str, reason: str) -> LostSlot:
    return LostSlot(
        f'slot "{name}" is lost',
        why=reason,
        fix='begin with a new snapshot (on_history_lost="resnapshot"), move it by hand '
        "(streamtables slots move), or drop it",
    )


def goes_back(name: str, source: str, to: int, at: int) -> RefusedOperation:
    return RefusedOperation(
        f'slot "{name}" cannot go back',
        why=f"version {at} of {source} is acknowledged, and this is version {to}",
        fix="acknowledge in the order of the changes; to read again, move the slot by hand",
    )
