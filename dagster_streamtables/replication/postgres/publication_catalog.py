"""The published tables of a server, as its catalog describes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.model.replication_model import Operation

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection

PUBLICATIONS = """
    SELECT pubname, pubinsert, pubupdate, pubdelete, pubtruncate
    FROM pg_publication WHERE pubname = ANY(%s)
"""
# The columns and filters that a server before 15 does not have: the whole rows.
TABLES = """
    SELECT c.oid::int8, n.nspname, c.relname, t.pubname, {columns}, {filter}, c.relkind = 'p',
        c.relreplident::text,
        ARRAY(SELECT a::oid::int8 FROM pg_partition_ancestors(c.oid) AS a WHERE a <> c.oid),
        ARRAY(SELECT pg_relation_filenode(p.relid)::int8
              FROM pg_partition_tree(c.oid) AS p ORDER BY 1)
            || ARRAY[pg_relation_filenode(c.oid)::int8]
    FROM pg_publication_tables t
    JOIN pg_namespace n ON n.nspname = t.schemaname
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
    WHERE t.pubname = ANY(%s)
    ORDER BY n.nspname, c.relname, t.pubname
"""
SENT = """
    ARRAY(SELECT a.attname::text FROM pg_attribute a
          WHERE a.attrelid = c.oid AND a.attname = ANY(t.attnames) AND a.attgenerated = '')
"""
LISTS = ((180000, "t.attnames::text[]"), (150000, SENT), (0, "NULL::text[]"))
"""Servers before 18 list generated columns, but do not send them."""
COLUMNS = """
    SELECT attrelid::int8, attname, atttypid::int8, atttypmod, attgenerated <> '',
        CASE WHEN atthasmissing THEN (attmissingval::text::text[])[1] END,
        NOT atthasmissing AND (atthasdef OR attidentity <> '' OR attnotnull)
            AND pg_relation_filenode(attrelid) IS DISTINCT FROM attrelid
    FROM pg_attribute
    WHERE attrelid = ANY(%s::oid[]) AND attnum > 0 AND NOT attisdropped ORDER BY attrelid, attnum
"""
# Deferrable constraints identify no row at every moment, and partial indexes not every row.
INDEXES = """
    SELECT i.indrelid::int8, i.indisprimary, i.indisreplident,
        ARRAY(SELECT a.attname::text FROM pg_attribute a
              WHERE a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey[:i.indnkeyatts - 1]))
    FROM pg_index i
    WHERE i.indrelid = ANY(%s::oid[]) AND (i.indisprimary OR i.indisreplident)
        AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
"""


@dataclass(frozen=True)
class CatalogColumn:
    name: str
    type: int
    modifier: int
    is_generated: bool = False
    fill: str | None = None
    """The text of the value in rows that existed when the column was added."""
    is_untold: bool = False
    """Whether such rows may have different values. A default that differs from row to row rewrites
    the table when it is added, so a table in its first file has none; and a rewrite for any reason
    forgets `fill`. A table with partitions does not have its own files."""


@dataclass(frozen=True)
class PublicationMember:
    """A table in one publication."""

    publication: str
    columns: tuple[str, ...] | None
    filter: str | None
    operations: frozenset[Operation] = frozenset(Operation)


@dataclass(frozen=True)
class CatalogTable:
    """A published table, which may not be replicable."""

    oid: int
    schema: str
    table: str
    columns: tuple[CatalogColumn, ...]
    """All that it has."""
    setting: str
    """Its REPLICA IDENTITY: d, i, f or n."""
    entries: tuple[PublicationMember, ...] = ()
    operations: frozenset[Operation] = frozenset(Operation)
    is_root: bool = False
    """Whether it has partitions, which hold its rows."""
    primary_key: tuple[str, ...] | None = None
    identity_index: tuple[str, ...] | None = None
    files: tuple[int | None, ...] = ()
    """Other numbers after each rewrite."""

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def publication_columns(self) -> tuple[CatalogColumn, ...]:
        """The columns that are sent."""
        return self.sent_columns(self.columns)

    def sent_columns(self, columns: Iterable[CatalogColumn]) -> tuple[CatalogColumn, ...]:
        """Those of its present or earlier columns that are sent. The server refuses lists that
        differ."""
        named = self.entries[0].columns
        if named is None:
            return tuple(each for each in columns if not each.is_generated)
        return tuple(each for each in columns if each.name in named)

    @property
    def identity(self) -> tuple[str, ...] | None:
        """The primary key if there is one, even if the server sends whole rows."""
        return self.identity_index if self.setting == "i" else self.primary_key

    def row_filter(self, operation: Operation | None = None) -> str | None:
        """The condition of an operation, or of the copy, as the server itself wrote it; None if all
        rows are published."""
        filters = [
            each.filter
            for each in self.entries
            if operation is None or operation in each.operations
        ]
        if not all(filters):
            return None
        return " OR ".join(f"({each})" for each in dict.fromkeys(filters)) or None


def load_catalog(connection: Connection, publications: Sequence[str]) -> list[CatalogTable]:
    """The tables of publications.

    Raises:
        PublisherProblem: A publication does not exist.
    """
    found = connection.execute(PUBLICATIONS, [list(publications)]).fetchall()
    operations = {
        name: frozenset(op for op, is_on in zip(Operation, flags, strict=True) if is_on)
        for name, *flags in found
    }
    for name in publications:
        if name not in operations:
            query = "SELECT pubname FROM pg_publication ORDER BY 1"
            there = ", ".join(row[0] for row in connection.execute(query))
            raise PublisherProblem(
                f'there is no publication "{name}"',
                why=f"the database has these: {there or 'none'}",
                fix="CREATE PUBLICATION, or let the publisher do it: "
                "create_publication(tables=[…])",
            )
    return _load_tables(connection, operations)


def _load_tables(
    connection: Connection, operations: Mapping[str, frozenset[Operation]]
) -> list[CatalogTable]:
    version = connection.info.server_version
    query = TABLES.format(
        columns=next(columns for since, columns in LISTS if version >= since),
        filter="t.rowfilter" if version >= 150000 else "NULL::text",
    )
    # All its forms are constants.
    rows = connection.execute(query, [list(operations)]).fetchall()  # type: ignore[arg-type]
    roots = {oid for oid, *_ in rows}
    by_table: dict[int, list[tuple]] = {}
    for row in rows:
        # A publication by roots and one by partitions: the server sends all as the root's.
        if roots.isdisjoint(row[8]):
            by_table.setdefault(row[0], []).append(row)
    columns: dict[int, list[CatalogColumn]] = {}
    for oid, *rest in connection.execute(COLUMNS, [list(by_table)]):
        columns.setdefault(oid, []).append(CatalogColumn(*rest))
    keys: dict[int, tuple[str, ...]] = {}
    indexes: dict[int, tuple[str, ...]] = {}
    for oid, is_primary, is_chosen, names in connection.execute(INDEXES, [list(by_table)]):
        if is_primary:
            keys[oid] = tuple(names)
        if is_chosen:
            indexes[oid] = tuple(names)
    return [
        CatalogTable(
            oid=oid,
            schema=of[0][1],
            table=of[0][2],
            columns=tuple(columns.get(oid, ())),
            entries=tuple(
                PublicationMember(row[3], row[4] and tuple(row[4]), row[5], operations[row[3]])
                for row in of
            ),
            operations=frozenset().union(*(operations[row[3]] for row in of)),
            is_root=of[0][6],
            setting=of[0][7],
            primary_key=keys.get(oid),
            identity_index=indexes.get(oid),
            files=tuple(of[0][9]),
        )
        for oid, of in by_table.items()
    ]
