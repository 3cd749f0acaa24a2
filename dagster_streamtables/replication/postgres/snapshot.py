"""`SnapshotCopy`: published tables as a snapshot of the server shows them, see `CopySource`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.postgres.catalog import CatalogTable
from dagster_streamtables.replication.postgres.copy_stream import stream
from dagster_streamtables.replication.postgres.forms import Forms
from dagster_streamtables.replication.postgres.server import PublisherServer
from dagster_streamtables.replication.postgres.table_form import TableForm

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import sql

    from dagster_streamtables.replication.postgres.server import Connection


@dataclass
class SnapshotCopy:
    server: PublisherServer
    connection: Connection
    """In a transaction that has the snapshot, and holds a lock on each table."""
    forms: Mapping[str, TableForm]
    queries: Mapping[str, sql.Composed]
    at: int
    _streams: list[Iterator[pa.RecordBatch]] = field(default_factory=lambda: [])

    def position(self, table: str) -> int:
        return self.at

    def rows(self, table: str) -> pa.RecordBatchReader:
        import pyarrow as pa

        batches = self._batches(table)
        self._streams.append(batches)
        return pa.RecordBatchReader.from_batches(self.forms[table].table.schema, batches)

    def _batches(self, table: str) -> Iterator[pa.RecordBatch]:
        with self.server.errors():
            yield from stream(self.connection, self.queries[table], self.forms[table])

    def close(self) -> None:
        """Rows that were not read are not waited for."""
        self.connection.close()
        for each in self._streams:
            with suppress(Exception):
                each.close()  # type: ignore[attr-defined]


def begin_in(connection: Connection, exported: str, wait: float) -> None:
    """Begin a transaction in a snapshot that another connection exports.

    Args:
        connection: It sees the database as the snapshot shows it until it ends the transaction.
        exported: The snapshot's name.
        wait: Seconds for which it waits for a lock on a table.
    """
    from psycopg import sql

    connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(exported)))
    wait_for_locks(connection, wait)


def wait_for_locks(connection: Connection, seconds: float) -> None:
    connection.execute(f"SET lock_timeout = '{seconds * 1000:.0f}ms'".encode())


def require_in_publication(forms: Forms, tables: Collection[str]) -> dict[str, CatalogTable]:
    """
    Raises:
        PublisherProblem: A table is not published, or cannot be replicated.
    """
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
    """Inside of a transaction it keeps the tables as they are, too."""
    from psycopg import sql

    for table in tables:
        connection.execute(sql.SQL("{} LIMIT 0").format(rows_of(table)))


def require_same_files(before: Mapping[str, CatalogTable], now: Mapping[str, CatalogTable]) -> None:
    """
    Raises:
        PublisherProblem: A table may have been rewritten since the snapshot, which then shows it
            without rows.
    """
    for name, table in now.items():
        if before[name].files != table.files:
            raise PublisherProblem(
                f'"{name}" was rewritten when its copy began',
                why="ALTER TABLE, TRUNCATE or VACUUM FULL gave it other files, and a snapshot from "
                "before does not show its rows",
                fix="copy it again",
            )


def rows_of(table: CatalogTable) -> sql.Composed:
    """The rows and columns that are published, whatever the operations are."""
    from psycopg import sql

    columns = sql.SQL(", ").join(sql.Identifier(each.name) for each in table.publication_columns)
    name = sql.Identifier(table.schema, table.table)
    # Tables that inherit from it are published by their own names.
    only = sql.SQL("" if table.is_root else "ONLY ")
    query = sql.SQL("SELECT {} FROM {}{}").format(columns, only, name)
    filters = [each.filter for each in table.entries]
    if not all(filters):
        return query
    # The server itself wrote these conditions.
    wanted = (sql.SQL("({})").format(sql.SQL(each)) for each in dict.fromkeys(filters) if each)  # type: ignore[arg-type]
    return sql.SQL("{} WHERE {}").format(query, sql.SQL(" OR ").join(wanted))
