"""Logical slots of a server: what they hold, and how they are made, moved and dropped."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.postgres.lsn import lsn_of, lsn_text
from dagster_streamtables.runtime.errors.slots import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

# The status of a slot is told since 13, and why it was let go since 14.
STATE = """
    SELECT s.confirmed_flush_lsn::text, s.restart_lsn::text, s.active_pid,
        s.plugin = 'pgoutput' AND s.database = current_database(),
        to_jsonb(s)->>'wal_status', to_jsonb(s)->>'invalidation_reason'
    FROM pg_replication_slots s WHERE s.slot_name = %s
"""
# Not pg_current_wal_lsn(): what is written but not flushed is not decoded yet.
FLUSHED = "SELECT pg_current_wal_flush_lsn()::text"


@dataclass(frozen=True)
class SlotState:
    position: int
    """Changes behind it are held."""
    kept_from: int
    """The log is kept from here, for transactions that were open at the position."""
    reader: int | None
    """The process of the server that reads it."""
    is_ours: bool
    """Whether it decodes this database for pgoutput."""
    status: str | None = None
    reason: str | None = None


def slot_state(connection: Connection, slot: str) -> SlotState | None:
    """None if there is no such slot."""
    row = connection.execute(STATE, [slot]).fetchone()
    if row is None:
        return None
    confirmed, restart, *rest = row
    return SlotState(lsn_of(confirmed or "0/0"), lsn_of(restart or "0/0"), *rest)


def require_slot(connection: Connection, slot: str) -> SlotState:
    """
    Raises:
        LostSlot: There is none, or the server has let it go.
        PublisherProblem: It is of another kind.
    """
    state = slot_state(connection, slot)
    if state is None:
        raise LostSlot(
            f'the server has no slot "{slot}"',
            why="somebody dropped it, or the server was restored or failed over to another that "
            "does not have it",
            fix="copy the tables again",
        )
    _require_ours(state, slot)
    if state.status == "lost" or state.reason is not None:
        raise LostSlot(
            f'the server has let slot "{slot}" go',
            why=state.reason or "its changes took more room than max_slot_wal_keep_size",
            fix="copy the tables again; refresh more often, or raise max_slot_wal_keep_size",
        )
    return state


def require_none(connection: Connection, slot: str) -> None:
    """
    Raises:
        PublisherProblem: Somebody has made one of that name.
    """
    if slot_state(connection, slot) is not None:
        raise PublisherProblem(
            f'there is a slot "{slot}" already, which the replication has not made',
            why="its changes come by triggers so far, and are to come from a slot of that name",
            fix="drop that slot if nobody reads it: pg_drop_replication_slot",
        )


def _require_ours(state: SlotState, slot: str) -> None:
    if not state.is_ours:
        raise PublisherProblem(
            f'slot "{slot}" is of another use',
            why="it is physical, of another database, or of another plugin than pgoutput",
            fix="choose another name for the slot, or drop that one: pg_drop_replication_slot",
        )


def require_unmoved(
    state: SlotState, slot: str, confirmed: int | None, after: Mapping[str, int]
) -> None:
    """A slot is behind where it was left after a crash of the server, and never ahead.

    Raises:
        LostSlot: Somebody else has moved it.
    """
    left = min(after.values())
    if confirmed is not None:
        left = min(left, confirmed)
    if state.position > left:
        raise _moved(slot, state.position, left)


def _moved(slot: str, at: int, left: int) -> LostSlot:
    return LostSlot(
        f'somebody else has moved slot "{slot}"',
        why=f"it was left at {lsn_text(left)} and is at {lsn_text(at)}, so the changes between "
        "are gone",
        fix="copy the tables again; a slot has one reader, so create one for each",
    )


def flushed_to(connection: Connection) -> int:
    """Up to here the log can be decoded."""
    row = connection.execute(FLUSHED).fetchone()
    assert row is not None
    return lsn_of(row[0])


def advance(connection: Connection, slot: str, position: int) -> int:
    """Let the changes up to a position go; return where the slot is now.

    Raises:
        LostSlot: There is no such slot, or somebody else has moved it behind the position.
    """
    state = require_slot(connection, slot)
    if state.position > position:
        raise _moved(slot, state.position, position)
    if state.position == position:
        return position
    row = connection.execute(
        "SELECT end_lsn::text FROM pg_replication_slot_advance(%s, %s::pg_lsn)",
        [slot, lsn_text(position)],
    ).fetchone()
    assert row is not None
    return lsn_of(row[0])


def drop(connection: Connection, slot: str) -> None:
    import psycopg

    state = slot_state(connection, slot)
    if state is None:
        return
    _require_ours(state, slot)
    # Somebody else may drop it at the same moment.
    with suppress(psycopg.errors.UndefinedObject):
        connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
