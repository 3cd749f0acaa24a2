"""Windows: the transactions between two snapshots of the server, and their positions.

The changes of a transaction are visible in the log at once, when it commits, whatever its number
and those of its changes. So new is what one snapshot shows and the one before does not: nothing
that commits late is missed, and an open transaction holds nothing back. Both are stored before
anything is read, so a window has the same transactions however often it is read.

A position is one of the server's write-ahead log, as if the server decoded it: so positions grow in
both ways of capture. The last transaction of a window has the position of the log when the window
was made, and those before it the numbers below. There are enough, since each commit takes more than
a byte of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

from dagster_streamtables.replication.model.replication_model import Lag
from dagster_streamtables.replication.postgres.logical_slots import lsn_of, lsn_text
from dagster_streamtables.replication.postgres.postgres_server import scalar
from dagster_streamtables.replication.postgres.triggers.capture_objects import log_of
from dagster_streamtables.runtime.errors.slot_errors import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection
    from dagster_streamtables.replication.postgres.triggers.capture_objects import CaptureState

BETWEEN = """
    xid >= txid_snapshot_xmin({before}::txid_snapshot)
    AND xid < txid_snapshot_xmax({upto}::txid_snapshot)
    AND txid_visible_in_snapshot(xid, {upto}::txid_snapshot)
    AND NOT txid_visible_in_snapshot(xid, {before}::txid_snapshot)
"""
ADD = "INSERT INTO streamtables.windows VALUES (%s, %s, %s, %s, %s)"
TRANSACTIONS = """
    SELECT xid, changes, is_tangled FROM (
        SELECT xid, sum(changes)::int8 AS changes, bool_or(is_tangled) AS is_tangled,
            row_number() OVER (ORDER BY max(statement)) AS place
        FROM (
            SELECT xid, count(*) AS changes, max(statement) AS statement,
                count(DISTINCT statement) > 1 AND bool_or(op NOT IN ('I', 'T')) AS is_tangled
            FROM {log} LEFT JOIN (
                SELECT relation, name FROM streamtables.triggers WHERE slot = {slot}
            ) AS t USING (relation) WHERE {between} GROUP BY xid, name
        ) AS of_tables GROUP BY xid
    ) AS ordered WHERE place > {skipped} ORDER BY place LIMIT {limit}
"""
"""A transaction that changes a row after another has a greater last statement: its change waits for
the other to commit."""


@dataclass(frozen=True)
class WindowTransaction:
    """A transaction that is read."""

    xid: int
    """Its number at the server."""
    changes: int
    position: int
    is_tangled: bool
    """Whether several statements may have changed one row, so that their order can be told only
    from all changes."""


@dataclass(frozen=True)
class SnapshotWindow:
    position: int
    snapshot: str
    transactions: int = 0
    changes: int = 0

    @property
    def begin(self) -> int:
        """The position after which its transactions are."""
        return self.position - self.transactions


def windows_of(connection: Connection, slot: str) -> list[SnapshotWindow]:
    """In order. The first shows what was released."""
    query = (
        "SELECT position, snapshot::text, transactions, changes FROM streamtables.windows "
        "WHERE slot = %s ORDER BY position"
    )
    return [SnapshotWindow(*row) for row in connection.execute(query, [slot])]


def between(before: SnapshotWindow, upto: str) -> sql.Composed:
    """The condition of rows of a log."""
    return sql.SQL(BETWEEN).format(before=sql.Literal(before.snapshot), upto=sql.Literal(upto))


def snapshot_now(connection: Connection) -> str:
    return normalize_snapshot(scalar(connection, "SELECT txid_current_snapshot()::text"))


def normalize_snapshot(snapshot: str) -> str:
    """The snapshot of a slot may end before it begins, which the server does not read again.

    >>> normalize_snapshot("1038:1037:")
    '1038:1038:'
    """
    begin, end, open_ones = snapshot.split(":")
    return f"{begin}:{max(int(begin), int(end))}:{open_ones}"


def wal_insert_position(connection: Connection) -> int:
    """Where the next record of the server's write-ahead log begins."""
    return lsn_of(scalar(connection, "SELECT pg_current_wal_insert_lsn()::text"))


def first(connection: Connection, slot: str, snapshot: str, position: int) -> None:
    """Make the window of a new slot, which holds what the snapshot does not show."""
    connection.execute(ADD, [slot, position, snapshot, 0, 0])


def following(
    connection: Connection,
    capture: CaptureState,
    last: SnapshotWindow,
    upto: str,
    *,
    even_empty: bool = False,
    position: int | None = None,
) -> SnapshotWindow | None:
    """The window between the last one and a snapshot.

    Args:
        even_empty: Whether a window without changes is made.
        position: The position of the window; by default, the end of the server's log.
    """
    transactions, changes = _counts(connection, capture, last, upto)
    if not changes and not even_empty:
        return None
    end = position if position is not None else _behind(connection, last.position + transactions)
    assert end >= last.position + transactions, "positions grow"
    connection.execute(ADD, [capture.slot, end, upto, transactions, changes])
    return SnapshotWindow(end, upto, transactions, changes)


