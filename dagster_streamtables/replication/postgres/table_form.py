"""`TableForm`: a published table, and how the texts of its columns become values.

`Forms` has the forms of all published tables, now and at the time of a change in the server's log.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dagster_streamtables.errors import PublisherProblem, one_line
from dagster_streamtables.replication.model.replication_model import Operation, PublishedTable
from dagster_streamtables.replication.postgres.conversions import (
    Conversion,
    Conversions,
    NoEqual,
    resolve_type_names,
    types_of,
)
from dagster_streamtables.replication.postgres.pgoutput import ServerRelation
from dagster_streamtables.replication.postgres.postgres_server import PublisherServer
from dagster_streamtables.replication.postgres.publication_catalog import (
    CatalogColumn,
    CatalogTable,
    load_catalog,
)
from dagster_streamtables.runtime.delta.arrow import pa

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.postgres_server import Connection


SHOWN = 100
"""Characters of a value that an error quotes."""


@dataclass(frozen=True)
class TypedColumn:
    name: str
    table: str
    conversion: Conversion

    def values(self, text: pa.Array) -> pa.Array:
        """The values of texts, in bytes or strings, as the server writes them.

        Raises:
            PublisherProblem: The stored type has no such value.
        """
        try:
            return self.conversion(text.cast(pa.string()))
        except (pa.ArrowInvalid, ValueError) as error:
            value = self._first_invalid(text.cast(pa.binary()))
            as_text = shlex.quote(f"{self.table}.{self.name}=text")
            raise PublisherProblem(
                f'column "{self.name}" of "{self.table}" has a value that cannot be stored',
                why=f"{value} is no {self.conversion.arrow}",
                fix="correct the value at the publisher; or replicate the column as text: "
                f"streamtables replications alter NAME --type {as_text}; then copy the table "
                f"again: streamtables replications copy NAME {shlex.quote(self.table)}",
            ) from error

    def _first_invalid(self, values: pa.Array) -> str:
        refused = next(values[i] for i in range(len(values)) if not self._takes(values.slice(i, 1)))
        text = refused.as_py().decode(errors="backslashreplace")
        return one_line(text if len(text) <= SHOWN else text[:SHOWN] + "…")

    def _takes(self, values: pa.Array) -> bool:
        try:
            self.conversion(values.cast(pa.string()))
        except (pa.ArrowInvalid, ValueError):
            return False
        return True


@dataclass(frozen=True)
class TableForm:
    table: PublishedTable
    columns: tuple[TypedColumn, ...]
    """In the order of the schema."""

    def has_columns_of(self, other: TableForm) -> bool:
        one, two = self.table, other.table
        return one.schema == two.schema and one.identity == two.identity


def form_of(
    catalog: CatalogTable,
    columns: Sequence[CatalogColumn],
    identity: tuple[str, ...] | None,
    conversions: Conversions,
) -> TableForm:
    """
    Args:
        catalog: The table as it is now.
        columns: Its published columns, now or when a change was made.
        identity: Some of these columns; None if only the whole row identifies it.

    Raises:
        PublisherProblem: A type has no equal, and nothing was chosen for it.
    """
    typed, refused = [], dict[str, str]()
    for column in columns:
        where = f"{catalog.name}.{column.name}"
        try:
            conversion = conversions.of(column.type, column.modifier, where)
            typed.append(TypedColumn(column.name, catalog.name, conversion))
        except NoEqual as error:
            refused[where] = f"{where}: {error}"
    if refused:
        raise PublisherProblem(
            f'columns of "{catalog.name}" have types without an equal',
            why="\n".join(refused.values()),
            fix="store what the server writes for a value: streamtables replications alter NAME "
            + " ".join(f"--type {shlex.quote(f'{where}=text')}" for where in refused)
            + '; a type for a column (types={"interval": "text"}, --type interval=text) means all '
            'its columns, and "numeric(38, 9)" for text gives the digits of a number; or leave '
            "them out by a column list of the publication",
        )
    table = PublishedTable(
        name=catalog.name,
        schema=pa.schema([pa.field(each.name, each.conversion.arrow) for each in typed]),
        identity=identity,
        operations=catalog.operations,
        fills=_fills(catalog, typed),
        untold=frozenset(each.name for each in catalog.columns if each.is_untold)
        & {each.name for each in typed},
    )
    return TableForm(table, tuple(typed))


def _fills(catalog: CatalogTable, columns: Sequence[TypedColumn]) -> dict[str, Any]:
    texts = {each.name: each.fill for each in catalog.columns if each.fill is not None}
    return {
        each.name: each.values(pa.array([texts[each.name]], pa.binary()))[0].as_py()
        for each in columns
        if each.name in texts
    }


def _identity(
    columns: Sequence[CatalogColumn], keys: Collection[str] | None
) -> tuple[str, ...] | None:
    """The keys in the order of the columns; None if there are none, or not all are sent."""
    names = [each.name for each in columns]
    if not keys or not set(keys) <= set(names):
        return None
    return tuple(name for name in names if name in keys)


def _check(catalog: CatalogTable, identity: tuple[str, ...] | None) -> None:
    lists = {each.columns and frozenset(each.columns) for each in catalog.entries}
    if len(lists) > 1:
        raise PublisherProblem(
            f'publications give different columns of "{catalog.name}"',
            why=f"they are {', '.join(each.publication for each in catalog.entries)}",
            fix="give them equal column lists, or name one of them only",
        )
    if not catalog.publication_columns:
        raise PublisherProblem(
            f'"{catalog.name}" has no published columns',
            fix="take the table out of the publication",
        )
    changes = {Operation.UPDATE, Operation.DELETE} & catalog.operations
    if not changes or catalog.setting == "f":
        return
    if identity is None or catalog.setting == "n":
        raise PublisherProblem(
            f'rows of "{catalog.name}" have no identity',
            why=f"{' and '.join(sorted(changes))} are published, and the server refuses them for a "
            "table without a primary key, or if a column list leaves it out",
            fix="add a primary key, and its columns to the column list; or ALTER TABLE … REPLICA "
            "IDENTITY FULL; or publish inserts only: ALTER PUBLICATION … SET (publish = 'insert')",
        )


@dataclass
class Forms:
    server: PublisherServer
    tables: Mapping[str, CatalogTable]
    conversions: Conversions
    publications: Sequence[str] = ()
    _known: dict[ServerRelation, TableForm] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        server: PublisherServer,
        connection: Connection,
        publications: Sequence[str],
        choices: Mapping[str, str],
    ) -> Forms:
        """
        Raises:
            PublisherProblem: A publication is missing, or two tables have one name.
            InvalidDefinition: A choice names neither a column nor a type.
        """
        tables = _by_name(load_catalog(connection, publications))
        names = frozenset(
            f"{table.name}.{each.name}" for table in tables.values() for each in table.columns
        )
        chosen = resolve_type_names(connection, choices, names)
        types = {each.type for table in tables.values() for each in table.columns}
        return cls(server, tables, Conversions(types_of(connection, types), chosen), publications)

    def now(self, name: str) -> TableForm:
        """Raise `PublisherProblem` if the table cannot be replicated."""
        table = self.tables[name]
        identity = _identity(table.publication_columns, table.identity)
        _check(table, identity)
        return form_of(table, table.publication_columns, identity, self.conversions)

    def then(self, relation: ServerRelation) -> TableForm:
        """The form that a table had when the server logged its changes."""
        if relation not in self._known:
            self._known[relation] = self._then(relation)
        return self._known[relation]

    def _then(self, relation: ServerRelation) -> TableForm:
        unknown = {each.type for each in relation.columns} - self.conversions.types.keys()
        if unknown:
            # The connection that reads the log is busy.
            with self.server.session() as connection:
                types = {**self.conversions.types, **types_of(connection, unknown)}
            self.conversions = replace(self.conversions, types=types)
        table = self._table(relation)
        columns = relation.columns
        if table.operations == {Operation.TRUNCATE}:
            # The server overlooks the column list of publications that publish nothing else.
            listed = {each.name for each in table.publication_columns}
            columns = tuple(each for each in columns if each.name in listed)
        # Those that the server sent, or the primary key if it sent whole rows.
        keys = relation.keys if relation.setting in "di" else table.primary_key
        identity = _identity(relation.columns, keys)
        return form_of(table, columns, identity, self.conversions)

    def _table(self, relation: ServerRelation) -> CatalogTable:
        table = self.tables.get(relation.name)
        if table and not _names(relation) <= _names(table):
            # A column that was added after the catalog was read.
            with self.server.session() as connection:
                self.tables = _by_name(load_catalog(connection, self.publications))
            table = self.tables.get(relation.name)
        if table is None:
            # It is no longer published. Its last changes tell what it was.
            return CatalogTable(
                relation.oid, relation.schema, relation.table, relation.columns, relation.setting
            )
        return table


def _names(table: ServerRelation | CatalogTable) -> set[str]:
    return {each.name for each in table.columns}


def _by_name(tables: Iterable[CatalogTable]) -> dict[str, CatalogTable]:
    found: dict[str, CatalogTable] = {}
    for table in tables:
        if table.name in found:
            raise PublisherProblem(
                f'two published tables are called "{table.name}"',
                why="a dot is in the name of a schema or of a table",
                fix="rename one of them, or publish only one",
            )
        found[table.name] = table
    return found
