"""Rows of a log, as they come from the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.postgres.copy_stream import texts_of
from dagster_streamtables.replication.postgres.triggers.server_objects import log_of

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import sql

    from dagster_streamtables.replication.postgres.server import Connection
    from dagster_streamtables.replication.postgres.triggers.captured import CaptureState
    from dagster_streamtables.replication.postgres.triggers.windows import WindowTransaction

QUERY = """
    COPY (
        SELECT op, place, statement, depth, relation, shape, {shown}, changed
        FROM {log} AS l JOIN (SELECT * FROM unnest({transactions}::bigint[])
            WITH ORDINALITY AS t (xid, place)) AS t USING (xid)
        ORDER BY place, statement, ordinal, op DESC
    ) TO STDOUT (FORMAT csv)
"""
ROWS, BYTES = 100_000, 32_000_000
"""Of a part, unless more must be at hand together."""
INSERT, DELETE, BEFORE, AFTER, TRUNCATE = b"IDuUT"


@dataclass(frozen=True)
class LogRows:
    """In order: the row before an update is in front of that after it."""

    ops: np.ndarray
    places: np.ndarray
    """Of their transactions, from 0 on."""
    statements: np.ndarray
    depths: np.ndarray
    """How many triggers were at work: more than 1 if a trigger made the change."""
    relations: np.ndarray
    shapes: np.ndarray
    shown: np.ndarray
    """Whether the publications show the row."""
    texts: pa.Array
    """The row, as the server writes a whole row; NULL for a truncate."""

    def __len__(self) -> int:
        return len(self.ops)


def rows_of(
    connection: Connection,
    capture: CaptureState,
    transactions: Sequence[WindowTransaction],
    shown: sql.Composable,
) -> Iterator[LogRows]:
    """
    Args:
        connection: In use until the last part.
        capture: Whose log.
        transactions: In the order in which they are wanted.
        shown: A condition over the log, called l.

    Yields:
        Whole changes, and whole transactions if these are tangled.
    """  # fmt: skip
    from psycopg import sql

    query = sql.SQL(QUERY).format(
        log=log_of(capture.number),
        transactions=sql.Literal(f"{{{','.join(str(each.xid) for each in transactions)}}}"),
        shown=shown,
    )
    whole = {str(i).encode() for i, each in enumerate(transactions, 1) if each.is_tangled}
    lines: list[bytes] = []
    size, last, follows = 0, b"", False
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        while read := copy.read():
            line = bytes(read)
            transaction = line[2 : line.index(b",", 2)]
            is_full = len(lines) >= ROWS or size >= BYTES
            if is_full and (transaction != last or not (transaction in whole or follows)):
                yield _parse_rows(lines)
                lines, size = [], 0
            lines.append(line)
            size, last, follows = size + len(line), transaction, line[0] == BEFORE
    if lines:
        yield _parse_rows(lines)


def _parse_rows(lines: list[bytes]) -> LogRows:
    import pyarrow as pa

    op, *numbers, shown, changed = texts_of(b"".join(lines), 8)
    integers = [each.cast(pa.string()).cast(pa.int64()).to_numpy() for each in numbers]
    place, statement, depth, relation, shape = integers
    return LogRows(
        ops=np.frombuffer(b"".join(op.to_pylist()), np.uint8),
        places=place - 1,
        statements=statement,
        depths=depth,
        relations=relation,
        shapes=shape,
        shown=np.array(shown.to_pylist()) == b"t",
        texts=changed,
    )


def columns_of(rows: pa.Array, count: int, table: str) -> list[pa.Array]:
    """The columns of rows that the server has written as text, as bytes.

    Raises:
        PublisherProblem: They have another number of columns.
    """
    import pyarrow as pa

    # As CSV, but for backslashes, which are doubled; a field that has one is in quotes.
    lines = b"".join(text[1:-1] + b"\n" for text in rows.to_pylist())
    try:
        texts = texts_of(lines, count)
    except pa.ArrowInvalid as error:
        raise PublisherProblem(
            f'rows of "{table}" have other columns than their triggers saw',
            why="a transaction that had begun before the columns changed wrote them",
            fix="copy the table again",
        ) from error
    if b"\\\\" in lines:
        texts = [_plain(each) for each in texts]
    return texts


def _plain(texts: pa.Array) -> pa.Array:
    import pyarrow as pa

    values = (each and each.replace(b"\\\\", b"\\") for each in texts.to_pylist())
    return pa.array(values, pa.binary())
