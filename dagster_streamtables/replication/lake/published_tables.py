"""`PublishedTables`: what some publications of a lake give now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lake.publication import Publication, Publications, qualified
from dagster_streamtables.replication.lake.rules import Rule, rules_of
from dagster_streamtables.replication.lake.shown_table import ShownTable, shown
from dagster_streamtables.replication.model.errors import PublisherProblem, of_each
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.definition import compiled, visible
from dagster_streamtables.runtime.model.state import read_state
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_catalog import TableCatalog

Shown: TypeAlias = tuple[ShownTable, TableLog]


@dataclass(frozen=True)
class PublishedTables:
    publications: Publications
    names: Sequence[str]
    """Of the publications of one replication."""
    catalog: TableCatalog
    stream_tables: Mapping[str, StreamTable]
    """Declarations, by the qualified name: a table of groups has their key."""

    def rules(self) -> tuple[dict[str, Rule], dict[str, StreamTablesError]]:
        """
        Returns:
            The rule of each table, and the errors of tables whose publications contradict each
            other.

        Raises:
            PublisherProblem: A publication does not exist.
        """
        known = self._publications()
        return rules_of(known, self._listed() if any(map(_is_open, known)) else ())

    def shown(self) -> tuple[dict[str, Shown], dict[str, StreamTablesError]]:
        """
        Returns:
            For each published table its visible columns and rows, at its newest version; and the
            errors of tables that do not exist, or do not fit their publication.

        Raises:
            PublisherProblem: A publication does not exist.
        """
        named = {each.table for known in self._publications() for each in known.tables}
        rules, refused = self.rules()

        def find(name: str) -> Shown | None:
            log = self.catalog.newest(name)
            if log is not None:
                return shown(rules[name], log, self.key(name, log)), log
            if name not in named:
                return None  # it was dropped since it was listed
            raise PublisherProblem(
                f'the published table "{name}" does not exist',
                where=self.catalog.names.location(name),
                fix="create it, or take it out of the publication",
            )

        found, others = of_each(rules, find)
        return {n: each for n, each in found.items() if each is not None}, refused | others

    def key(self, name: str, log: TableLog) -> tuple[str, ...] | None:
        """The key of a stream table whose rows are groups; None of any other table."""
        table = self.stream_tables.get(name)
        state = None if table is None else read_state(log).state
        if table is None or state is None:
            return None
        columns = {source: seen.columns for source, seen in state.sources.items()}
        try:
            key = compiled(table, table.text(columns), columns).key or ()
        except StreamTablesError:  # mode FULL accepts any query
            return None
        return key if key and set(key) <= set(visible(log.columns)) else None

    def _publications(self) -> list[Publication]:
        return [self.publications.read(name) for name in dict.fromkeys(self.names)]

    def _listed(self) -> Iterable[str]:
        return map(qualified, self.catalog.names.tables(self.catalog.logs.storage_options))


def by_name(tables: Iterable[StreamTable]) -> dict[str, StreamTable]:
    return {qualified(table.name): table for table in tables}


def _is_open(publication: Publication) -> bool:
    return publication.all_tables or bool(publication.schemas)
