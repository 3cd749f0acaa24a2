"""`CaptureState`: how the changes of a slot come, where triggers have anything to do with it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.replication.postgres.triggers.server_objects import (
    is_there,
    make_log,
    make_tables,
    place_of,
)
from dagster_streamtables.runtime.errors.slots import LostSlot, SlotInUse

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

LOCK = """
    SET lock_timeout = '5s';
    SELECT pg_advisory_lock(hashtextextended({name}, 0));
    SET lock_timeout = '1min'
"""
"""The server notices within a moment that a process has ended which had it."""


class CaptureMethod(enum.StrEnum):
    TRIGGER = "TRIGGER"
    TO_WAL = "TO_WAL"
    """Triggers up to the turn, then the server's log. Without a turn, its slot is not made yet."""
    TO_TRIGGER = "TO_TRIGGER"
    """The server's log up to the turn, then triggers. Without a turn, there are none yet."""


@dataclass(frozen=True)
class CaptureState:
    slot: str
    number: int
    """Of its log and its function."""
    way: CaptureMethod
    turn: int | None
    """The position where the way changes."""
    reason: str | None
    """Why the last attempt to change it failed."""


def find_capture(connection: Connection, slot: str) -> CaptureState | None:
    """None if triggers have nothing to do with the slot.

    Raises:
        LostSlot: The database was copied to where it is now.
    """
    if not is_there(connection):
        return None
    query = (
        "SELECT slot, number, way, turn, reason, place FROM streamtables.captures WHERE slot = %s"
    )
    row = connection.execute(query, [slot]).fetchone()
    if row is None:
        return None
    if row[5] != place_of(connection):
        raise LostSlot(
            f'the triggers of slot "{slot}" are of another database',
            why="it was restored or copied to where it is now, and changes have come to neither "
            "both nor one of the two",
            fix="drop the slot, and copy the tables again",
        )
    return CaptureState(row[0], row[1], CaptureMethod(row[2]), row[3], row[4])


def begin(connection: Connection, slot: str, way: CaptureMethod) -> CaptureState:
    """Make what there is for a slot; do nothing if it is there."""
    make_tables(connection)
    with connection.transaction():
        connection.execute(
            "INSERT INTO streamtables.captures (slot, way, place) VALUES (%s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            [slot, way, place_of(connection)],
        )
        found = find_capture(connection, slot)
        assert found is not None
        make_log(connection, found.number)
    return found


def change(connection: Connection, slot: str, way: CaptureMethod, turn: int | None) -> None:
    connection.execute(
        "UPDATE streamtables.captures SET way = %s, turn = %s, reason = NULL WHERE slot = %s",
        [way, turn, slot],
    )


def lock_slot(connection: Connection, slot: str) -> None:
    """Until the connection is closed.

    Raises:
        SlotInUse: Another has it.
    """
    from psycopg import errors, sql

    try:
        connection.execute(sql.SQL(LOCK).format(name=sql.Literal(f"streamtables {slot}")))
    except errors.LockNotAvailable as error:
        raise SlotInUse(
            f'slot "{slot}" is read by another process',
            why="its changes come by triggers, whose log one process at a time reads",
            fix="end that process, or wait; a slot has one reader, so create one for each",
        ) from error
