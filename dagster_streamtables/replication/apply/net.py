"""What changes in their order come to: for each row of the target, its last values.

Rows are numbers here (`RowIds`), values are the indices of the changes that have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dagster_streamtables.replication.apply.contract import Conflicts, Kind, OnConflict

STORED = -1
"""In place of a change: the value that the target has."""
NONE = -1
"""In place of a row's number: there is none."""


@dataclass(frozen=True)
class NumberedChanges:
    """Changes of a table with an identity."""

    op: np.ndarray
    old: np.ndarray
    """The number of the row's identity before; `NONE` for an insert and a truncate."""
    new: np.ndarray
    """The same, after; `NONE` for a delete and a truncate."""
    unchanged: Sequence[Sequence[int] | None]
    """For each change, the columns that it does not tell."""


@dataclass(slots=True)
class Row:
    """A row that a change has touched."""

    origin: int
    """The number of the stored row that it was; `NONE` for a new one."""
    change: int
    """The change with its values."""
    columns: dict[int, int] = field(default_factory=dict)
    """Column → another change that has its value, or `STORED`."""


@dataclass
class Net:
    rows: list[Row]
    """The rows that are there afterwards, among those that were touched."""
    gone: list[int]
    """The numbers of stored rows that are deleted; empty if all are, with `truncated`."""
    conflicts: Conflicts
    truncated: bool = False


def net_of(changes: NumberedChanges, stored: np.ndarray, on_conflict: OnConflict) -> Net:
    """Fold changes.

    Args:
        changes: In their order.
        stored: For each number, whether the target has that row.
        on_conflict: See `OnConflict`; with "error", the caller looks at the first conflict.
    """
    fold = _Fold(changes, stored, on_conflict)
    for i, op in enumerate(changes.op.tolist()):
        getattr(fold, op)(i)
    gone = [] if fold.truncated else sorted(fold.gone)
    return Net([*fold.live.values()], gone, fold.conflicts, fold.truncated)


class _Fold:
    def __init__(
        self, changes: NumberedChanges, stored: np.ndarray, on_conflict: OnConflict
    ) -> None:
        self.old, self.new = changes.old.tolist(), changes.new.tolist()
        self.unchanged, self.stored = changes.unchanged, stored.tolist()
        self.wins, self.conflicts = on_conflict == "apply", Conflicts()
        self.live: dict[int, Row] = {}
        self.left: set[int] = set()  # stored rows that are under their number no more
        self.gone: set[int] = set()
        self.truncated = False

    def _has(self, number: int) -> bool:
        if number in self.live:
            return True
        return not self.truncated and self.stored[number] and number not in self.left

    def _take(self, number: int) -> Row:
        """Remove a row that is there."""
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
            self.conflicts.add(Kind.INSERT_EXISTS, i)
            if not self.wins:
                return
            origin = self._take(number).origin
        self.live[number] = Row(origin, i)

    def update(self, i: int) -> None:
        old, new, unchanged = self.old[i], self.new[i], self.unchanged[i] or ()
        if not self._has(old):
            self.conflicts.add(Kind.UPDATE_MISSING, i)
            if not self.wins or unchanged:
                return
            origin = self._take(new).origin if self._has(new) else NONE
            self.live[new] = Row(origin, i)
            return
        if new != old and self._has(new):
            self.conflicts.add(Kind.UPDATE_EXISTS, i)
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
            self.conflicts.add(Kind.DELETE_MISSING, i)

    def truncate(self, i: int) -> None:
        self.live, self.truncated = {}, True
