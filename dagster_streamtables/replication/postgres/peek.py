"""The messages that a slot holds, without moving it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.postgres.lsn import lsn_text

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

QUERY = """
    SELECT data FROM pg_logical_slot_peek_binary_changes(
        %s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s{more})
"""
BEGINS = """
    SELECT extract(epoch FROM clock_timestamp()) - extract(epoch FROM timestamptz '2000-01-01Z')
        - ('x' || encode(substring(data FROM 10 FOR 8), 'hex'))::bit(64)::int8 / 1e6
    FROM ({query}) AS messages
    WHERE get_byte(data, 0) = ascii('B')
        AND ('x' || encode(substring(data FROM 2 FOR 8), 'hex'))::bit(64)::int8 >= %s
    LIMIT 1
"""
AT_ONCE = 100
"""Messages that the client holds besides those that are decoded: they may be large."""


def peek(
    connection: Connection,
    slot: str,
    publications: Sequence[str],
    *,
    up_to: int,
    max_messages: int,
    options: Mapping[str, str],
) -> Iterator[bytes]:
    """Messages of whole transactions.

    Args:
        connection: In use until the last message.
        slot: The slot.
        publications: Whose tables.
        up_to: Transactions that end at or before this position.
        max_messages: Stop behind the transaction that reaches so many.
        options: More options of pgoutput.
    """  # fmt: skip
    import psycopg

    size = AT_ONCE if psycopg.capabilities.has_stream_chunked() else 1
    values = _values(slot, publications, up_to, max_messages)
    with connection.cursor() as cursor:
        # The options are constants of this package.
        for row in cursor.stream(_query(options), values, binary=True, size=size):  # type: ignore[arg-type]
            yield row[0]


def oldest_commit(
    connection: Connection,
    slot: str,
    publications: Sequence[str],
    *,
    up_to: int,
    behind: int,
    is_first: bool,
    options: Mapping[str, str],
) -> float:
    """How many seconds ago the first transaction behind a position was committed; 0 for none.

    Args:
        connection: The connection.
        slot: The slot.
        publications: Whose tables it changes.
        up_to: The last position that is looked at.
        behind: The position.
        is_first: Whether the slot is at it, so that its first transaction is looked for.
        options: More options of pgoutput.
    """
    query = BEGINS.format(query=_query(options))
    values = _values(slot, publications, up_to, 1 if is_first else None)
    row = connection.execute(query, [*values, behind]).fetchone()  # type: ignore[arg-type]
    return max(0.0, float(row[0])) if row else 0.0


def options_of(connection: Connection, *, local_only: bool) -> dict[str, str]:
    """
    Raises:
        PublisherProblem: The server cannot leave out what a replication changed.
    """
    if not local_only:
        return {}
    if connection.info.server_version < 160000:
        raise PublisherProblem(
            'origin "none" is not known to the server',
            why="PostgreSQL tells the origin of changes since version 16",
            fix="publish only tables that no replication writes to, and take all changes: "
            "streamtables replications alter NAME --origin any",
        )
    return {"origin": "none"}


def _query(options: Mapping[str, str]) -> str:
    more = "".join(f", '{name}', '{value}'" for name, value in options.items())
    return QUERY.format(more=more)


def _values(
    slot: str, publications: Sequence[str], up_to: int, max_messages: int | None
) -> list[Any]:
    names = ",".join('"' + name.replace('"', '""') + '"' for name in publications)
    return [slot, lsn_text(up_to), max_messages, names]
