"""Logical slots of a server and their positions: how slots are created, moved and dropped.

A new slot comes with a snapshot, from which on it holds the changes.

A standby that is promoted begins a timeline. If it had not received all of the log, it writes other
changes at positions that the old server also had. `require_server_history` recognizes that.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dagster_streamtables.errors import InvalidDefinition, PublisherProblem
from dagster_streamtables.replication.postgres.postgres_server import PublisherServer, scalar
from dagster_streamtables.runtime.errors.slot_errors import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection


def lsn_of(text: str) -> int:
    """
    >>> lsn_of("1/16B3748")
    4318771016
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(lsn: int) -> str:
    """
    >>> lsn_text(4318771016)
    '1/16B3748'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


@dataclass(frozen=True)
class SlotPosition:
    """What `confirm` returns."""

    position: int
    timeline: int | None

    @classmethod
    def of(cls, text: str) -> SlotPosition:
        """
        >>> str(SlotPosition.of("0/16B3748 2"))
        '0/16B3748 2'
        """
        lsn, _, timeline = text.partition(" ")
        return cls(lsn_of(lsn), int(timeline) if timeline else None)

    def since(self, begin: int | None) -> SlotPosition:
        """Ignore what was confirmed before the slot began."""
        return self if begin is None or begin <= self.position else replace(self, position=begin)

    def __str__(self) -> str:
        return f"{lsn_text(self.position)} {self.timeline or ''}".strip()


# Servers report the status of a slot since 13, and why it was released since 14.
STATE = """
    SELECT s.confirmed_flush_lsn::text,
        s.plugin = 'pgoutput' AND s.database = current_database(),
        to_jsonb(s)->>'wal_status', to_jsonb(s)->>'invalidation_reason'
    FROM pg_replication_slots s WHERE s.slot_name = %s
"""
# Not pg_current_wal_lsn(): what is written but not flushed is not decoded yet.
FLUSHED = "SELECT pg_current_wal_flush_lsn()::text"


@dataclass(frozen=True)
class SlotState:
    position: int
    """It holds the changes after it."""
    is_ours: bool
    """Whether it decodes this database for pgoutput."""
    status: str | None = None
    reason: str | None = None


def slot_state(connection: Connection, slot: str) -> SlotState | None:
    """None if there is no such slot."""
    row = connection.execute(STATE, [slot]).fetchone()
    if row is None:
        return None
    confirmed, *rest = row
    return SlotState(lsn_of(confirmed or "0/0"), *rest)


def require_slot(connection: Connection, slot: str) -> SlotState:
    """
    Raises:
        LostSlot: It does not exist, or the server has released it.
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
            f'the server has released slot "{slot}"',
            why=state.reason or "its changes took more room than max_slot_wal_keep_size",
            fix="copy the tables again; refresh more often, or raise max_slot_wal_keep_size",
        )
    return state


def require_none(connection: Connection, slot: str) -> None:
    """Raise `PublisherProblem` if another program has created a slot of that name."""
    if slot_state(connection, slot) is not None:
        raise PublisherProblem(
            f'slot "{slot}" already exists, and the replication did not create it',
            why="its changes come by triggers so far, and are to come from a slot of that name",
            fix="drop that slot if nobody reads it: pg_drop_replication_slot",
        )


def _require_ours(state: SlotState, slot: str) -> None:
    if not state.is_ours:
        raise PublisherProblem(
            f'slot "{slot}" has another use',
            why="it is physical, of another database, or of another plugin than pgoutput",
            fix="choose another name for the slot, or drop that one: pg_drop_replication_slot",
        )


def require_slot_position(
    state: SlotState, slot: str, confirmed: int | None, after: Mapping[str, int]
) -> None:
    """A slot is behind its last position after a crash of the server, and never ahead.

    Raises:
        LostSlot: Another reader has moved it.
    """
    left = min(after.values())
    if confirmed is not None:
        left = min(left, confirmed)
    if state.position > left:
        raise _move_error(slot, state.position, left)


def _move_error(slot: str, at: int, left: int) -> LostSlot:
    return LostSlot(
        f'another reader has moved slot "{slot}"',
        why=f"it was left at {lsn_text(left)} and is at {lsn_text(at)}, so the changes between "
        "are gone",
        fix="copy the tables again; a slot has one reader, so create one for each",
    )


def wal_flush_position(connection: Connection) -> int:
    """Up to here the log can be decoded."""
    return lsn_of(scalar(connection, FLUSHED))


def advance(connection: Connection, slot: str, position: int) -> int:
    """Release the changes up to a position; return where the slot is now.

    Raises:
        LostSlot: There is no such slot, or another reader has moved it beyond the position.
    """
    state = require_slot(connection, slot)
    if state.position > position:
        raise _move_error(slot, state.position, position)
    if state.position == position:
        return position
    query = "SELECT end_lsn::text FROM pg_replication_slot_advance(%s, %s::pg_lsn)"
    return lsn_of(scalar(connection, query, [slot, lsn_text(position)]))


