"""`Publication`: tables of a lake that others may replicate; `Publications`: those of one lake."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dagster_streamtables.compiler import compile_query, flaw_of, type_text
from dagster_streamtables.errors import InvalidDefinition, PublisherProblem, RefusedOperation
from dagster_streamtables.replication.model.replication_model import LostTable, Operation
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_locations import DEFAULT_SCHEMA, TableNames
from dagster_streamtables.runtime.model.definition import visible_types
from dagster_streamtables.runtime.storage.documents import Documents, without_format


def columns_of(table: str, where: str, log: TableLog) -> frozenset[str]:
    """The columns that a filter uses, in lower case.

    Raises:
        PublisherProblem: It names a column that the table does not have, or is no boolean.
    """
    try:
        columns = {"t": visible_types(log.columns)}
        plan = compile_query(f"SELECT (\n{where}\n) AS chosen FROM t AS __row", columns)
    except InvalidDefinition as error:
        raise PublisherProblem(
            f'the row filter of the published table "{table}" does not fit it: {error.what}',
            where=where,
            why=error.why,
            fix="correct the filter, or give the table that column again",
        ) from error
    found = type_text(plan.schema["chosen"])
    if found.lower() not in ("boolean", "unknown"):
        raise PublisherProblem(
            f'the row filter of the published table "{table}" is not a condition',
            where=where,
            why=f"it is {found}, and only true, false and NULL choose rows",
            fix="write a comparison",
        )
    return frozenset(plan.columns_of("t"))


def any_of(filters: Iterable[str]) -> str:
    """A filter for the rows that one of them chooses; empty, which is all rows, if one is empty.

    >>> any_of(["a > 1", "b = 2", "a > 1"])
    '(a > 1\\n) OR (b = 2\\n)'
    """
    found = list(dict.fromkeys(filters))
    if "" in found or len(found) < 2:
        return "" if "" in found else "".join(found)
    return " OR ".join(f"({each}\n)" for each in found)  # a comment may end one of them


_FORMAT = 1


@dataclass(frozen=True)
class PublicationEntry:
    """One table of a publication."""

    table: str
    """``sales.orders``; without a schema it is in ``public``."""
    columns: tuple[str, ...] | None = None
    """The published columns, in any order; None for all, also future ones."""
    where: str = ""
    """A condition in Spark SQL: rows for which it is false or NULL are not published. Empty for all
    rows. It may use any column of the table."""
    key: tuple[str, ...] | None = None
    """The columns that identify a row, which are not checked; None if only the whole row does."""

    def __post_init__(self) -> None:
        TableNames("").location(self.table)
        object.__setattr__(self, "table", qualify_name(self.table))
        for setting in ("columns", "key"):
            names = getattr(self, setting)
            if names is not None:
                object.__setattr__(self, setting, tuple(names))
                _require_names(self.table, setting, tuple(names))
        if self.where and (flaw := flaw_of(self.where)):
            raise InvalidDefinition(
                f'the row filter of the published table "{self.table}" cannot be used: {flaw}',
                where=self.where,
                why="a row that is deleted must be recognized as the row that was published",
                fix="write a condition with the row's columns, constants and Spark's built-in "
                "functions that are deterministic; no subquery",
            )


@dataclass(frozen=True)
class Publication:
    """Tables of a lake, and which of their rows and columns are published. It has no effect without
    a replication."""

    name: str
    tables: tuple[PublicationEntry, ...] = ()
    schemas: tuple[str, ...] = ()
    """All tables of these, also future ones."""
    all_tables: bool = False
    """Whether it has every table of the lake, also future ones."""
    operations: frozenset[Operation] = frozenset(Operation)
    """The published operations; the initial copy is not one of them. A DELETE without a predicate
    is a truncate."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(self.tables))
        object.__setattr__(self, "schemas", tuple(self.schemas))
        object.__setattr__(self, "operations", frozenset(map(_operation, self.operations)))
        names = [each.table for each in self.tables]
        for name in names:
            if names.count(name) > 1:
                raise InvalidDefinition(
                    f'publication "{self.name}" names the table "{name}" twice',
                    fix="name it once; two filters are one, with OR between them",
                )
        listed = [each.table for each in self.tables if each.columns is not None]
        if listed and (self.schemas or self.all_tables):
            raise InvalidDefinition(
                f'publication "{self.name}" lists columns of the table "{listed[0]}", and has all '
                "tables of a schema",
                why="whoever reads the list would think that the other columns are not published",
                fix="leave out the list, or make another publication for the schema",
            )

    def entry(self, table: str) -> PublicationEntry | None:
        """How it publishes a table; None if it does not."""
        named = next((each for each in self.tables if each.table == table), None)
        # As in PostgreSQL, a schema or all tables publish all rows, whatever filter is named.
        if self.all_tables or schema_of(table) in self.schemas:
            return PublicationEntry(table, key=None if named is None else named.key)
        return named

    def with_entries(self, entries: Iterable[PublicationEntry]) -> Publication:
        """The same with more tables."""
        return replace(self, tables=(*self.tables, *entries))

    def without(self, tables: Collection[str]) -> Publication:
        """
        Raises:
            InvalidDefinition: It does not name one of them.
        """
        gone = set(map(qualify_name, tables))
        for name in sorted(gone - {each.table for each in self.tables}):
            raise InvalidDefinition(
                f'publication "{self.name}" does not name the table "{name}"',
                fix="name one of its tables: "
                + (", ".join(each.table for each in self.tables) or "it has none"),
            )
        return replace(self, tables=tuple(e for e in self.tables if e.table not in gone))

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        values = asdict(self) | {"operations": sorted(self.operations)}
        return {"format": _FORMAT, **values}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Publication:
        """
        Raises:
            ValueError: Another format.
        """
        known = without_format(values, _FORMAT)
        known["tables"] = tuple(PublicationEntry(**each) for each in known["tables"])
        return cls(**known)


