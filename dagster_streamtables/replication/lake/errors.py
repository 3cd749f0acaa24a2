"""Errors of a lake that publishes."""

from __future__ import annotations

from dagster_streamtables.replication.model.errors import LostTable
from dagster_streamtables.runtime.errors.slots import LostSlot

_AGAIN = "drop the slot and copy its tables again, or take the table out of the replication"


def lost_table(slot: str, table: str, why: str) -> LostTable:
    return LostTable(
        f'slot "{slot}" has lost changes of "{table}"',
        why=why,
        fix="copy the table again, or take it out of the replication",
    )


def no_slot(slot: str) -> LostSlot:
    return LostSlot(
        f'there is no slot "{slot}" at the publisher',
        why="it was dropped, so nothing was kept",
        fix="copy the tables again, which makes it anew",
    )


def let_go(slot: str, reason: str) -> LostSlot:
    return LostSlot(f'slot "{slot}" was let go by the publisher', why=reason, fix=_AGAIN)
