"""Changes in the types of their target, folded: for each row, its last values.

Rows are numbers here (`RowIds`), values are the indices of the changes that have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster_streamtables.errors import PublisherProblem
from dagster_streamtables.replication.apply.contract import ConflictKind, Conflicts, OnConflict
from dagster_streamtables.replication.target.target_columns import Columns, copy_command
from dagster_streamtables.runtime.delta.arrow import np, pa, pc, times_as_texts

STORED = -1
"""Instead of a change: the value that the target has."""
NONE = -1
"""Instead of the number of a row: there is none."""


@dataclass(frozen=True)
class IndexedChanges:
    """Changes of a table with an identity."""

    op: np.ndarray
    old: np.ndarray
    """The number of the row's identity before; `NONE` for an insert and a truncate."""
    new: np.ndarray
    """The same, after; `NONE` for a delete and a truncate."""
    unchanged: Sequence[Sequence[int] | None]
    """For each change, the columns whose values it does not have."""


@dataclass(slots=True)
class Row:
    """A row that a change has touched."""

    origin: int
    """The number of the stored row that it was; `NONE` for a new one."""
    change: int
    """The change with its values."""
    columns: dict[int, int] = field(default_factory=dict)
    """Column → another change that has its value, or `STORED`."""


def net_of(changes: IndexedChanges, stored: np.ndarray, on_conflict: OnConflict) -> NetRows:
    """Fold changes, in their order.

    Args:
        stored: For each number, whether the target has that row.
        on_conflict: See `OnConflict`; with "error", the caller looks at the first conflict.
    """
    net = NetRows(changes, stored, on_conflict)
    for i, op in enumerate(changes.op.tolist()):
        getattr(net, op)(i)
    return net


class NetRows:
    """The rows that changes touch, after those that were folded so far."""

    def __init__(
        self, changes: IndexedChanges, stored: np.ndarray, on_conflict: OnConflict
    ) -> None:
        self.old, self.new = changes.old.tolist(), changes.new.tolist()
        self.unchanged, self.stored = changes.unchanged, stored.tolist()
        self.wins, self.conflicts = on_conflict == "apply", Conflicts()
        self.live: dict[int, Row] = {}
        """The touched rows that exist, by number."""
        self.left: set[int] = set()
        """Stored rows that no longer have their number."""
        self.gone: set[int] = set()
        """The numbers of deleted stored rows; empty if all are, with `truncated`."""
        self.truncated = False

    @property
    def rows(self) -> list[Row]:
        return [*self.live.values()]

    def _has(self, number: int) -> bool:
        if number in self.live:
            return True
        return not self.truncated and self.stored[number] and number not in self.left

    def _take(self, number: int) -> Row:
        """Remove an existing row."""
        row = self.live.pop(number, None) or Row(number, STORED)
        if row.origin != NONE:
            self.left.add(row.origin)
        return row

    def _drop(self, number: int) -> None:
        origin = self._take(number).origin
        if origin != NONE:
            self.gone.add(origin)

    def insert(self, i: int) -> None:
        number, origin = self.new[i], NONE
        if self._has(number):
            self.conflicts.add(ConflictKind.INSERT_EXISTS, i)
            if not self.wins:
                return
            origin = self._take(number).origin
        self.live[number] = Row(origin, i)

    def update(self, i: int) -> None:
        old, new, unchanged = self.old[i], self.new[i], self.unchanged[i] or ()
        if not self._has(old):
            self.conflicts.add(ConflictKind.UPDATE_MISSING, i)
            if not self.wins or unchanged:
                return
            origin = self._take(new).origin if self._has(new) else NONE
            self.live[new] = Row(origin, i)
            return
        if new != old and self._has(new):
            self.conflicts.add(ConflictKind.UPDATE_EXISTS, i)
            if not self.wins:
                return
            self._drop(new)
        row = self._take(old)
        columns = {column: row.columns.get(column, row.change) for column in unchanged}
        self.live[new] = Row(row.origin, i, columns)

    def delete(self, i: int) -> None:
        if self._has(self.old[i]):
            self._drop(self.old[i])
        else:
            self.conflicts.add(ConflictKind.DELETE_MISSING, i)

    def truncate(self, i: int) -> None:
        self.live, self.gone, self.truncated = {}, set(), True


class RowIds:
    """The distinct rows of some tables with equal columns; NULLs and NaNs are equal."""

    def __init__(self, tables: Sequence[pa.Table], *, zeros_differ: bool = False) -> None:
        """
        Args:
            tables: The rows to number, in plain columns without nesting.
            zeros_differ: Whether -0.0 differs from 0.0. PostgreSQL's keys equate them.
        """
        self._zeros_differ = zeros_differ
        known = pa.concat_tables(tables)
        self._values = [self._plain(column).unique() for column in known.columns]
        self._combined: list[np.ndarray] = []
        combined = np.zeros(known.num_rows, np.int64)
        for values, column in zip(self._values, known.columns, strict=True):
            combined = combined * len(values) + self._codes(column, values)
            self._combined.append(np.unique(combined))
            combined = np.searchsorted(self._combined[-1], combined)
        self.count = len(self._combined[-1]) if self._combined else 0

    def of(self, rows: pa.Table) -> np.ndarray:
        """For each row its number, from 0; -1 if unknown."""
        numbers, there = np.zeros(rows.num_rows, np.int64), np.ones(rows.num_rows, bool)
        for values, known, column in zip(self._values, self._combined, rows.columns, strict=True):
            codes = self._codes(column, values)
            there &= codes >= 0
            wanted = numbers * len(values) + codes
            numbers = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
            there &= known[numbers] == wanted if len(known) else False
        return np.where(there, numbers, -1)

    def _codes(self, column: pa.ChunkedArray, values: pa.Array) -> np.ndarray:

        found = pc.index_in(self._plain(column), value_set=values)
        return pc.fill_null(found, -1).to_numpy().astype(np.int64)

    def _plain(self, column: Any) -> Any:

        if self._zeros_differ or not pa.types.is_floating(column.type):
            return column
        return pc.add(column, pa.scalar(0.0, column.type))


