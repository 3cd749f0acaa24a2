"""The effect of changes on a target: rows to insert, update and delete.

Rows of a target with an identity are found by it. Without one, equal rows are counted: a Delta
table cannot delete one of two equal rows, so all rows of a group are deleted, and the others are
inserted again, with their values in unpublished columns. A group has equal values in the columns
without nesting, where 0.0 equals -0.0, as in a MERGE.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

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
from dagster_streamtables.replication.target.target_columns import Columns, copy_command, whole_rows
from dagster_streamtables.replication.target.target_table import RowsAtHand, TargetTable
from dagster_streamtables.runtime.delta.arrow import np, pa, python_rows

RowSource: TypeAlias = TargetTable | RowsAtHand


@dataclass(frozen=True)
class Effect:
    came: pa.Table
    """Rows to insert, in the published columns."""
    changed: pa.Table
    """The rows to update, by the columns that identify them in the target."""
    values: pa.Table
    """Their new values."""
    kept: Mapping[str, np.ndarray]
    """Column of `values` → the rows in which the stored value stays."""
    gone: pa.Table
    """The rows to delete, in the columns of `changed`: all equal ones."""
    again: pa.Table
    """Rows that are inserted again, in all columns of the target: they are among the deleted, or
    all rows are replaced."""
    replaces: bool
    """Whether the inserted rows replace all rows."""
    inserted: int
    updated: int
    deleted: int
    conflicts: Conflicts = field(default_factory=Conflicts)

    @property
    def is_empty(self) -> bool:
        parts = (self.came, self.changed, self.gone)  # there is no `again` without them
        return not self.replaces and not any(part.num_rows for part in parts)

    def require_values(self, columns: Columns) -> None:
        """Raise `TargetProblem` if a NOT NULL column of the target would be NULL."""
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
        ReplicationConflict: A change does not fit the rows, and that is an error.
        TargetProblem: Several rows of the target have the identity of one, or a value is missing.
    """
    find = _bag_effect if columns.table.identity is None else _keyed_effect
    effect = find(stored, columns, changes, on_conflict)
    if on_conflict == "error":
        require_no_conflict(columns, changes, effect.conflicts)
    effect.require_values(columns)
    return effect


def values_of(new: pa.Table, rows: Sequence[Row]) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """The published values of rows, by the changes that have them; and by column, the rows whose
    value only the target has."""
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


def _keyed_effect(
    stored: RowSource, columns: Columns, changes: TypedChanges, on_conflict: OnConflict
) -> Effect:
    ids = changes.row_ids(zeros_differ=False)
    there = _read_identities(stored, columns, changes, ids)
    row_of = _row_of_each(ids.of(comparable(there)), ids.count, there, columns)
    net = net_of(changes.to_indexed(ids), row_of >= 0, on_conflict)
    came = [row for row in net.rows if is_new(row)]
    changed = [row for row in net.rows if not is_new(row)]
    values, kept = values_of(changes.new, changed)
    return Effect(
        came=values_of(changes.new, came)[0],
        changed=there.take(row_of[[row.origin for row in changed]]),
        values=values,
        kept=kept,
        gone=there.take(row_of[sorted(net.gone)]),
        again=columns.schema([]).empty_table(),
        replaces=net.truncated,
        inserted=len(came),
        updated=len(changed),
        deleted=stored.row_count if net.truncated else len(net.gone),
        conflicts=net.conflicts,
    )


def _read_identities(
    stored: RowSource, columns: Columns, changes: TypedChanges, ids: RowIds
) -> pa.Table:
    """The stored identities that changes may be about."""
    new = changes.new.select(columns.identity).filter(changes.has_new)
    wanted = pa.concat_tables([new, changes.old.filter(changes.has_old)])
    return stored.read_matching(
        columns.identity, wanted, lambda rows: ids.of(comparable(rows)) >= 0
    )


def _row_of_each(numbers: np.ndarray, count: int, there: pa.Table, columns: Columns) -> np.ndarray:
    """By number, the index of the stored row; -1 if missing."""
    found = np.full(count, -1, np.int64)
    found[numbers] = np.arange(len(numbers))
    twice = np.flatnonzero(found[numbers] != np.arange(len(numbers)))
    if len(twice):
        raise TargetProblem(
            f'several rows of the target of "{columns.table.name}" have one identity',
            where=f"{columns.location}: {row_text(there, int(twice[0]))}",
            why="a change of one row would change them all; nothing was applied",
            fix=f"delete all but one of them; or copy again: {copy_command(columns.table.name)}",
        )
    return found