def qualify_name(table: str) -> str:
    """
    >>> qualify_name("orders"), qualify_name("sales.orders")
    ('public.orders', 'sales.orders')
    """
    return table if "." in table else f"{DEFAULT_SCHEMA}.{table}"


def schema_of(table: str) -> str:
    """
    >>> schema_of("sales.eu.orders")
    'sales.eu'
    """
    return table.rpartition(".")[0]


def _operation(name: str) -> Operation:
    if name not in list(Operation):
        raise InvalidDefinition(
            f'there is no operation "{name}"',
            fix=f"publish some of these: {', '.join(Operation)}",
        )
    return Operation(name)


def _require_names(table: str, setting: str, names: tuple[str, ...]) -> None:
    if not names:
        raise InvalidDefinition(
            f'the {setting} of the published table "{table}" are none',
            fix=f"name at least one column, or leave out {setting}",
        )
    for name in names:
        if [each.lower() for each in names].count(name.lower()) > 1:
            raise InvalidDefinition(
                f'the {setting} of the published table "{table}" name "{name}" twice',
                fix="name each column once",
            )


class Publications:
    """The publications below one root. Threads and processes may share them.

    Methods raise `InvalidDefinition` for what cannot be the name of a publication, and, except for
    `create` and `find`, `PublisherProblem` if there is none of that name.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        """
        Args:
            root: As for `Lake`.
            storage_options: What delta-rs needs to reach an object store.
        """
        self._root = root.rstrip("/")
        self._documents = Documents(
            root, "publications", Publication, storage_options, noun="publication"
        )

    def names(self) -> list[str]:
        """The names of the publications, sorted."""
        return [name for name in self._documents.names() if self.find(name) is not None]

    def find(self, name: str) -> Publication | None:
        """The publication of a name; None if there is none."""
        return self._documents.find(name)

    def read(self, name: str) -> Publication:
        """The publication of a name."""
        return self._existing(name, self.find(name))

    def create(self, publication: Publication) -> Publication:
        """
        Raises:
            RefusedOperation: There is one of that name.
        """

        def create_new(known: Publication | None) -> Publication:
            if known is not None:
                raise RefusedOperation(
                    f'publication "{publication.name}" already exists',
                    fix="choose another name, alter it, or drop it first",
                )
            return publication

        return self._documents.change(publication.name, create_new)

    def add(self, name: str, *entries: PublicationEntry) -> Publication:
        """Publish more tables. A replication has them after its next refresh.

        Raises:
            InvalidDefinition: It names one of them already.
        """
        return self.alter(name, lambda known: known.with_entries(entries))

    def remove(self, name: str, *tables: str) -> Publication:
        """
        Raises:
            InvalidDefinition: It does not name one of them.
        """
        return self.alter(name, lambda known: known.without(tables))

    def set(self, name: str, *entries: PublicationEntry) -> Publication:
        """Replace all tables that it names."""
        return self.alter(name, lambda known: replace(known, tables=entries))

    def publish(self, name: str, operations: Collection[str | Operation]) -> Publication:
        """Set the operations that it publishes."""
        chosen: frozenset[Operation] = frozenset(operations)  # type: ignore[assignment]
        return self.alter(name, lambda known: replace(known, operations=chosen))

    def alter(self, name: str, change: Callable[[Publication], Publication]) -> Publication:
        """Change a publication; its name stays."""

        def apply_change(known: Publication | None) -> Publication:
            return replace(change(self._existing(name, known)), name=name)

        return self._documents.change(name, apply_change)

    def rename(self, name: str, to: str) -> Publication:
        """Two commits: for a moment, or after a crash, both names exist.

        Raises:
            RefusedOperation: There is one of the new name.
        """
        renamed = self.create(replace(self.read(name), name=to))
        self.drop(name)
        return renamed

    def drop(self, name: str) -> None:
        """Stop publishing its tables; a replication that reads it fails at its next refresh."""

        def drop_existing(known: Publication | None) -> None:
            self._existing(name, known)

        self._documents.change(name, drop_existing)

    def _existing(self, name: str, publication: Publication | None) -> Publication:
        if publication is None:
            raise PublisherProblem(
                f'there is no publication "{name}"',
                where=self._root,
                fix=f"create it, or name one of these: {', '.join(self.names()) or 'none yet'}",
            )
        return publication


def missing_changes_error(slot: str, table: str, why: str) -> LostTable:
    return LostTable(
        f'slot "{slot}" has lost changes of "{table}"',
        why=why,
        fix="copy the table again, or take it out of the replication",
    )


def missing_version_error(slot: str, table: str, version: int) -> LostTable:
    why = f"the log was cleaned up: version {version} is gone"
    return missing_changes_error(slot, table, why)
