"""Whether the triggers of tables are as they were created: else changes may be missing."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from dagster_streamtables.replication.postgres.triggers.install import (
    install,
    members_of,
    require_fit,
    versions,
)
from dagster_streamtables.replication.postgres.triggers.locks import locked
from dagster_streamtables.replication.postgres.triggers.server_objects import log_of
from dagster_streamtables.runtime.errors.slots import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.catalog import CatalogTable
    from dagster_streamtables.replication.postgres.server import Connection
    from dagster_streamtables.replication.postgres.triggers.captured import Captured


def require_intact(
    connection: Connection, capture: Captured, tables: Collection[CatalogTable], wait: float
) -> None:
    """Called after the snapshot of what is read was taken. New partitions get their triggers.

    Raises:
        LostSlot: Somebody has dropped, disabled or changed triggers, dropped a table and made it
            again, or has written to a partition, or detached one, before its changes were read.
        PublisherProblem: The triggers do not see all changes.
    """  # fmt: skip
    for table in tables:
        there, known = versions(connection, capture, table.name)
        members = {oid: name for oid, _, name in members_of(connection, table)}
        require_fit(connection, table, members)
        if not known:
            raise _lost(table.name, "there are none")
        if table.oid not in known:
            raise _lost(table.name, "the table was dropped and made again")
        for oid, version in known.items():
            if oid in members and there.get(oid) != version:
                raise _lost(table.name, f'they were dropped or disabled on "{members[oid]}"')
            if oid not in members:
                _require_unwritten(connection, capture, table, oid, is_there=oid in there)
        if new := members.keys() - known.keys():
            _join(connection, capture, table, new, wait)


def _lost(table: str, why: str) -> LostSlot:
    return LostSlot(
        f'the triggers that capture the changes of "{table}" are not what they were',
        why=f"{why}, so changes may be missing",
        fix="copy the tables again; what is written while triggers are disabled is never captured",
    )


def _require_unwritten(
    connection: Connection,
    capture: Captured,
    table: CatalogTable,
    partition: int,
    *,
    is_there: bool,
) -> None:
    """A partition that was detached has its triggers still, and writes the log of its root."""
    from psycopg import sql

    if not is_there:
        return
    query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE relation = %s)")
    row = connection.execute(query.format(log_of(capture.number)), [partition]).fetchone()
    assert row is not None
    if row[0]:
        raise _lost(table.name, "a partition was written to by its own name, and detached")


def _join(
    connection: Connection,
    capture: Captured,
    table: CatalogTable,
    new: Collection[int],
    wait: float,
) -> None:
    """Partitions that were created or attached since. What came through the root is in the log."""
    from psycopg import sql

    with locked(connection, table, wait):
        install(connection, capture, table)
        query = sql.SQL(
            "SELECT EXISTS (SELECT (r.*)::text FROM {} AS r WHERE r.tableoid = ANY(%s::oid[]) "
            "EXCEPT ALL SELECT changed FROM {} WHERE relation = %s AND op IN ('I', 'U'))"
        ).format(sql.Identifier(table.schema, table.table), log_of(capture.number))
        row = connection.execute(query, [[*new], table.oid]).fetchone()
        assert row is not None
        if row[0]:
            raise _lost(table.name, "a new partition has rows that did not come through its root")
