"""Create publications at the server."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.replication.model.errors import PublisherProblem

if TYPE_CHECKING:
    from psycopg import sql

    from dagster_streamtables.replication.postgres.server import Connection

# A dot may be in the name of a schema or of a table, so the whole name is compared.
TABLES = """
    SELECT n.nspname || '.' || c.relname, n.nspname, c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND n.nspname || '.' || c.relname = ANY(%s)
"""


def publish_tables(
    connection: Connection, name: str, tables: Collection[str], schemas: Collection[str]
) -> None:
    """
    Args:
        connection: Of the owner of the tables; for schemas, of a superuser.
        name: Of the publication.
        tables: With their schemas; a partitioned table is published by its root.
        schemas: All their tables, also those that are yet to come. The server must be 15 or later.

    Raises:
        InvalidDefinition: Neither tables nor schemas are named.
        PublisherProblem: There is no such table, or the server refuses.
    """  # fmt: skip
    from psycopg import sql

    if not tables and not schemas:
        raise InvalidDefinition(
            f'the publication "{name}" would have no tables',
            fix='name them: create_publication("shop", tables=["public.orders"])',
        )
    parts = [*_tables(connection, tables), *_schemas(connection, schemas)]
    by_root = "" if connection.info.server_version < 130000 else _BY_ROOT
    connection.execute(
        sql.SQL("CREATE PUBLICATION {} FOR {}{}").format(
            sql.Identifier(name), sql.SQL(", ").join(parts), sql.SQL(by_root)
        )
    )


def set_tables(
    connection: Connection, name: str, tables: Collection[str], schemas: Collection[str]
) -> None:
    """Name these in place of all that a publication has; see `publish_tables`."""
    from psycopg import sql

    parts = [*_tables(connection, tables), *_schemas(connection, schemas)]
    with connection.transaction():
        # Older servers let go changes of transactions that were open when the table was added.
        for schema, table in _find_tables(connection, tables):
            lock = sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE")
            connection.execute(lock.format(sql.Identifier(schema, table)))
        connection.execute(
            sql.SQL("ALTER PUBLICATION {} SET {}").format(
                sql.Identifier(name), sql.SQL(", ").join(parts)
            )
        )


def publication_exists(connection: Connection, name: str) -> bool:
    query = "SELECT 1 FROM pg_publication WHERE pubname = %s"
    return connection.execute(query, [name]).fetchone() is not None


def remove_publication(connection: Connection, name: str) -> None:
    from psycopg import sql

    connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))


_BY_ROOT = " WITH (publish_via_partition_root = true)"


def _schemas(connection: Connection, schemas: Collection[str]) -> Iterator[sql.Composed]:
    from psycopg import sql

    if schemas and connection.info.server_version < 150000:
        raise PublisherProblem(
            "the server does not publish whole schemas",
            why="PostgreSQL does since version 15",
            fix='name the tables: tables=["public.orders"]',
        )
    if schemas:
        names = sql.SQL(", ").join(map(sql.Identifier, schemas))
        yield sql.SQL("TABLES IN SCHEMA {}").format(names)


def _tables(connection: Connection, tables: Collection[str]) -> Iterator[sql.Composed]:
    from psycopg import sql

    if not tables:
        return
    found = connection.execute(TABLES, [list(tables)]).fetchall()
    missing = set(tables) - {name for name, *_ in found}
    if missing:
        raise PublisherProblem(
            f"there is no table {', '.join(sorted(missing))} to publish",
            why="a table is named with its schema, as the server writes both; views cannot be "
            "published",
            fix='correct the name: "public.orders"',
        )
    names = (sql.Identifier(schema, table) for _, schema, table in found)
    yield sql.SQL("TABLE {}").format(sql.SQL(", ").join(names))


def _find_tables(connection: Connection, tables: Collection[str]) -> list[tuple[str, str]]:
    """Schema and name of each."""
    return [(schema, table) for _, schema, table in connection.execute(TABLES, [list(tables)])]
