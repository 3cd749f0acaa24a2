"""Create the triggers of a table, drop them, and compare them with how they were created.

If they differ, changes may be missing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from psycopg import errors, sql

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.postgres.postgres_server import scalar
from dagster_streamtables.replication.postgres.triggers.capture_objects import function_of, log_of
from dagster_streamtables.runtime.errors.slot_errors import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection
    from dagster_streamtables.replication.postgres.publication_catalog import CatalogTable
    from dagster_streamtables.replication.postgres.triggers.capture_objects import CaptureState

PATIENCE = 0.4
"""Seconds of one attempt. Writers wait behind it; and after a second the server would end one of
two that wait for each other, which may be the writer."""


@contextmanager
def lock_table(connection: Connection, table: CatalogTable, wait: float) -> Iterator[None]:
    """A transaction in which no other can write to a table, after all earlier writers have ended.

    It locks only one table: writers that lock several in another order would block it for ever.
    """
    lock = sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE")
    with having(connection, lock.format(sql.Identifier(table.schema, table.table)), wait):
        yield


@contextmanager
def having(connection: Connection, statement: sql.Composed, wait: float) -> Iterator[None]:
    """A transaction that begins with a statement, which is repeated while it finds locks.

    Raises:
        psycopg.errors.LockNotAvailable: It has found them for this number of seconds.
    """
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


ROWS = {
    "insert": "REFERENCING NEW TABLE AS new_rows",
    "update": "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows",
    "delete": "REFERENCING OLD TABLE AS old_rows",
    "truncate": "",
}
MEMBERS = """
    SELECT c.oid::int8, n.nspname, c.relname
    FROM (SELECT relid AS oid FROM pg_partition_tree(%s)
          UNION SELECT %s::oid) AS member
    JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') ORDER BY c.oid
"""
"""A statement fires the triggers of the table that it names, be it a partition or a table above."""
PRESENT = """
    SELECT tgrelid::int8, string_agg(concat_ws(':', t.oid, t.xmin, p.xmin, tgenabled), ' '
        ORDER BY t.oid)
    FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid
    WHERE tgfoid = to_regproc(%s) AND tgrelid = ANY(%s::oid[]) GROUP BY tgrelid
"""
"""Other after each change: to disable a trigger for a moment writes its row of the catalog
again."""
UNFIT = """
    SELECT CASE WHEN EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
                WHERE c.relkind = 'r' AND %s::oid IN (i.inhparent, i.inhrelid)) THEN 'heirs'
            WHEN EXISTS (SELECT FROM pg_subscription_rel s
                WHERE s.srrelid = ANY(%s::oid[])) THEN 'subscription' END