@dataclass(frozen=True)
class TypedChanges:
    op: np.ndarray
    old: pa.Table
    """The identity before, also of an update that keeps it; any values for an insert."""
    new: pa.Table
    """The published columns; NULL where a value was not sent."""
    unchanged: Mapping[int, tuple[int, ...]]
    """Change → the columns of `new` that were not sent, without those of the identity."""
    position: np.ndarray
    """The position of the transaction of each change."""

    @property
    def has_old(self) -> np.ndarray:
        return ~np.isin(self.op, ("insert", "truncate"))

    @property
    def has_new(self) -> np.ndarray:
        return ~np.isin(self.op, ("delete", "truncate"))

    def to_indexed(self, ids: RowIds) -> IndexedChanges:
        """The same with numbers for rows."""
        old = np.where(self.has_old, ids.of(comparable(self.old)), NONE)
        new = np.where(self.has_new, ids.of(self.new_identity()), NONE)
        unchanged = [self.unchanged.get(i) for i in range(len(self.op))]
        return IndexedChanges(self.op, old, new, unchanged)

    def new_identity(self) -> pa.Table:
        return comparable(self.new.select(self.old.column_names))

    def row_ids(self, *, zeros_differ: bool) -> RowIds:
        return RowIds([comparable(self.old), self.new_identity()], zeros_differ=zeros_differ)


def to_typed_changes(columns: Columns, rows: pa.Table, positions: Sequence[int]) -> TypedChanges:
    """Cast changes, in the columns of `change_schema`.

    Raises:
        TargetProblem: The target does not take a value.
        PublisherProblem: A change does not identify its row.
    """
    rows = rows.combine_chunks()
    old = columns.cast(columns.identity, rows.column("old").flatten())
    new = columns.cast(columns.source_columns, rows.column("new").flatten())
    op = rows.column("op").to_numpy()
    has_old = rows.column("old").is_valid().to_numpy()
    untold = _untold(rows)
    for name in columns.identity:
        index = columns.source_columns.index(name)
        missing = untold.pop(index, np.zeros(rows.num_rows, bool))
        if (missing & ~has_old).any():
            raise PublisherProblem(
                f'a change of "{columns.table.name}" does not identify its row',
                where=columns.location,
                why=f'neither the old nor the new value of its column "{name}" was sent',
                fix="set REPLICA IDENTITY FULL for the table, and copy it again: "
                + copy_command(columns.table.name),
            )
        stays = (op == "update") & ~has_old
        old = _where(stays, name, new, old)
        new = _where(missing, name, old, new)
    unchanged: dict[int, tuple[int, ...]] = {}
    for index, missing in untold.items():
        for i in np.flatnonzero(missing).tolist():
            unchanged[i] = (*unchanged.get(i, ()), index)
    position = np.array(positions, np.int64)[rows.column("transaction").to_numpy()]
    return TypedChanges(op, old, new, unchanged, position)


def comparable(rows: pa.Table) -> pa.Table:
    """The rows with nested values as texts, which are equal if the values are."""
    for i, column in enumerate(rows.columns):
        if pa.types.is_nested(column.type):
            shown = pa.array(map(repr, times_as_texts(column).to_pylist()), pa.string())
            rows = rows.set_column(i, rows.column_names[i], shown)
    return rows


def _untold(rows: pa.Table) -> dict[int, np.ndarray]:
    """Column of `new` → the changes that do not have its value."""

    lists = rows.column("unchanged")
    if lists.null_count == rows.num_rows:
        return {}
    change = pc.list_parent_indices(lists).to_numpy()
    column = pc.list_flatten(lists).to_numpy()
    found = {}
    for index in np.unique(column).tolist():
        found[index] = np.zeros(rows.num_rows, bool)
        found[index][change[column == index]] = True
    return found


def _where(chosen: np.ndarray, name: str, theirs: pa.Table, ours: pa.Table) -> pa.Table:
    """Our rows, with the column of theirs in the chosen ones."""
    if not chosen.any():
        return ours
    both = pa.chunked_array([*theirs.column(name).chunks, *ours.column(name).chunks])
    rows = np.arange(ours.num_rows)
    index = ours.column_names.index(name)
    return ours.set_column(
        index, ours.schema.field(index), both.take(np.where(chosen, rows, rows + ours.num_rows))
    )
