"""Create a slot, and export the snapshot from which on it holds the changes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.postgres.lsn import lsn_of
from dagster_streamtables.replication.postgres.server import Server

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

NAME = re.compile(r"[a-z0-9_]{1,63}")
OPEN = """
    SELECT coalesce('process ' || l.pid, 'a prepared transaction'), a.usename, a.application_name
    FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
"""


@dataclass(frozen=True)
class NewSlot:
    position: int
    """It holds the commits from here on; the snapshot shows those before."""
    snapshot: str | None
    """Until the next command on the connection that made it."""


def make_slot(
    server: Server, protocol: Connection, slot: str, *, temporary: bool, export: bool, wait: float
) -> NewSlot:
    """
    Args:
        server: The server.
        protocol: A connection for its replication protocol.
        slot: The name.
        temporary: Whether it goes with the connection.
        export: Whether its snapshot is wanted.
        wait: Seconds for which transactions may delay it that are open now.

    Raises:
        InvalidDefinition: A server takes no such name.
        PublisherProblem: They were open for longer. There is no slot.
    """
    import psycopg

    _require_name(slot)
    with server.errors():
        try:
            with _cancelled_after(protocol, wait):
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
    return NewSlot(lsn_of(row[1]), row[2])


def _require_name(slot: str) -> None:
    """The server would cut a name that is too long."""
    if NAME.fullmatch(slot) is None:
        raise InvalidDefinition(
            f'a slot of PostgreSQL cannot be called "{slot}"',
            fix="use up to 63 lower case letters (a to z), digits and underscores: --slot",
        )


def _command(protocol: Connection, slot: str, temporary: bool, export: bool) -> str:
    from psycopg import sql

    name = sql.Identifier(slot).as_string(protocol)
    if protocol.info.server_version < 170000:
        kind, use = ("TEMPORARY " if temporary else ""), ("EXPORT" if export else "NOEXPORT")
        return f"CREATE_REPLICATION_SLOT {name} {kind}LOGICAL pgoutput {use}_SNAPSHOT"
    snapshot = f"SNAPSHOT '{'export' if export else 'nothing'}'"
    if temporary:
        return f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput ({snapshot})"
    # A standby that takes over has it, too, if the server synchronizes its slots.
    return f"CREATE_REPLICATION_SLOT {name} LOGICAL pgoutput ({snapshot}, FAILOVER)"


@contextmanager
def _cancelled_after(protocol: Connection, seconds: float) -> Iterator[None]:
    """A statement_timeout does not end the waiting of the replication protocol."""
    timer = threading.Timer(seconds, protocol.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _open(server: Server) -> str:
    with server.session() as connection:
        rows = connection.execute(OPEN).fetchall()
    found = (", ".join(filter(None, row)) for row in rows)
    return "; ".join(found) or "they have ended now"
