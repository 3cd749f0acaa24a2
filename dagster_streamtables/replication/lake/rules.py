"""What several publications of one replication come to for each table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lake.publication import Publication, PublicationEntry, any_of
from dagster_streamtables.replication.model.errors import PublisherProblem, of_each
from dagster_streamtables.replication.model.published_table import Operation

FILTERED = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)
"""The operations on rows: a truncate is published whole."""


@dataclass(frozen=True)
class Rule:
    """How one table is published. A table in several publications is published once."""

    table: str
    columns: frozenset[tuple[str, ...] | None]
    """The column lists of the publications, which must come to the same columns."""
    key: tuple[str, ...] | None
    operations: frozenset[Operation]
    filters: Mapping[Operation, str]
    """By published operation on rows; empty where all rows are published. That of an update chooses
    what becomes of it: rows that begin to match are inserted, those that cease are deleted."""
    copy: str
    """The filter of the initial copy, for which it does not matter which operations are published;
    empty for all rows."""

    @property
    def all_filters(self) -> tuple[str, ...]:
        """The distinct ones of the operations."""
        return tuple(dict.fromkeys(each for each in self.filters.values() if each))


def rules_of(
    publications: Sequence[Publication], tables: Iterable[str]
) -> tuple[dict[str, Rule], dict[str, StreamTablesError]]:
    """The rules of all tables that one of the publications has, by name.

    Args:
        publications: Those of one replication.
        tables: The tables that exist, for publications of schemas and of all tables.

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


def _rule(table: str, shown: Sequence[tuple[Publication, PublicationEntry]]) -> Rule:
    filters = {
        op: any_of(entry.where for each, entry in shown if op in each.operations)
        for op in FILTERED
        if any(op in each.operations for each, _ in shown)
    }
    return Rule(
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
