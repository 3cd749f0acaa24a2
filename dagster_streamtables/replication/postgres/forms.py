"""The forms of a server's published tables, as they are now and as they were in its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.publisher import Operation
from dagster_streamtables.replication.postgres.catalog import CatalogTable, load_catalog
from dagster_streamtables.replication.postgres.choices import resolve_type_names
from dagster_streamtables.replication.postgres.conversions import Conversions, types_of
from dagster_streamtables.replication.postgres.messages import ServerRelation
from dagster_streamtables.replication.postgres.server import PublisherServer
from dagster_streamtables.replication.postgres.table_form import (
    TableForm,
    form_of,
    present_form,
)

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection


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
        """  # fmt: skip
        tables = _by_name(load_catalog(connection, publications))
        names = frozenset(
            f"{table.name}.{each.name}" for table in tables.values() for each in table.columns
        )
        chosen = resolve_type_names(connection, choices, names)
        types = {each.type for table in tables.values() for each in table.columns}
        return cls(server, tables, Conversions(types_of(connection, types), chosen), publications)

    def now(self, name: str) -> TableForm:
        """
        Raises:
            PublisherProblem: The table cannot be replicated.
        """
        return present_form(self.tables[name], self.conversions)

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
        return form_of(table, columns, _identity(relation, table), self.conversions)

    def _table(self, relation: ServerRelation) -> CatalogTable:
        table = self.tables.get(relation.name)
        if table and not _names(relation) <= _names(table):
            # A column that came after the catalog was read.
            with self.server.session() as connection:
                self.tables = _by_name(load_catalog(connection, self.publications))
            table = self.tables.get(relation.name)
        return table or _to_catalog_table(relation)


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


def _identity(relation: ServerRelation, table: CatalogTable) -> tuple[str, ...] | None:
    """The columns that the server sent, or the primary key where it sent whole rows."""
    names = [each.name for each in relation.columns]
    keys = relation.keys if relation.setting in "di" else frozenset(table.primary_key or ())
    if not keys or not keys <= set(names):
        return None
    return tuple(name for name in names if name in keys)


def _to_catalog_table(relation: ServerRelation) -> CatalogTable:
    """A table that is published no more, as its last changes tell it."""
    return CatalogTable(
        oid=relation.oid,
        schema=relation.schema,
        table=relation.table,
        columns=relation.columns,
        entries=(),
        operations=frozenset(Operation),
        is_root=False,
        setting=relation.setting,
        primary_key=None,
        identity_index=None,
        files=(),
    )
