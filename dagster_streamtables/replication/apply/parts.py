"""Split many changes and the rows that they may be about into parts that fit into memory.

What happens to a row is told by the changes of its identity alone, so the changes and the rows of
one identity go into one part, by a hash of it. An update of the identity ties two of them together:
all that hangs together goes into the part of one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.apply.seen import hashes
from dagster_streamtables.replication.apply.told import ToldChanges, told
from dagster_streamtables.replication.model.batch import Transaction
from dagster_streamtables.replication.model.rows_on_disk import RowsOnDisk
from dagster_streamtables.replication.target.columns import Columns
from dagster_streamtables.replication.target.target_table import TargetTable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Ties:
    known: np.ndarray
    """The hashes of identities that rows left or reached, in order."""
    least: np.ndarray
    """The least hash of those that each hangs together with, itself included."""

    def ends(self, hashed: np.ndarray) -> np.ndarray:
        """For each hash one that stands for all that it hangs together with."""
        if not len(self.known):
            return hashed
        near = np.minimum(np.searchsorted(self.known, hashed), len(self.known) - 1)
        return np.where(self.known[near] == hashed, self.least[near], hashed)


def ties_of(moves: np.ndarray) -> Ties:
    """
    Args:
        moves: Two rows of hashes: each move, from one to the other.

    >>> ties_of(np.array([[1, 5, 7, 9], [2, 2, 8, 9]], np.uint64)).ends(np.arange(10, dtype="u8"))
    array([0, 1, 1, 3, 4, 1, 6, 7, 7, 9], dtype=uint64)
    """
    known, places = np.unique(moves, return_inverse=True)
    one, other = places.reshape(moves.shape)
    root = np.arange(len(known))
    while True:
        # The greater root follows the less, and each then skips what it follows: a chain of a
        # million moves is one after twenty rounds.
        low, high = np.minimum(root[one], root[other]), np.maximum(root[one], root[other])
        if np.array_equal(low, high):
            return Ties(known, known[root])
        np.minimum.at(root, high, low)
        while not np.array_equal(root, further := root[root]):
            root = further


_BYTES = 64_000_000
"""Of the changes and stored rows of a part, about."""
_MOST = 256
"""Parts, each of which is an open file while it is written."""


@dataclass(frozen=True)
class Parts:
    columns: Columns
    transactions: Sequence[Transaction]
    count: int
    ties: Ties

    @classmethod
    def of(
        cls,
        columns: Columns,
        changes: pa.Table,
        transactions: Sequence[Transaction],
        *,
        stored: int,
        at_once: int,
    ) -> Parts:
        """
        Args:
            columns: Those of the target.
            changes: As in `change_schema`.
            transactions: Those that the changes name.
            stored: The number of rows in the target.
            at_once: Changes and stored rows of a part, about.
        """
        share = 1 + stored / max(changes.num_rows, 1)
        size = max(changes.num_rows / at_once, changes.nbytes / _BYTES) * share
        ties = ties_of(_moves(columns, changes, transactions))
        return cls(columns, transactions, min(_MOST, int(size) + 1), ties)

    def of_changes(self, changes: pa.Table) -> list[pa.Table]:
        """The changes of each part, on disk. A truncate is in each."""
        return self._split(changes.schema, pieces_of(changes), self._part_of_changes)

    def of_stored(self, there: TargetTable) -> list[pa.Table]:
        """The rows of the target, in plain types, part by part, on disk."""
        import pyarrow as pa

        batches = there.batches(self.columns.stored.names)
        rows = (pa.Table.from_batches([each]) for each in batches)
        return self._split(self.columns.stored, rows, self._part_of_rows)

    def told(self, changes: pa.Table) -> ToldChanges:
        return told(self.columns, changes, self.transactions)

    def _split(
        self,
        schema: pa.Schema,
        pieces: Iterable[pa.Table],
        part_of: Callable[[pa.Table], np.ndarray],
    ) -> list[pa.Table]:
        files = [RowsOnDisk(schema) for _ in range(self.count)]
        for piece in pieces:
            part = part_of(piece)
            for number, file in enumerate(files):
                chosen = np.flatnonzero((part == number) | (part == _EVERY))
                if len(chosen):
                    file.add(piece.take(chosen).combine_chunks())
        return [file.read() for file in files]

    def _part_of_changes(self, changes: pa.Table) -> np.ndarray:
        found = self.told(changes)
        is_insert = found.op == "insert"
        # Both are equal, or both are tied.
        hashed = np.where(is_insert, hashes(found.new_identity()), hashes(found.old))
        return np.where(found.op == "truncate", _EVERY, self._part(hashed))

    def _part_of_rows(self, rows: pa.Table) -> np.ndarray:
        return self._part(hashes(rows.select(self.columns.identity)))

    def _part(self, hashed: np.ndarray) -> np.ndarray:
        found = self.ties.ends(hashed)
        mixed = found ^ (found >> np.uint64(29))
        return ((mixed * _ODD >> np.uint64(32)) % np.uint64(self.count)).astype(np.int64)


_EVERY = -1
_ODD = np.uint64(0x9E3779B97F4A7C15)
_PIECE = 50_000
"""Changes that are looked at together."""


def pieces_of(changes: pa.Table) -> Iterator[pa.Table]:
    for first in range(0, changes.num_rows, _PIECE):
        yield changes.slice(first, _PIECE)


def _moves(columns: Columns, changes: pa.Table, transactions: Sequence[Transaction]) -> np.ndarray:
    """The hashes of the identities that updates left and reached, in two rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = [np.zeros((2, 0), np.uint64)]
    for piece in pieces_of(changes):
        moves = pc.and_(pc.equal(piece["op"], pa.scalar("update")), piece["old"].is_valid())  # pyright: ignore[reportAttributeAccessIssue]
        moved = piece.filter(moves)
        if moved.num_rows:
            each = told(columns, moved, transactions)
            found.append(np.stack([hashes(each.old), hashes(each.new_identity())]))
    return np.concatenate(found, axis=1)