"""


def members_of(connection: Connection, table: CatalogTable) -> list[tuple[int, str, str]]:
    """The table, and its partitions: number, schema and name of each."""
    return connection.execute(MEMBERS, [table.oid, table.oid]).fetchall()


def require_fit(connection: Connection, table: CatalogTable, members: Iterable[int]) -> None:
    """Raise `PublisherProblem` if its triggers would not see all changes."""
    why = scalar(connection, UNFIT, [table.oid, [*members]])
    if why == "heirs":
        raise PublisherProblem(
            f'the changes of "{table.name}" cannot be captured by triggers',
            why="it inherits from a table, or one inherits from it: a statement about the one "
            "changes rows of the other, and does not fire its triggers",
            fix="set wal_level = logical at the server, or take the table out of the publication",
        )
    if why == "subscription":
        raise PublisherProblem(
            f'the changes of "{table.name}" cannot be captured by triggers, since it is subscribed',
            why="what a subscription of PostgreSQL applies does not fire statement triggers",
            fix="set wal_level = logical at the server, or replicate from where it subscribes to",
        )


def install(connection: Connection, capture: CaptureState, table: CatalogTable) -> None:
    """Inside a transaction that has the table locked. Does nothing if they are as they were.

    Raises:
        PublisherProblem: Its triggers would not see all changes.
    """
    members = members_of(connection, table)
    require_fit(connection, table, [oid for oid, *_ in members])
    there, known = versions(connection, capture, table.name)
    for oid, schema, name in members:
        if oid not in known or there.get(oid) != known[oid]:
            _create(connection, capture, schema, name, of_all=oid == table.oid)
    connection.execute(
        "DELETE FROM streamtables.triggers WHERE slot = %s AND name = %s",
        [capture.slot, table.name],
    )
    present = _present(connection, capture, [oid for oid, *_ in members])
    for oid, version in present.items():
        connection.execute(
            "INSERT INTO streamtables.triggers VALUES (%s, %s, %s, %s) ON CONFLICT (slot, relation)"
            " DO UPDATE SET name = excluded.name, version = excluded.version",
            [capture.slot, oid, table.name, version],
        )


def ensure_triggers(
    connection: Connection, capture: CaptureState, table: CatalogTable, wait: float
) -> None:
    """Create the triggers of a table and of its partitions, unless they are as they were created.

    Raises:
        PublisherProblem: They would not see all changes.
    """
    there, known = versions(connection, capture, table.name)
    members = {oid for oid, *_ in members_of(connection, table)}
    if there != known or known.keys() != members:
        with lock_table(connection, table, wait):
            install(connection, capture, table)


def versions(
    connection: Connection, capture: CaptureState, name: str
) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """By table or partition, its triggers as they are, and as they were created."""
    query = (
        "SELECT relation::int8, version FROM streamtables.triggers WHERE slot = %s AND name = %s"
    )
    known = dict(connection.execute(query, [capture.slot, name]).fetchall())
    return _present(connection, capture, [*known]), known


def _present(connection: Connection, capture: CaptureState, oids: list[int]) -> dict[int, str]:
    name = function_of(capture.number).as_string(connection)
    return dict(connection.execute(PRESENT, [name, oids]).fetchall())


def _create(
    connection: Connection, capture: CaptureState, schema: str, name: str, *, of_all: bool
) -> None:
    """The TRUNCATE of a partition is no change of its root, as for the server itself."""
    for operation, rows in ROWS.items():
        if operation == "truncate" and not of_all:
            continue
        names = {
            # Triggers of one event fire in the order of their names.
            "trigger": sql.Identifier(f"00_streamtables_{capture.number}_{operation}"),
            "table": sql.Identifier(schema, name),
            "function": function_of(capture.number),
            "rows": sql.SQL(rows),  # type: ignore[arg-type]
            "operation": sql.SQL(operation.upper()),  # type: ignore[arg-type]
        }
        for statement in (
            "DROP TRIGGER IF EXISTS {trigger} ON {table}",
            "CREATE TRIGGER {trigger} AFTER {operation} ON {table} {rows} "
            "FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
            # Whatever session_replication_role is.
            "ALTER TABLE ONLY {table} ENABLE ALWAYS TRIGGER {trigger}",
        ):
            connection.execute(sql.SQL(statement).format(**names))


def remove(connection: Connection, capture: CaptureState, wait: float) -> None:
    """All triggers of a slot, then its log and its state."""
    function = function_of(capture.number).as_string(connection)
    query = (
        "SELECT n.nspname, c.relname, t.tgname FROM pg_trigger t "
        "JOIN pg_class c ON c.oid = tgrelid JOIN pg_namespace n ON n.oid = relnamespace "
        "WHERE tgfoid = to_regproc(%s) ORDER BY c.oid"
    )
    for schema, table, trigger in connection.execute(query, [function]).fetchall():
        drop = sql.SQL("DROP TRIGGER IF EXISTS {} ON {}").format(
            sql.Identifier(trigger), sql.Identifier(schema, table)
        )
        with having(connection, drop, wait):
            pass
    with connection.transaction():
        connection.execute(
            sql.SQL("DROP FUNCTION IF EXISTS {}()").format(function_of(capture.number))
        )
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(log_of(capture.number)))
        for table in ("windows", "triggers", "captures"):
            statement = sql.SQL("DELETE FROM {} WHERE slot = %s")
            connection.execute(
                statement.format(sql.Identifier("streamtables", table)), [capture.slot]
            )


def require_intact(
    connection: Connection, capture: CaptureState, tables: Collection[CatalogTable], wait: float
) -> None:
    """Called after the snapshot of what is read was taken. New partitions get their triggers.

    Raises:
        LostSlot: Triggers were dropped, disabled or changed, a table was dropped and created again,
            or a partition was written to, or detached, before its changes were read.
        PublisherProblem: The triggers do not see all changes.
    """
    for table in tables:
        there, known = versions(connection, capture, table.name)
        members = {oid: name for oid, _, name in members_of(connection, table)}
        require_fit(connection, table, members)
        if not known:
            raise _damage_error(table.name, "there are none")
        if table.oid not in known:
            raise _damage_error(table.name, "the table was dropped and made again")
        for oid, version in known.items():
            if oid in members and there.get(oid) != version:
                raise _damage_error(
                    table.name, f'they were dropped or disabled on "{members[oid]}"'
                )
            if oid not in members and oid in there:
                # A detached partition still has its triggers, and writes the log of its root.
                query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE relation = %s)")
                if scalar(connection, query.format(log_of(capture.number)), [oid]):
                    why = "a partition was written to by its own name, and detached"
                    raise _damage_error(table.name, why)
        if new := members.keys() - known.keys():
            _join(connection, capture, table, new, wait)


def _damage_error(table: str, why: str) -> LostSlot:
    return LostSlot(
        f'the triggers that capture the changes of "{table}" were changed',
        why=f"{why}, so changes may be missing",
        fix="copy the tables again; what is written while triggers are disabled is never captured",
    )


def _join(
    connection: Connection,
    capture: CaptureState,
    table: CatalogTable,
    new: Collection[int],
    wait: float,
) -> None:
    """Partitions that were created or attached since. The log has what came through the root."""
    with lock_table(connection, table, wait):
        install(connection, capture, table)
        query = sql.SQL(
            "SELECT EXISTS (SELECT (r.*)::text FROM {} AS r WHERE r.tableoid = ANY(%s::oid[]) "
            "EXCEPT ALL SELECT changed FROM {} WHERE relation = %s AND op IN ('I', 'U'))"
        ).format(sql.Identifier(table.schema, table.table), log_of(capture.number))
        if scalar(connection, query, [[*new], table.oid]):
            raise _damage_error(
                table.name, "a new partition has rows that did not come through its root"
            )
