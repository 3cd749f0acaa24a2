"""The changes behind some positions, from the log of the triggers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.model.publisher import Batch, TableChanges, Transaction
from dagster_streamtables.replication.postgres.reading import Piece, renumber, spare_memory
from dagster_streamtables.replication.postgres.reshape import reshape_rows
from dagster_streamtables.replication.postgres.triggers.change_texts import pieces_of
from dagster_streamtables.replication.postgres.triggers.log_rows import rows_of
from dagster_streamtables.replication.postgres.triggers.shapes import TriggerShapes
from dagster_streamtables.replication.postgres.triggers.shown_rows import filter_condition
from dagster_streamtables.replication.postgres.triggers.windows import (
    SnapshotWindow,
    WindowTransaction,
    choose_transactions,
    require_whole,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from dagster_streamtables.replication.postgres.server import Connection
    from dagster_streamtables.replication.postgres.triggers.captured import CaptureState


@dataclass
class LogRead:
    connection: Connection
    capture: CaptureState
    shapes: TriggerShapes
    after: Mapping[str, int]
    max_rows: int
    transactions: list[WindowTransaction] = field(default_factory=lambda: [])
    """In order."""
    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    cut: int | None = None
    """The first transaction that belongs to the next batch, since it has other columns."""
    _changes: int = 0

    @property
    def is_full(self) -> bool:
        return self._changes >= self.max_rows

    def choose(self, before: SnapshotWindow, window: SnapshotWindow, *, is_new: bool) -> None:
        """Add transactions of a window, until there are so many changes as were wanted."""
        if not is_new:
            require_whole(self.connection, self.capture, before, window)
        left, wanted = min(self.after.values()), self.max_rows - self._changes
        for each in choose_transactions(
            self.connection, self.capture, before, window, left, wanted
        ):
            if self.is_full:
                return
            self.transactions.append(each)
            self._changes += each.changes

    def load(self) -> None:
        if not self.transactions:
            return
        positions = [each.position for each in self.transactions]
        shown = filter_condition(self.connection, self.shapes)
        for part in rows_of(self.connection, self.capture, self.transactions, shown):
            for name, piece in pieces_of(part, positions, self.shapes, self.after):
                self._add(name, piece)
            spare_memory(self.pieces)

    def _add(self, name: str, piece: Piece) -> None:
        """Where a table gets other columns, what is before is a batch of its own.

        Unless it is in the same transaction: then its rows get the columns that it ends with.
        """
        there = self.pieces.setdefault(name, [])
        form, transaction = piece.form, _first(piece)
        if there and not _same(there[-1], piece):
            if _first(there[0]) < transaction:
                self.cut = transaction if self.cut is None else min(self.cut, transaction)
            else:
                there[:] = [
                    Piece(form, reshape_rows(each.rows, each.form.table, form.table))
                    for each in there
                ]
        if self.cut is None or transaction < self.cut:
            there.append(piece)

    def batch(self, end: int, *, complete: bool) -> Batch:
        """
        Args:
            end: The position up to which all was read, if it was not stopped.
            complete: Whether there is nothing behind it.
        """  # fmt: skip
        positions = [each.position for each in self.transactions]
        if self.cut is not None:
            positions, end = positions[: self.cut], positions[self.cut] - 1
        elif self.is_full:
            end = positions[-1]
        found = {
            name: changes
            for name, pieces in self.pieces.items()
            if (changes := _table_changes([*map(self._before_the_cut, pieces)], positions))
        }
        return Batch(
            tables=found,
            end={name: max(end, position) for name, position in self.after.items()},
            complete=complete and self.cut is None and not self.is_full,
        )

    def _before_the_cut(self, piece: Piece) -> Piece:
        if self.cut is None:
            return piece
        places = piece.rows["transaction"].to_numpy()
        return Piece(piece.form, piece.rows.slice(0, int(np.searchsorted(places, self.cut))))


def _table_changes(pieces: list[Piece], positions: list[int]) -> TableChanges | None:
    import pyarrow as pa

    pieces = [each for each in pieces if len(each.rows)]
    if not pieces:
        return None
    rows: pa.Table = pa.concat_tables([each.rows for each in pieces])
    used, numbered = renumber(rows)
    return TableChanges(
        table=pieces[0].form.table,
        transactions=tuple(Transaction(positions[i]) for i in used.tolist()),
        rows=numbered,
    )


def _first(piece: Piece) -> int:
    return piece.rows["transaction"][0].as_py()


def _same(one: Piece, other: Piece) -> bool:
    earlier, later = one.form.table, other.form.table
    return earlier.schema == later.schema and earlier.identity == later.identity
