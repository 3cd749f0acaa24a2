"""`ShownTable`: what a rule shows of a table at one of its versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dagster_streamtables.replication.lake.publication import columns_of
from dagster_streamtables.replication.lake.rules import Rule
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.published_table import Operation, PublishedTable
from dagster_streamtables.runtime.delta.data_rows import schema_of
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.definition import visible

NESTED = ("array", "map", "struct", "variant")


@dataclass(frozen=True)
class ShownTable:
    rule: Rule
    columns: tuple[str, ...]
    """The published ones, as the table spells and orders them."""
    key: tuple[str, ...] | None
    """By which the old and the new row of an update are found. It need not be published if neither
    updates nor deletes are."""
    published: PublishedTable
    looked_at: tuple[str, ...]
    """The columns that the filters of operations look at."""
    types: tuple[str, ...]
    """Those of all of these columns: a batch ends where they change."""

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The columns that are read: the published ones and the key."""
        return (*self.columns, *(each for each in self.key or () if each not in self.columns))


def shown(rule: Rule, log: TableLog, key: Sequence[str] | None = None) -> ShownTable:
    """What a rule shows of a table, without the hidden columns of a stream table.

    Args:
        rule: That of the table.
        log: The table at a version.
        key: Its key, if it is a stream table that has one and the rule declares none.

    Raises:
        PublisherProblem: The rule does not fit the table.
    """
    there = visible(log.columns)
    columns = _columns(rule, there)
    wanted = rule.key or key
    keyed = _named(rule.table, wanted, there) if wanted else None
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
    if keyed is not None and identity is None:
        _require_key_unused(rule, keyed, columns)
    # Delta has no default for the rows that were there when a column was added: they have NULL.
    published = PublishedTable(rule.table, schema_of(log, columns), identity, rule.operations)
    looked = _named(rule.table, looked_at, there)
    types = tuple(there[name] for name in (*columns, *(keyed or ()), *looked))
    return ShownTable(rule, columns, keyed, published, looked, types)


def _columns(rule: Rule, there: Iterable[str]) -> tuple[str, ...]:
    """Those of the column lists, of which one with all columns is none."""
    every = tuple(there)
    lists = {every if names is None else _named(rule.table, names, every) for names in rule.columns}
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


def _named(table: str, names: Iterable[str], there: Iterable[str]) -> tuple[str, ...]:
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


def _require_key_unused(rule: Rule, key: Sequence[str], columns: Sequence[str]) -> None:
    if rule.operations & {Operation.UPDATE, Operation.DELETE}:
        missing = ", ".join(name for name in key if name not in columns)
        raise PublisherProblem(
            f'the columns of the published table "{rule.table}" lack its key',
            why=f"updates and deletes are published, and find rows by {missing}, too",
            fix="add the key to the columns, or publish neither updates nor deletes",
        )
