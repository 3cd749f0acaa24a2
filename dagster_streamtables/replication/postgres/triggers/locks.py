"""Locks on a table that others write to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg import sql

    from dagster_streamtables.replication.postgres.catalog import CatalogTable
    from dagster_streamtables.replication.postgres.server import Connection

PATIENCE = 0.4
"""Seconds of one attempt. Writers wait behind it; and after a second the server would end one of
two that wait for each other, which may be the writer."""


@contextmanager
def locked(connection: Connection, table: CatalogTable, wait: float) -> Iterator[None]:
    """A transaction in which nobody writes to a table, and all who have written have ended.

    Only ever one table: writers that lock several in another order would be in the way for ever.
    """
    from psycopg import sql

    lock = sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE")
    with having(connection, lock.format(sql.Identifier(table.schema, table.table)), wait):
        yield


@contextmanager
def having(connection: Connection, statement: sql.Composed, wait: float) -> Iterator[None]:
    """A transaction that begins with a statement, which is tried again while it finds locks.

    Raises:
        psycopg.errors.LockNotAvailable: It has found them for so many seconds.
    """
    from psycopg import errors

    ends = time.monotonic() + wait
    while True:
        connection.execute("BEGIN")
        connection.execute(f"SET LOCAL lock_timeout = {PATIENCE * 1000:.0f}".encode())
        try:
            connection.execute(statement)
            break
        except errors.LockNotAvailable:
            connection.execute("ROLLBACK")
            if time.monotonic() >= ends:
                raise
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        time.sleep(PATIENCE / 4)
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
