"""The messages that a slot holds, without moving it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dagster_streamtables.replication.postgres.lsn import lsn_text

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection

QUERY = """
    SELECT data FROM pg_logical_slot_peek_binary_changes(
        %s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s, {more})
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
    options: dict[str, str],
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

    names = ",".join('"' + name.replace('"', '""') + '"' for name in publications)
    more = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    query = QUERY.format(more=more).replace(", )", ")")
    values: list[Any] = [slot, lsn_text(up_to), max_messages, names]
    size = AT_ONCE if psycopg.capabilities.has_stream_chunked() else 1
    with connection.cursor() as cursor:
        # The options are constants of this package.
        for row in cursor.stream(query, values, binary=True, size=size):  # type: ignore[arg-type]
            yield row[0]
