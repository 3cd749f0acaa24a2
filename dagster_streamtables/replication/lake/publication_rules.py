"""`PublicationRule`: how publications show a table. `PublicationView`: what they show of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dagster_streamtables.errors import PublisherProblem, StreamTablesError
from dagster_streamtables.replication.lake.publication import (
    Publication,
    PublicationEntry,
    any_of,
    columns_of,
)
from dagster_streamtables.replication.model.replication_model import (
    Operation,
    PublishedTable,
    of_each,
)
from dagster_streamtables.runtime.delta.data_files import schema_of
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.definition import visible_types

FILTERED = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)
"""The operations on rows: a truncate is published whole."""


@dataclass(frozen=True)
class PublicationRule:
    """How one table is published. A table in several publications is published once."""

    table: str
    columns: frozenset[tuple[str, ...] | None]
    """The column lists of the publications, which must result in the same columns."""
    key: tuple[str, ...] | None
    operations: frozenset[Operation]
    filters: Mapping[Operation, str]
    """By published operation on rows; empty if all rows are published. The filter of updates
    decides between operations: rows that begin to match are inserted, rows that cease to match are
    deleted."""
    copy: str
    """The filter of the initial copy, whatever operations are published; empty for all rows."""

    @property
    def all_filters(self) -> tuple[str, ...]:
        """The distinct filters of the operations."""
        return tuple(dict.fromkeys(each for each in self.filters.values() if each))


def rules_of(
    publications: Sequence[Publication], tables: Iterable[str]
) -> tuple[dict[str, PublicationRule], dict[str, StreamTablesError]]:
    """The rules of all tables that one of the publications has, by name.

    Args:
        publications: The publications of one replication.
        tables: The existing tables, for publications of schemas and of all tables.

    Returns:
        The rules, and the errors of tables to which publications give different keys.
    """
    named = {each.table for publication in publications for each in publication.tables}
    shown: dict[str, list[tuple[Publication, PublicationEntry]]] = {}
    for table in sorted({*named, *tables}):
        entries = [(each, entry) for each in publications if (entry := each.entry(table))]
        if entries:
            shown[table] = entries
    return of_each(shown, lambda table: _rule(table, shown[table]))


def _rule(table: str, shown: Sequence[tuple[Publication, PublicationEntry]]) -> PublicationRule:
    filters = {
        op: any_of(entry.where for each, entry in shown if op in each.operations)
        for op in FILTERED
        if any(op in each.operations for each, _ in shown)
    }
    return PublicationRule(
        table,
        columns=frozenset(entry.columns for _, entry in shown),
        key=_key(table, [entry for _, entry in shown]),
        operations=frozenset[Operation]().union(*(each.operations for each, _ in shown)),
        filters=filters,
        copy=any_of(entry.where for _, entry in shown),
    )


def _key(table: str, entries: Sequence[PublicationEntry]) -> tuple[str, ...] | None:
    keys = {tuple(sorted(each.key)): each.key for each in entries if each.key is not None}
    if len(keys) > 1:
        told = " and ".join(f"({', '.join(key)})" for key in keys.values())
        raise PublisherProblem(
            f'publications give the table "{table}" different keys',
            why=f"they are {told}, and a replication finds a row by one key",
            fix="declare the same key in each publication, or in one of them only",
        )
    return next(iter(keys.values()), None)


NESTED = ("array", "map", "struct", "variant")


@dataclass(frozen=True)
class PublicationView:
    rule: PublicationRule
    columns: tuple[str, ...]
    """The published columns, as the table spells and orders them."""
    key: tuple[str, ...] | None
    """The columns by which the old and the new row of an update are found. They need not be
    published if neither updates nor deletes are."""
    published: PublishedTable
    looked_at: tuple[str, ...]
    """The columns that the filters of operations use."""
    types: tuple[str, ...]
    """The types of all of these columns: a batch ends where they change."""

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The columns that are read: the published ones and the key."""
        return (*self.columns, *(each for each in self.key or () if each not in self.columns))


def apply_rule(rule: PublicationRule, log: TableLog) -> PublicationView:
    """The visible part of a table at a version, without the hidden columns of a stream table.

    Raises:
        PublisherProblem: The rule does not fit the table.
    """
    there = visible_types(log.columns)
    columns = _columns(rule, there)
    keyed = _find_columns(rule.table, rule.key, there) if rule.key else None
    for name in keyed or ():
        if there[name].startswith(NESTED):
            raise PublisherProblem(
                f'column "{name}" cannot be in the key of the published table "{rule.table}"',
                why=f"it is {there[name]}, and rows are found by plain values",
                fix="choose another key",
            )
    used = {
        where: columns_of(rule.table, where, log) for where in {*rule.all_filters, rule.copy} - {""}
    }
    looked_at = frozenset[str]().union(*(used[where] for where in rule.all_filters))
    identity = keyed if keyed is not None and set(keyed) <= set(columns) else None
    changes = rule.operations & {Operation.UPDATE, Operation.DELETE}
    if keyed is not None and identity is None and changes:
        missing = ", ".join(name for name in keyed if name not in columns)
        raise PublisherProblem(
            f'the columns of the published table "{rule.table}" lack its key',
            why=f"updates and deletes are published, and find rows by {missing}, too",
            fix="add the key to the columns, or publish neither updates nor deletes",
        )
    # Delta has no default for the rows that were there when a column was added: they have NULL.
    published = PublishedTable(rule.table, schema_of(log, columns), identity, rule.operations)
    looked = _find_columns(rule.table, looked_at, there)
    types = tuple(there[name] for name in (*columns, *(keyed or ()), *looked))
    return PublicationView(rule, columns, keyed, published, looked, types)


def _columns(rule: PublicationRule, there: Iterable[str]) -> tuple[str, ...]:
    """The columns of the lists; a list of all columns equals no list."""
    every = tuple(there)
    lists = {
        every if names is None else _find_columns(rule.table, names, every)
        for names in rule.columns
    }
    if len(lists) > 1:
        raise PublisherProblem(
            f'publications show different columns of the table "{rule.table}"',
            why="its rows are published once, with the columns of one list",
            fix="give the table the same columns in each publication of the replication, or use "
            "one replication for each",
        )
    [columns] = lists
    if not columns:
        raise PublisherProblem(
            f'the published table "{rule.table}" has no columns',
            fix="add one, or take the table out of the publication",
        )
    return columns


def _find_columns(table: str, names: Iterable[str], there: Iterable[str]) -> tuple[str, ...]:
    """Columns in the order of the table. Delta does not tell names apart by case."""
    spelled = {name.lower(): name for name in there}
    for name in names:
        if name.lower() not in spelled:
            raise PublisherProblem(
                f'the published table "{table}" has no column "{name}"',
                why=f"it has {', '.join(spelled.values())}",
                fix="correct the publication, or give the table that column again",
            )
    wanted = {name.lower() for name in names}
    return tuple(name for lower, name in spelled.items() if lower in wanted)
