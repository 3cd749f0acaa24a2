"""The effect of changes on a target: rows to insert, update and delete, or all rows rewritten.

Rows of a target with an identity are found by it. Without one, equal rows are counted: a Delta
table cannot delete one of two equal rows, so all rows of a group are deleted, and those that stay
are inserted again, with their values in columns that are not published. A group has equal values in
the columns without nesting, where 0.0 equals -0.0, as in a MERGE.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dagster_streamtables.errors import ReplicationConflict, TargetProblem
from dagster_streamtables.replication.apply.contract import ConflictKind, Conflicts, OnConflict
from dagster_streamtables.replication.apply.typed_changes import (
    NONE,
    STORED,
    IndexedChanges,
    Row,
    RowIds,
    TypedChanges,
    comparable,
    net_of,
)
from dagster_streamtables.replication.target.target_columns import (
    Columns,
    copy_command,
    whole_rows,
)
from dagster_streamtables.replication.target.target_table import RowSource
from dagster_streamtables.runtime.delta.arrow import python_rows


@dataclass(frozen=True)
class Effect:
    came: pa.Table
    """Rows to insert, in the published columns."""
    changed: pa.Table
    """The rows to update, by what tells them apart in the target."""
    values: pa.Table
    """Their new values."""
    kept: Mapping[str, np.ndarray]
    """Column of `values` → the rows in which it stays what it is."""
    gone: pa.Table
    """The rows to delete, in the columns of `changed`: all equal ones."""
    again: pa.Table
    """Rows that are inserted again, in all columns of the target: they are among the deleted, or
    all are replaced."""
    replaces: bool
    """Whether the rows that came take the place of all that were there."""
    inserted: int
    updated: int
    deleted: int | None
    """None for all rows that were there."""
    conflicts: Conflicts = field(default_factory=Conflicts)

    @property
    def is_empty(self) -> bool:
        parts = (self.came, self.changed, self.gone)  # there is no `again` without them
        return not self.replaces and not any(part.num_rows for part in parts)

    def require_values(self, columns: Columns) -> None:
        """
        Raises:
            TargetProblem: A column that is not NULL in the target would be.
        """
        columns.require_values(self.came)
        columns.require_values(self.again)
        for name in columns.required.intersection(self.values.column_names):
            rows = self.values.select([name])
            columns.require_values(rows.filter(~self.kept[name]) if name in self.kept else rows)


def effect_of(
    stored: RowSource, columns: Columns, changes: TypedChanges, on_conflict: OnConflict
) -> Effect:
    """
    Raises:
        TargetProblem: Several rows of the target have the identity of one.
    """
    if columns.table.identity is None:
        return bag_effect(stored, columns, changes, on_conflict)
    ids = changes.row_ids(zeros_differ=False)
    there = _read_identities(stored, columns, changes, ids)
    return effect_on(there, ids, columns, changes, on_conflict)


def values_of(new: pa.Table, rows: Sequence[Row]) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """The values of rows, by the changes that have them.

    Returns:
        The published columns; and by column, the rows whose value only the target has.
    """
    last = np.array([row.change for row in rows], np.int64)
    found, kept = new.take(last), {}
    for column in sorted({each for row in rows for each in row.columns}):
        changes = np.array([row.columns.get(column, row.change) for row in rows], np.int64)
        name, stays = new.column_names[column], changes == STORED
        kept[name] = stays
        taken = new.column(name).take(pa.array(changes, mask=stays))
        found = found.set_column(column, new.schema.field(column), taken)
    return found, kept


def is_new(row: Row) -> bool:
    return row.origin == NONE


def effect_on(
    there: pa.Table, ids: RowIds, columns: Columns, changes: TypedChanges, on_conflict: OnConflict
) -> Effect:
    """
    Args:
        there: The stored rows that changes are about: their identities, and whatever else tells
            them apart.
        ids: Of the changes.
        columns: Those of the target.
        changes: The changes.
        on_conflict: See `OnConflict`.

    Raises:
        TargetProblem: Several rows of the target have the identity of one.
    """
    numbers = ids.of(comparable(there.select(columns.identity)))
    row_of = _row_of_each(numbers, ids.count, there, columns)
    net = net_of(changes.to_indexed(ids), row_of >= 0, on_conflict)
    came = [row for row in net.rows if is_new(row)]
    changed = [row for row in net.rows if not is_new(row)]
    values, kept = values_of(changes.new, changed)
    return Effect(
        came=values_of(changes.new, came)[0],
        changed=there.take(row_of[[row.origin for row in changed]]),
        values=values,
        kept=kept,
        gone=there.take(row_of[net.gone]),
        again=columns.schema([]).empty_table(),
        replaces=net.truncated,
        inserted=len(came),
        updated=len(changed),
        deleted=None if net.truncated else len(net.gone),
        conflicts=net.conflicts,
    )


def _read_identities(
    stored: RowSource, columns: Columns, changes: TypedChanges, ids: RowIds
) -> pa.Table:
    """The identities of the rows that changes may be about, as they are stored."""
    new = changes.new.select(columns.identity)
    came, went = (np.flatnonzero(~np.isin(changes.op, each)) for each in (_NO_NEW, _NO_OLD))
    wanted = pa.concat_tables([new.take(came), changes.old.take(went)])
    return stored.read_matching(
        columns.identity, wanted, lambda rows: ids.of(comparable(rows)) >= 0
    )


_NO_NEW, _NO_OLD = ("delete", "truncate"), ("insert", "truncate")


def _row_of_each(numbers: np.ndarray, count: int, there: pa.Table, columns: Columns) -> np.ndarray:
    """By number, the index of the stored row; -1 if there is none."""
    found = np.full(count, -1, np.int64)
    found[numbers] = np.arange(len(numbers))
    twice = np.flatnonzero(found[numbers] != np.arange(len(numbers)))
    if len(twice):
        raise TargetProblem(
            f'several rows of the target of "{columns.table.name}" have one identity',
            where=f"{columns.location}: {row_text(there.select(columns.identity), int(twice[0]))}",
            why="a change of one row would change them all; nothing was applied",
            fix=f"delete all but one of them; or copy again: {copy_command(columns.table.name)}",
        )
    return found


def row_text(rows: pa.Table, index: int) -> str:
    """A row as text: ``id=1, region='EU'``."""
    [row] = python_rows(rows.slice(index, 1))
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


def require_no_conflict(columns: Columns, changes: TypedChanges, conflicts: Conflicts) -> None:
    """
    Raises:
        ReplicationConflict: A change makes a row whose key another row has.
    """
    if conflicts.first is None:
        return
    change, kind = conflicts.first
    position = int(changes.position[change])
    row = row_text(changes.new.select(columns.identity), change)
    raise ReplicationConflict(
        f'a change of "{columns.table.name}" meets a row that its target has already',
        where=f"{columns.location}: {row}; {kind}, position {position}",
        why="somebody else wrote that row, or it was there before the copy; nothing of the "
        "transaction was applied",
        fix="delete or correct the row of the target; or leave the transaction out: streamtables "
        f"replications skip NAME {position} --table {shlex.quote(columns.table.name)}; or let the "
        "publisher's row win: streamtables replications alter NAME --on-conflict apply; or keep "
        "the target's: streamtables replications alter NAME --on-conflict skip",
    )


@dataclass
class Bag:
    """The rows of the numbers that were touched: first the stored ones, by their indices."""

    stored: Mapping[int, Sequence[int]]
    wins: bool = False
    """Whether an update of a missing row inserts it."""
    truncated: bool = False
    conflicts: Conflicts = field(default_factory=Conflicts)
    rows: dict[int, list[Row]] = field(default_factory=dict)
    left: set[int] = field(default_factory=set)
    """The stored rows that are gone, or have other values."""

    def fold(self, changes: IndexedChanges) -> None:
        old, new = changes.old.tolist(), changes.new.tolist()
        for i, op in enumerate(changes.op.tolist()):
            if op == "truncate":
                self.rows, self.truncated = {}, True
            elif op == "insert":
                self._at(new[i]).append(Row(NONE, i))
            elif self._at(old[i]):
                row = self._at(old[i]).pop()
                self.left |= {row.origin} - {NONE}
                if op == "update":
                    self._at(new[i]).append(Row(row.origin, i))
            elif op == "delete":
                self.conflicts.add(ConflictKind.DELETE_MISSING, i)
            else:
                self.conflicts.add(ConflictKind.UPDATE_MISSING, i)
                if self.wins:
                    self._at(new[i]).append(Row(NONE, i))

    def _at(self, number: int) -> list[Row]:
        if number not in self.rows:
            there = () if self.truncated else self.stored.get(number, ())
            self.rows[number] = [Row(index, STORED) for index in there]
        return self.rows[number]


def bag_effect(
    stored: RowSource, columns: Columns, changes: TypedChanges, on_conflict: OnConflict
) -> Effect:
    plain = columns.plain_identity
    went = changes.old.take(np.flatnonzero(~np.isin(changes.op, ("insert", "truncate"))))
    groups = RowIds([went.select(plain)])
    wanted = went.select(plain) if plain else went
    there = stored.read_matching(
        columns.stored.names, wanted, lambda rows: groups.of(rows.select(plain)) >= 0
    )
    bag = fold_changes(changes, columns, there, on_conflict)
    left = sorted(bag.left)
    group = groups.of(there.select(plain)) if plain else np.zeros(there.num_rows, np.int64)
    again = np.isin(group, group[left])
    again[left] = False
    rows = [row for found in bag.rows.values() for row in found if row.change != STORED]
    new, old = ([row for row in rows if is_new(row) is each] for each in (True, False))
    stays = there.filter(again & (not bag.truncated))
    moved = values_of_rows(changes, columns, there, old)
    one_of_each = np.unique(group[left], return_index=True)[1]
    gone = there.select(plain).take(np.array(left, np.int64)[one_of_each])
    return Effect(
        came=values_of(changes.new, new)[0],
        again=pa.concat_tables([moved, stays]),
        changed=gone.schema.empty_table(),
        values=columns.schema([]).empty_table(),
        kept={},
        gone=gone.slice(0, 0) if bag.truncated else gone,
        replaces=bag.truncated or (bool(left) and not plain),
        inserted=len(new),
        updated=len(old),
        deleted=None if bag.truncated else len(left) - len(old),
        conflicts=bag.conflicts,
    )


def fold_changes(
    changes: TypedChanges, columns: Columns, there: pa.Table, on_conflict: OnConflict
) -> Bag:
    """What changes come to, where these rows are there."""
    ids = changes.row_ids(zeros_differ=True)
    stored: dict[int, list[int]] = defaultdict(list)
    for index, number in enumerate(
        ids.of(comparable(there.select(columns.source_columns))).tolist()
    ):
        if number >= 0:
            stored[number].append(index)
    bag = Bag(stored, wins=on_conflict == "apply")
    bag.fold(changes.to_indexed(ids))
    return bag


def values_of_rows(
    changes: TypedChanges, columns: Columns, there: pa.Table, rows: list[Row]
) -> pa.Table:
    """The published columns as changed, the others as they were; NULL in a new row."""
    origin = np.array([row.origin for row in rows], np.int64)
    change = np.array([row.change for row in rows], np.int64)
    before = pa.array(origin, mask=origin < 0)
    return pa.table(
        [
            changes.new.column(name).take(change)
            if name in columns.source_columns
            else there.column(name).take(before)
            for name in columns.stored.names
        ],
        schema=columns.stored,
    )


_ROW = "\0row"
"""The place of a stored row: no column has that name."""


@dataclass(frozen=True)
class RewriteResult:
    rows: pa.Table
    """In all columns of the target: the rows that stay, then those that came."""
    inserted: int
    updated: int
    deleted: int
    conflicts: Counter[str]


def rewrite_rows(
    columns: Columns, changes: TypedChanges, there: pa.Table, on_conflict: OnConflict
) -> RewriteResult:
    """
    Args:
        columns: Those of the target.
        changes: The changes.
        there: All stored rows that they may be about, and others.
        on_conflict: See `OnConflict`.

    Raises:
        ReplicationConflict: A change does not fit the rows, and that is an error.
        TargetProblem: Several rows have the identity of one, or a value is missing.
    """
    if columns.table.identity is None:
        return _rewrite_bag(columns, changes, there, on_conflict)
    ids = changes.row_ids(zeros_differ=False)
    identities = there.select(columns.identity)
    touched = np.flatnonzero(ids.of(comparable(identities)) >= 0)
    known = identities.append_column(_ROW, pa.array(np.arange(there.num_rows))).take(touched)
    effect = effect_on(known, ids, columns, changes, on_conflict)
    if on_conflict == "error":
        require_no_conflict(columns, changes, effect.conflicts)
    effect.require_values(columns)
    kept = there.slice(0, 0) if effect.replaces else _with_changes(there, effect)
    deleted = there.num_rows if effect.deleted is None else effect.deleted
    rows = pa.concat_tables([kept, whole_rows(columns.stored, effect.came)])
    return RewriteResult(rows, effect.inserted, effect.updated, deleted, effect.conflicts.counts)


def _with_changes(there: pa.Table, effect: Effect) -> pa.Table:
    """The rows with their new values, without those that are gone."""
    changed, gone = (part[_ROW].to_numpy() for part in (effect.changed, effect.gone))
    stays = np.setdiff1d(np.arange(there.num_rows), gone)
    for name in effect.values.column_names:
        values = effect.values[name]
        source = np.arange(there.num_rows)
        source[changed] = np.where(
            effect.kept.get(name, np.zeros(len(changed), bool)),
            changed,
            there.num_rows + np.arange(len(changed)),
        )
        place = there.column_names.index(name)
        both = pa.chunked_array([*there[name].chunks, *values.chunks], values.type)
        there = there.set_column(place, there.schema.field(place), both.take(source))
    return there.take(stays)


def _rewrite_bag(
    columns: Columns, changes: TypedChanges, there: pa.Table, on_conflict: OnConflict
) -> RewriteResult:
    bag = fold_changes(changes, columns, there, on_conflict)
    left = np.array(sorted(bag.left), np.int64)
    kept = there.take(np.setdiff1d(np.arange(there.num_rows), left))
    rows = [row for found in bag.rows.values() for row in found if row.change != STORED]
    came = values_of_rows(changes, columns, there, rows)
    inserted = sum(map(is_new, rows))
    updated = len(rows) - inserted
    deleted = there.num_rows if bag.truncated else len(left) - updated
    kept = kept.slice(0, 0) if bag.truncated else kept
    rows = pa.concat_tables([kept, came])
    return RewriteResult(rows, inserted, updated, deleted, bag.conflicts.counts)
