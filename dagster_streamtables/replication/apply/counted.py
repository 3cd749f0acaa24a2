"""The effect of changes on a target whose rows have no identity: equal rows are counted.

A Delta table cannot delete one of two equal rows. So all rows of a group are deleted, and those
that stay are inserted again, with what they have in columns that are not published. A group has
equal values in the columns without nesting, where 0.0 equals -0.0, as in a MERGE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.apply.contract import Conflicts, Kind, OnConflict
from dagster_streamtables.replication.apply.effect import Effect, is_new, values_of
from dagster_streamtables.replication.apply.net import NONE, STORED, NumberedChanges, Row
from dagster_streamtables.replication.apply.row_ids import RowIds
from dagster_streamtables.replication.apply.told import ToldChanges, comparable
from dagster_streamtables.replication.target.columns import Columns
from dagster_streamtables.replication.target.target_table import StoredRows

if TYPE_CHECKING:
    import pyarrow as pa


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

    def fold(self, changes: NumberedChanges) -> None:
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
                self.conflicts.add(Kind.DELETE_MISSING, i)
            else:
                self.conflicts.add(Kind.UPDATE_MISSING, i)
                if self.wins:
                    self._at(new[i]).append(Row(NONE, i))

    def _at(self, number: int) -> list[Row]:
        if number not in self.rows:
            there = () if self.truncated else self.stored.get(number, ())
            self.rows[number] = [Row(index, STORED) for index in there]
        return self.rows[number]


def counted_effect(
    stored: StoredRows, columns: Columns, changes: ToldChanges, on_conflict: OnConflict
) -> Effect:
    import pyarrow as pa

    plain = columns.plain_identity
    went = changes.old.take(np.flatnonzero(~np.isin(changes.op, ("insert", "truncate"))))
    groups = RowIds([went.select(plain)])
    wanted = went.select(plain) if plain else went
    there = stored.touched(
        columns.stored.names, wanted, lambda rows: groups.of(rows.select(plain)) >= 0
    )
    bag = folded(changes, columns, there, on_conflict)
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


def folded(changes: ToldChanges, columns: Columns, there: pa.Table, on_conflict: OnConflict) -> Bag:
    """What changes come to, where these rows are there."""
    ids = changes.row_ids(zeros_differ=True)
    stored: dict[int, list[int]] = defaultdict(list)
    for index, number in enumerate(ids.of(comparable(there.select(columns.published))).tolist()):
        if number >= 0:
            stored[number].append(index)
    bag = Bag(stored, wins=on_conflict == "apply")
    bag.fold(changes.numbered(ids))
    return bag


def values_of_rows(
    changes: ToldChanges, columns: Columns, there: pa.Table, rows: list[Row]
) -> pa.Table:
    """The published columns as changed, the others as they were; NULL in a new row."""
    import pyarrow as pa

    origin = np.array([row.origin for row in rows], np.int64)
    change = np.array([row.change for row in rows], np.int64)
    before = pa.array(origin, mask=origin < 0)
    return pa.table(
        [
            changes.new.column(name).take(change)
            if name in columns.published
            else there.column(name).take(before)
            for name in columns.stored.names
        ],
        schema=columns.stored,
    )