def _behind(connection: Connection, position: int) -> int:
    """The end of the server's log, beyond a position."""
    while (end := wal_insert_position(connection)) <= position:
        connection.execute(
            "SELECT pg_logical_emit_message(false, 'streamtables', repeat('.', %s))",
            [position - end + 1],
        )
    return end


def require_positions(
    windows: Sequence[SnapshotWindow], slot: str, after: Mapping[str, int]
) -> None:
    """Raise `LostSlot` if the server never gave these positions, or has released what follows
    them."""
    least = min(after.values())
    if not windows or least < windows[0].position:
        begin = lsn_text(windows[0].position) if windows else "no position"
        raise LostSlot(
            f'another session has released changes of slot "{slot}"',
            why=f"it was left at {lsn_text(least)}, and the log of its triggers begins at {begin}",
            fix="copy the tables again; a slot has one reader, so create one for each",
        )
    known = [range(each.begin, each.position + 1) for each in windows]
    for name, position in after.items():
        if not any(position in each for each in known):
            raise LostSlot(
                f'the server has lost the position up to which "{name}" was replicated',
                why=f"{lsn_text(position)} is not a position that the triggers of slot "
                f'"{slot}" have given: the server was restored, or failed over to a standby '
                "that lacked it",
                fix="copy the tables again",
            )


def choose_transactions(
    connection: Connection,
    capture: CaptureState,
    before: SnapshotWindow,
    window: SnapshotWindow,
    after: int,
    limit: int,
) -> list[WindowTransaction]:
    """Transactions of a window after a position."""
    skipped = max(0, after - window.begin)
    query = sql.SQL(TRANSACTIONS).format(
        log=log_of(capture.number),
        slot=sql.Literal(capture.slot),
        between=between(before, window.snapshot),
        skipped=sql.Literal(skipped),
        limit=sql.Literal(limit),
    )
    rows = connection.execute(query).fetchall()
    first = window.begin + skipped + 1
    return [
        WindowTransaction(xid, changes, first + i, is_tangled)
        for i, (xid, changes, is_tangled) in enumerate(rows)
    ]


def require_whole(
    connection: Connection, capture: CaptureState, before: SnapshotWindow, window: SnapshotWindow
) -> None:
    """Raise `LostSlot` if the log was changed."""
    counts = _counts(connection, capture, before, window.snapshot)
    if counts != (window.transactions, window.changes):
        raise LostSlot(
            f'another session has changed the log of the triggers of slot "{capture.slot}"',
            why=f"it had {window.changes} rows up to {lsn_text(window.position)}",
            fix="copy the tables again",
        )


def _counts(
    connection: Connection, capture: CaptureState, before: SnapshotWindow, upto: str
) -> tuple[int, int]:
    """The numbers of transactions and of changes between two snapshots."""
    query = sql.SQL("SELECT count(DISTINCT xid), count(*) FROM {} WHERE {}").format(
        log_of(capture.number), between(before, upto)
    )
    row = connection.execute(query).fetchone()
    assert row is not None
    return row[0], row[1]


def delete_windows(connection: Connection, capture: CaptureState, position: int) -> None:
    """Delete the windows up to a position, and their rows. The last of them stays, without rows."""
    done = [w for w in windows_of(connection, capture.slot) if w.position <= position]
    if len(done) < 2:
        return
    last = done[-1]
    with connection.transaction():
        query = sql.SQL("DELETE FROM {} WHERE txid_visible_in_snapshot(xid, {}::txid_snapshot)")
        connection.execute(query.format(log_of(capture.number), sql.Literal(last.snapshot)))
        connection.execute(
            "DELETE FROM streamtables.windows WHERE slot = %s AND position < %s",
            [capture.slot, last.position],
        )


QUERY = """
    SELECT count(DISTINCT xid), pg_total_relation_size({name}),
        coalesce(extract(epoch FROM clock_timestamp() - min(at)), 0)::float8
    FROM {log} WHERE NOT txid_visible_in_snapshot(xid, {snapshot}::txid_snapshot)
"""


def lag_of(connection: Connection, capture: CaptureState, applied: int) -> Lag:
    """The bytes are those of the log, which only the slot needs."""
    there = windows_of(connection, capture.slot)
    done = [each for each in there if each.position <= applied] or there[:1]
    log = log_of(capture.number)
    query = sql.SQL(QUERY).format(
        log=log,
        name=sql.Literal(log.as_string(connection)),
        snapshot=sql.Literal(done[-1].snapshot),
    )
    row = connection.execute(query).fetchone()
    assert row is not None
    commits, size, seconds = row
    # Of a window that was not applied to its end.
    commits -= sum(max(0, min(applied, each.position) - each.begin) for each in there[len(done) :])
    return Lag(commits=commits, bytes=size if commits else 0, seconds=max(0.0, seconds))