def drop(connection: Connection, slot: str) -> None:
    import psycopg

    state = slot_state(connection, slot)
    if state is None:
        return
    _require_ours(state, slot)
    # Another process may drop it at the same moment.
    with suppress(psycopg.errors.UndefinedObject):
        connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])


NAME = re.compile(r"[a-z0-9_]{1,63}")
OPEN = """
    SELECT coalesce('process ' || l.pid, 'a prepared transaction'), a.usename, a.application_name
    FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
"""


def make_slot(
    server: PublisherServer,
    protocol: Connection,
    slot: str,
    *,
    temporary: bool,
    export: bool,
    wait: float,
) -> tuple[int, str | None]:
    """
    Args:
        protocol: A connection for the replication protocol.
        temporary: Whether the slot ends with the connection.
        export: Whether its snapshot is wanted, for which it may have to wait longer.
        wait: Seconds to wait for the transactions that are open now.

    Returns:
        Its position, after which it holds the commits; and the snapshot that shows the earlier
        ones, valid until the next command on the connection (None if it was not exported).

    Raises:
        InvalidDefinition: A server takes no such name.
        PublisherProblem: They were open for longer. There is no slot.
    """
    import psycopg

    if NAME.fullmatch(slot) is None:  # the server would cut a name that is too long
        raise InvalidDefinition(
            f'a slot of PostgreSQL cannot be called "{slot}"',
            fix="use up to 63 lower case letters (a to z), digits and underscores: --slot",
        )
    with server.errors():
        try:
            with _cancel_after(protocol, wait):
                command = _command(protocol, slot, temporary, export)
                row = protocol.execute(command.encode()).fetchone()
        except psycopg.errors.QueryCanceled as error:
            raise PublisherProblem(
                f'slot "{slot}" cannot begin while transactions are open',
                why=f"for {wait:g} seconds it has waited for these: {_open(server)}",
                fix="end them (pg_terminate_backend, ROLLBACK PREPARED), or wait longer: "
                "slot_timeout",
            ) from error
    assert row is not None
    return lsn_of(row[1]), row[2]


def _command(protocol: Connection, slot: str, temporary: bool, export: bool) -> str:
    from psycopg import sql

    name = sql.Identifier(slot).as_string(protocol)
    kind = "TEMPORARY LOGICAL" if temporary else "LOGICAL"
    options = "EXPORT_SNAPSHOT" if export else "NOEXPORT_SNAPSHOT"
    if protocol.info.server_version >= 170000:
        # A standby that takes over also has it, if the server synchronizes its slots.
        failover = "" if temporary else ", FAILOVER"
        options = f"(SNAPSHOT '{'export' if export else 'nothing'}'{failover})"
    return f"CREATE_REPLICATION_SLOT {name} {kind} pgoutput {options}"


@contextmanager
def _cancel_after(protocol: Connection, seconds: float) -> Iterator[None]:
    """A statement_timeout does not end the waiting of the replication protocol."""
    timer = threading.Timer(seconds, protocol.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _open(server: PublisherServer) -> str:
    with server.session() as connection:
        rows = connection.execute(OPEN).fetchall()
    found = (", ".join(filter(None, row)) for row in rows)
    return "; ".join(found) or "they have ended now"


TIMELINE = """
    SELECT ('x' || substring(pg_walfile_name(pg_current_wal_flush_lsn()) FOR 8))::bit(32)::int4
"""


def timeline_of(connection: Connection) -> int:
    return scalar(connection, TIMELINE)


def require_server_history(
    server: PublisherServer,
    now: int,
    before: SlotPosition | None,
    after: Mapping[str, int],
    flushed: int,
) -> None:
    """
    Args:
        now: The server's timeline.
        before: What was confirmed last.
        after: By table, the position of what was applied last.
        flushed: The end of the server's log.

    Raises:
        LostSlot: The server never had what was read.
    """
    last = max(after.values())
    common = flushed
    if before is not None and before.timeline not in (None, now):
        common = min(flushed, _timeline_ends(server, now).get(before.timeline, 0))
    if last > common:
        raise LostSlot(
            f"PostgreSQL at {server.origin} lacks changes that were replicated",
            why=f"it was restored, or failed over to a standby, which has the log up to "
            f"{lsn_text(common)} only; {lsn_text(last)} was reached",
            fix="copy the tables again; with synchronized_standby_slots, a server sends no changes "
            "that its standbys lack",
        )


def _timeline_ends(server: PublisherServer, timeline: int) -> dict[int | None, int]:
    """Earlier timeline → the position where the server left it."""
    with server.replication() as protocol:
        row = protocol.execute(f"TIMELINE_HISTORY {timeline}".encode()).fetchone()
    assert row is not None
    content = row[1].decode() if isinstance(row[1], bytes) else row[1]
    lines = (line.split() for line in content.splitlines())
    return {int(each[0]): lsn_of(each[1]) for each in lines if each and each[0].isdigit()}