def row_text(rows: pa.Table, index: int) -> str:
    """A row as text: ``id=1, region='EU'``."""
    [row] = python_rows(rows.slice(index, 1))
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


def require_no_conflict(columns: Columns, changes: TypedChanges, conflicts: Conflicts) -> None:
    """Raise `ReplicationConflict` if a change makes a row whose key another row has."""
    if conflicts.first is None:
        return
    change, kind = conflicts.first
    position = int(changes.position[change])
    row = row_text(changes.new.select(columns.identity), change)
    raise ReplicationConflict(
        f'a change of "{columns.table.name}" conflicts with a row that its target already has',
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
    """The rows with the numbers that changes touch: first the stored ones, by their indices."""

    stored: Mapping[int, Sequence[int]]
    wins: bool = False
    """Whether an update of a missing row inserts it."""
    truncated: bool = False
    conflicts: Conflicts = field(default_factory=Conflicts)
    rows: dict[int, list[Row]] = field(default_factory=dict)
    left: set[int] = field(default_factory=set)
    """The stored rows that are deleted, or have other values."""

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


def _bag_effect(
    stored: RowSource, columns: Columns, changes: TypedChanges, on_conflict: OnConflict
) -> Effect:
    plain = columns.plain_identity
    went = changes.old.filter(changes.has_old)
    groups = RowIds([went.select(plain)])
    wanted = went.select(plain) if plain else went
    there = stored.read_matching(
        columns.stored.names, wanted, lambda rows: groups.of(rows.select(plain)) >= 0
    )
    bag = _fold_changes(changes, columns, there, on_conflict)
    left = sorted(bag.left)
    group = groups.of(there.select(plain)) if plain else np.zeros(there.num_rows, np.int64)
    again = np.isin(group, group[left])
    again[left] = False
    rows = [row for found in bag.rows.values() for row in found if row.change != STORED]
    new, old = ([row for row in rows if is_new(row) is each] for each in (True, False))
    stays = there.filter(again & (not bag.truncated))
    moved = _values_of_rows(changes, columns, there, old)
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
        deleted=stored.row_count if bag.truncated else len(left) - len(old),
        conflicts=bag.conflicts,
    )


def _fold_changes(
    changes: TypedChanges, columns: Columns, there: pa.Table, on_conflict: OnConflict
) -> Bag:
    """Apply changes, in their order, to the stored rows."""
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


def _values_of_rows(
    changes: TypedChanges, columns: Columns, there: pa.Table, rows: list[Row]
) -> pa.Table:
    """The published columns as changed, the others as stored; NULL in a new row."""
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


_GONE, _STAYS = -1, -2


def rows_after(columns: Columns, stored: pa.Table, effect: Effect) -> pa.Table:
    """All rows of a target, in all its columns, after an effect on these stored rows."""
    added = [whole_rows(columns.stored, each) for each in (effect.came, effect.again)]
    if effect.replaces:
        return pa.concat_tables(added)
    changed, gone = comparable(effect.changed), comparable(effect.gone)
    ids = RowIds([changed, gone])
    becomes = np.full(ids.count + 1, _GONE)
    becomes[ids.of(changed)] = np.arange(changed.num_rows)
    becomes[-1] = _STAYS  # the rows without a number
    becomes = becomes[ids.of(comparable(stored.select(gone.column_names)))]
    moved = np.flatnonzero(becomes >= 0)
    for name, values in zip(effect.values.column_names, effect.values.columns, strict=True):
        source = np.arange(stored.num_rows)
        keeps = effect.kept.get(name, np.zeros(changed.num_rows, bool))[becomes[moved]]
        source[moved] = np.where(keeps, moved, stored.num_rows + becomes[moved])
        place = stored.column_names.index(name)
        both = pa.chunked_array([*stored[name].chunks, *values.chunks], values.type)
        stored = stored.set_column(place, stored.schema.field(place), both.take(source))
    return pa.concat_tables([stored.filter(becomes != _GONE), *added])
