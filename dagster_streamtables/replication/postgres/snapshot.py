"""`SnapshotCopy`: published tables as a snapshot of the server shows them, see `CopySource`."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, TypeVar

from psycopg import sql
from pyarrow import csv

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.postgres.logical_slots import make_slot
from dagster_streamtables.replication.postgres.postgres_server import PublisherServer
from dagster_streamtables.replication.postgres.publication_catalog import CatalogTable
from dagster_streamtables.replication.postgres.table_form import Forms, TableForm
from dagster_streamtables.runtime.delta.arrow import pa

if TYPE_CHECKING:
    from psycopg.abc import Buffer

    from dagster_streamtables.replication.postgres.postgres_server import Connection


@dataclass
class SnapshotCopy:
    server: PublisherServer
    connection: Connection
    """In a transaction that has the snapshot, and holds a lock on each table."""
    forms: Mapping[str, TableForm]
    queries: Mapping[str, sql.Composed]
    at: int
    _streams: list[Iterator[pa.RecordBatch]] = field(default_factory=lambda: [])

    @classmethod
    def open(
        cls,
        server: PublisherServer,
        connection: Connection,
        before: Mapping[str, CatalogTable],
        load_forms: Callable[[Connection], Forms],
        at: int,
    ) -> SnapshotCopy:
        """
        Args:
            connection: In a transaction that has the snapshot.
            before: The tables as they were before the snapshot.
            load_forms: Loads the forms of the published tables.
            at: The position of the snapshot.

        Raises:
            PublisherProblem: A table cannot be read, or has changed since.
        """
        require_readable(connection, before.values())
        forms = load_forms(connection)
        now = require_in_publication(forms, before)
        for name, table in now.items():
            if before[name].files != table.files:
                raise PublisherProblem(
                    f'"{name}" was rewritten when its copy began',
                    why="ALTER TABLE, TRUNCATE or VACUUM FULL gave it other files, and a snapshot "
                    "from before does not show its rows",
                    fix="copy it again",
                )
        queries = {name: rows_of(table) for name, table in now.items()}
        return cls(server, connection, {name: forms.now(name) for name in now}, queries, at)

    def position(self, table: str) -> int:
        return self.at

    def rows(self, table: str) -> pa.RecordBatchReader:
        batches = self._batches(table)
        self._streams.append(batches)
        return pa.RecordBatchReader.from_batches(self.forms[table].table.schema, batches)

    def _batches(self, table: str) -> Iterator[pa.RecordBatch]:
        with self.server.errors():
            yield from stream(self.connection, self.queries[table], self.forms[table])

    def close(self) -> None:
        """Does not wait for unread rows."""
        self.connection.close()
        for each in self._streams:
            with suppress(Exception):
                each.close()  # type: ignore[attr-defined]


def begin_with_slot(
    server: PublisherServer, connection: Connection, slot: str, *, temporary: bool, wait: float
) -> int:
    """Create a slot, or one of a similar name for a moment if temporary, and begin a transaction on
    the connection in its snapshot. Return its position.

    Args:
        wait: Seconds to wait for open transactions, and then for the lock of a table.
    """
    name = f"{slot[:50]}_{token_hex(6)}" if temporary else slot
    with server.replication() as protocol:
        position, exported = make_slot(
            server, protocol, name, temporary=temporary, export=True, wait=wait
        )
        assert exported is not None
        connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(exported)))
        wait_for_locks(connection, wait)
    return position


def wait_for_locks(connection: Connection, seconds: float) -> None:
    connection.execute(f"SET lock_timeout = '{seconds * 1000:.0f}ms'".encode())


def require_in_publication(forms: Forms, tables: Collection[str]) -> dict[str, CatalogTable]:
    """Raise `PublisherProblem` if a table is not published, or cannot be replicated."""
    for name in tables:
        if name not in forms.tables:
            raise PublisherProblem(
                f'no publication of the replication has the table "{name}"',
                why=f"they have these: {', '.join(sorted(forms.tables)) or 'none'}",
                fix="ALTER PUBLICATION … ADD TABLE",
            )
        forms.now(name)
    return {name: forms.tables[name] for name in tables}


def require_readable(connection: Connection, tables: Collection[CatalogTable]) -> None:
    """Inside a transaction this also keeps the tables as they are."""
    for table in tables:
        connection.execute(sql.SQL("{} LIMIT 0").format(rows_of(table)))


def rows_of(table: CatalogTable) -> sql.Composed:
    """The published rows and columns, whatever the operations are."""
    columns = sql.SQL(", ").join(sql.Identifier(each.name) for each in table.publication_columns)
    name = sql.Identifier(table.schema, table.table)
    # Tables that inherit from it are published by their own names.
    only = sql.SQL("" if table.is_root else "ONLY ")
    query = sql.SQL("SELECT {} FROM {}{}").format(columns, only, name)
    wanted = table.row_filter()
    if wanted is None:
        return query
    return sql.SQL("{} WHERE {}").format(query, sql.SQL(wanted))  # type: ignore[arg-type]


ROWS, BYTES = 50_000, 8_000_000
"""Of a batch, as the server writes them."""


def stream(
    connection: Connection, query: sql.Composed, form: TableForm
) -> Iterator[pa.RecordBatch]:
    """The rows of a query with the columns of a form. The connection is in use until the last
    batch.

    Raises:
        PublisherProblem: A value cannot be stored.
    """
    command = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        # The server sends each row by itself.
        for lines in chunks_of(copy, ROWS, BYTES):
            yield _batch(lines, form)


def _batch(lines: list[Buffer], form: TableForm) -> pa.RecordBatch:
    """Not in the generator, which would keep the texts while the next rows arrive; so the list of
    lines is emptied."""
    texts = texts_of(b"".join(lines), len(form.columns))
    lines.clear()
    values = [column.values(text) for column, text in zip(form.columns, texts, strict=True)]
    return pa.RecordBatch.from_arrays(values, schema=form.table.schema)


_Message = TypeVar("_Message", bound=Sized)


def chunks_of(messages: Iterable[_Message], most: int, most_bytes: int) -> Iterator[list[_Message]]:
    """Messages together, until they reach a number of messages or of bytes."""
    chunk, size = [], 0
    for message in messages:
        chunk.append(message)
        size += len(message)
        if len(chunk) >= most or size >= most_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def texts_of(lines: bytes, count: int) -> list[pa.Array]:
    """The columns of CSV: bytes, and NULL for an empty field without quotes.

    Raises:
        pyarrow.ArrowInvalid: A line has another number of columns.
    """
    names = [f"c{i}" for i in range(count)]
    # With a line of names, a byte order mark that a value begins with is no mark of the file.
    data = b"".join((",".join(names).encode(), b"\n", lines))
    texts = csv.read_csv(
        io.BytesIO(data),
        # One block, so that no row is too long for it.
        csv.ReadOptions(use_threads=False, block_size=len(data) + 1),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    ).combine_chunks()
    return [column.chunk(0) for column in texts.columns]
