"""The tables below one root, by their names; `Source`: one of them, as a query reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from dagster_streamtables.compiler import View, over_another, respell_tables, same_but_case
from dagster_streamtables.errors import (
    DamagedTable,
    EnvironmentProblem,
    SourceProblem,
    StreamTablesError,
)
from dagster_streamtables.runtime.catalogs.external_table import comparable_location
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.delta.table_locations import TableNames, is_remote
from dagster_streamtables.runtime.errors.table_errors import (
    MissingSource,
    in_root_and_catalog,
    missing,
    not_in_catalog,
    several_tables,
)
from dagster_streamtables.runtime.model.refresh_work import HeadWithState, refresh_work
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_state import (
    StreamTableState,
    TableInStorage,
    read_state,
    state_of,
)


@dataclass(frozen=True)
class TableCatalog:
    """Tables by name, read through their logs."""

    names: TableNames
    logs: Logs
    _sole: set[str] = field(default_factory=set[str], repr=False, compare=False)
    """The locations of tables of catalogs, whose names the root does not have."""

    def newest(self, name: str) -> TableLog | None:
        """
        Raises:
            InvalidDefinition: A catalog has a table of the name, and so has the root.
            SourceProblem: The catalog's table cannot be read; see `ExternalCatalog.find`.
        """
        place = self.names.find(name)
        if place is None:
            return None
        if not self.names.catalogs.has(name):
            return self.logs.newest(place)
        if place not in self._sole:
            own = self.names.own_location(name)
            if not _same(own, place) and self.logs.newest(own) is not None:
                raise in_root_and_catalog(name, own)
            self._sole.add(place)
        log = self.logs.newest(place)
        if log is None and self.names.catalogs.forget(name):
            place = self.names.find(name)  # it may have been created again elsewhere
            return None if place is None else self.logs.newest(place)
        return log

    def newest_at(self, name: str, location: str) -> TableLog | None:
        """The table at a location where a name led once, also if the name leads elsewhere now."""
        with suppress(StreamTablesError):  # asked for the credentials that a catalog may vend
            self.names.find(name)
        return self.logs.newest(location)

    def own(self, name: str) -> TableLog | None:
        """The table below the root whose folder has the name; `TableNames.tables` lists them."""
        return self.logs.newest(self.names.own_location(name))

    def leads_to(self, name: str, location: str) -> bool:
        """Whether a name is that of the table at a location; not if its catalog does not answer."""
        with suppress(SourceProblem, EnvironmentProblem):
            found = self.names.find(name)
            return found is not None and _same(found, location)
        return False

    def existing(self, name: str) -> TableLog:
        """
        Raises:
            MissingSource: There is no such table.
        """
        log = self.newest(name)
        if log is None:
            raise self.missing(name)
        return log

    def at(self, name: str, version: int) -> TableLog | None:
        return self.logs.at(self.names.location(name), version)

    def exact_name(self, name: str) -> str:
        """The name as its table is called, whose case may differ; the name itself if no table fits.

        Raises:
            InvalidDefinition: Several tables differ from it in case only, and none is equal.
        """
        if self.newest(name) is not None:
            return name
        found = self.names.alike(name, self.logs.storage_options)
        if len(found) > 1:
            raise several_tables(name, found)
        return found[0] if found else name

    def missing(
        self, name: str, query: StreamTable | None = None, more: Iterable[str] = ()
    ) -> MissingSource:
        """The error of a missing table, which a query may name; `more` are names of tables that do
        not exist yet, and may be meant."""
        where = query.place_of(name) if query is not None else ""
        if self.names.catalogs.has(name):
            return not_in_catalog(name, where=where)
        near = self.names.near(name, self.logs.storage_options, more)
        return missing(name, self.names.location(name), where=where, near=near)

    def table_at(self, location: str) -> TableInStorage | None:
        """The stream table at a location; None if missing."""
        log = self.logs.newest(location)
        return None if log is None else read_state(log)

    def pending(self, table: StreamTable) -> tuple[str, ...]:
        """What the next refresh of a stream table has to do, each a clause; empty if nothing."""
        stored = self.table_at(self.names.own_location(table.name))
        last = stored.refreshed if stored is not None else None
        if stored is None or last is None:
            return refresh_work(None, table.meaning, {}).reasons
        head = HeadWithState(stored.log.head, last.state, last.committed, last.disturbed)
        logs = {name: self.newest(name) for name in table.sources}
        newest = {name: log.head if log is not None else None for name, log in logs.items()}
        return refresh_work(head, table.meaning, newest).reasons

    def state(self, name: str, log: TableLog) -> StreamTableState | None:
        """The state at one version of a table, which may be older than its present name; None if it
        is not a stream table."""
        newest = self.newest(name)
        if newest is None or newest.id != log.id or newest.version == log.version:
            return state_of(name, log)
        return None if state_of(name, newest) is None else read_state(log).state

    def name_by_id(self, table: str) -> str | None:
        """The present name of a table that was renamed since a state was stored, by its id; None if
        missing. In an object store, no table is renamed."""
        if is_remote(self.names.root):
            return None
        for name in self.names.tables():
            with suppress(DamagedTable):
                log = self.own(name)
                if log is not None and log.id == table:
                    return name
        return None

    def source(self, name: str, until: datetime | None, consumed: int) -> TableLog:
        """A source as of a time. `alignment` chooses the versions of stream tables.

        Raises:
            MissingSource: It does not exist.
        """
        log = self.existing(name)
        if until is None or state_of(name, log) is not None:
            return log
        return self.logs.until(log, until.timestamp(), consumed)


def _same(one: str, other: str) -> bool:
    return comparable_location(one) == comparable_location(other)


@dataclass(frozen=True)
class Source:
    """One source of a query, at the start of a refresh."""

    name: str
    log: TableLog
    columns: Mapping[str, str]
    """The columns that the query uses, spelled as in the log, and their types."""

    @property
    def encodings(self) -> dict[str, str]:
        """How they are read, if the schema has more than the type; see `encoding`."""
        return {name: each for name, each in self.log.encodings.items() if name in self.columns}


def with_exact_names(table: StreamTable, spelled: Callable[[str], str]) -> StreamTable:
    """The declaration with the names of its sources as their tables are called; `spelled` returns
    the name of a table from its name in a query.

    Raises:
        InvalidDefinition: A name fits several tables, or the text is not a query.
    """
    names = {name: spelled(name) for name in table.sources}
    names = {name: meant for name, meant in names.items() if name != meant}
    if not names:
        return table
    return _with_spark_queries(table, lambda query: respell_tables(query, names))


def over_another_source(table: StreamTable, source: str, other: str) -> StreamTable:
    """The declaration with another source instead of one; see `over_another`."""
    return _with_spark_queries(table, lambda query: over_another(query, source, other))


def _with_spark_queries(table: StreamTable, change: Callable[[str], str]) -> StreamTable:
    """The declaration after a change of its query and views in Spark SQL.

    Other dialects have rules of their own for the case of names.
    """

    def query(each: StreamTable | View) -> str:
        return change(each.query) if each.dialect == "spark" else each.query

    views = tuple(replace(each, query=query(each)) for each in table.views)
    return replace(table, query=query(table), views=views)


def match_name(name: str, declared: Collection[str]) -> str | None:
    """The declared table that a name means: itself, or the only one that differs in case.

    Raises:
        InvalidDefinition: Several declared tables differ from it in case only.
    """
    if name in declared:
        return name
    found = sorted(each for each in declared if same_but_case(each, name))
    if len(found) > 1:
        raise several_tables(name, found)
    return found[0] if found else None
