"""Apply more changes than fit into memory, as one commit.

Inserts are appended in their order, and only digests of identities are kept. Other changes are
folded part by part. The fate of a row depends only on the changes of its identity, so the changes
and the rows of one identity go into one part, by a hash of it. An update of the identity ties two
of them together, and all identities that are tied go into one part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar

from deltalake import CommitProperties, write_deltalake

from dagster_streamtables.replication.apply.contract import (
    ApplyResult,
    Choices,
    ConflictKind,
    Conflicts,
)
from dagster_streamtables.replication.apply.copy_rows import identities_in
from dagster_streamtables.replication.apply.effect import (
    Effect,
    effect_of,
    require_no_conflict,
    rows_after,
)
from dagster_streamtables.replication.apply.row_digests import RowDigests, hashes
from dagster_streamtables.replication.apply.target_updates import write_parts_by_spark
from dagster_streamtables.replication.apply.typed_changes import TypedChanges, to_typed_changes
from dagster_streamtables.replication.model.replication_model import TableChanges
from dagster_streamtables.replication.model.rows_on_disk import RowsOnDisk
from dagster_streamtables.replication.target.target_columns import Columns, whole_rows
from dagster_streamtables.replication.target.target_table import (
    Provenance,
    RowsAtHand,
    TargetTable,
    properties,
    write_commit,
)
from dagster_streamtables.runtime.delta.arrow import np, pa, pc
from dagster_streamtables.runtime.storage.commit_target import FILE_BYTES


@dataclass(frozen=True)
class KeyComponents:
    known: np.ndarray
    """The hashes of identities that rows left or reached, in order."""
    least: np.ndarray
    """The least hash of the component of each."""

    def ends(self, hashed: np.ndarray) -> np.ndarray:
        """For each hash, the one that stands for its component."""
        if not len(self.known):
            return hashed
        near = np.minimum(np.searchsorted(self.known, hashed), len(self.known) - 1)
        return np.where(self.known[near] == hashed, self.least[near], hashed)


def key_components(moves: np.ndarray) -> KeyComponents:
    """
    Args:
        moves: Two rows of hashes: each move, from one to the other.

    >>> moves = np.array([[1, 5, 7, 9], [2, 2, 8, 9]], np.uint64)
    >>> key_components(moves).ends(np.arange(10, dtype="u8"))
    array([0, 1, 1, 3, 4, 1, 6, 7, 7, 9], dtype=uint64)
    """
    known, places = np.unique(moves, return_inverse=True)
    one, other = places.reshape(moves.shape)
    root = np.arange(len(known))
    while True:
        # The greater root follows the less, and each then skips what it follows: twenty rounds
        # join a chain of a million moves.
        low, high = np.minimum(root[one], root[other]), np.maximum(root[one], root[other])
        if np.array_equal(low, high):
            return KeyComponents(known, known[root])
        np.minimum.at(root, high, low)
        while not np.array_equal(root, further := root[root]):
            root = further


_BYTES = 64_000_000
"""The approximate size of the changes and stored rows of a part."""
_MOST = 256
"""The maximum number of parts, each of which is an open file while it is written."""


@dataclass(frozen=True)
class Parts:
    columns: Columns
    positions: Sequence[int]
    count: int
    ties: KeyComponents

    @classmethod
    def of(
        cls,
        columns: Columns,
        changes: pa.Table,
        positions: Sequence[int],
        *,
        stored: int,
        at_once: int,
    ) -> Parts:
        """
        Args:
            changes: As in `change_schema`.
            stored: The number of rows in the target.
            at_once: The approximate number of changes and stored rows of a part.
        """
        share = 1 + stored / max(changes.num_rows, 1)
        size = max(changes.num_rows / at_once, changes.nbytes / _BYTES) * share
        ties = key_components(_moves(columns, changes, positions))
        return cls(columns, positions, min(_MOST, int(size) + 1), ties)

    def split_changes(self, changes: pa.Table) -> list[pa.Table]:
        """The changes of each part, on disk. A truncate is in all parts."""
        return self._split(changes.schema, pieces_of(changes), self._part_of_changes)

    def split_target(self, there: TargetTable) -> list[pa.Table]:
        """The rows of the target, in plain types, part by part, on disk."""
        rows = there.tables(self.columns.stored.names)
        return self._split(self.columns.stored, rows, self._part_of_rows)

    def cast_changes(self, changes: pa.Table) -> TypedChanges:
        return to_typed_changes(self.columns, changes, self.positions)

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
        found = self.cast_changes(changes)
        is_insert = found.op == "insert"
        # Both are equal, or both are tied.
        hashed = np.where(is_insert, hashes(found.new_identity()), hashes(found.old))
        return np.where(found.op == "truncate", _EVERY, self._part(hashed))

    def _part_of_rows(self, rows: pa.Table) -> np.ndarray:
        return self._part(hashes(rows.select(self.columns.identity)))

    def _part(self, hashed: np.ndarray) -> np.ndarray:
        return (self.ties.ends(hashed) % np.uint64(self.count)).astype(np.int64)


_EVERY = -1
_PIECE = 50_000
"""The number of changes that are looked at together."""


def pieces_of(changes: pa.Table) -> Iterator[pa.Table]:
    for first in range(0, changes.num_rows, _PIECE):
        yield changes.slice(first, _PIECE)


def _moves(columns: Columns, changes: pa.Table, positions: Sequence[int]) -> np.ndarray:
    """The hashes of the identities that updates left and reached, in two rows."""

    found = [np.zeros((2, 0), np.uint64)]
    for piece in pieces_of(changes):
        moves = pc.and_(pc.equal(piece["op"], pa.scalar("update")), piece["old"].is_valid())
        moved = piece.filter(moves)
        if moved.num_rows:
            each = to_typed_changes(columns, moved, positions)
            found.append(np.stack([hashes(each.old), hashes(each.new_identity())]))
    return np.concatenate(found, axis=1)


def apply_in_parts(
    there: TargetTable,
    columns: Columns,
    changes: TableChanges,
    after: int | None,
    end: int,
    choices: Choices,
) -> ApplyResult:
    """Apply changes that follow the target's position `after`, and bring it to `end`."""
    target = there.target
    flow = _Flow(there, columns, changes, choices)
    made = Provenance(target.replication, target.origin, changes.table.name, after, end)
    try:
        version = write_commit(target, there.log.version, made, lambda: flow.write(made))
    except Exception:
        if flow.error is not None:
            raise flow.error from None
        raise
    return ApplyResult(version, end, flow.inserted, flow.updated, flow.deleted, flow.conflicts)


_Item = TypeVar("_Item")


@dataclass
class _Flow:
    """The rows on their way into the target, counted as they pass."""

    there: TargetTable
    columns: Columns
    changes: TableChanges
    choices: Choices
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: Counter[str] = field(default_factory=Counter)
    error: Exception | None = None
    """What stopped them: an engine that reads them repeats only its words."""

    def write(self, made: Provenance) -> None:
        if self.there.spark is None:
            self._write_by_delta_rs(properties(self.there.target, made))
        else:
            self._write_by_spark(made)

    def _write_by_delta_rs(self, properties: CommitProperties) -> None:
        log = self.there.log
        mode: Literal["append", "overwrite"] = "append" if self._only_inserts() else "overwrite"
        # What is stored is read before: delta-rs does not read while it writes.
        if mode == "append":
            rows = self._new_rows(identities_in(self.there, self.columns))
        else:
            rows = (rows_after(self.columns, *each) for each in self._effects(self._parts()))
        batches = (b for some in rows for b in whole_rows(log.arrow_schema, some).to_batches())
        write_deltalake(
            log.to_write(),
            pa.RecordBatchReader.from_batches(log.arrow_schema, self._noting(batches)),
            mode=mode,
            target_file_size=FILE_BYTES[-1],
            commit_properties=properties,
        )

    def _write_by_spark(self, made: Provenance) -> None:
        nothing = to_typed_changes(
            self.columns, self.changes.rows.slice(0, 0), self.changes.positions
        )
        none = self._effect(self.columns.stored.empty_table(), nothing)
        if self._only_inserts():
            there = identities_in(self.there, self.columns)
            effects = (replace(none, came=rows) for rows in self._new_rows(there))
        else:
            effects = (effect for _, effect in self._effects(self._parts()))
        replaces = "truncate" in self._ops
        write_parts_by_spark(self.there, none, self._noting(effects), made, replaces=replaces)

    @cached_property
    def _ops(self) -> list[str]:

        return pc.unique(self.changes.rows["op"]).to_pylist()

    def _only_inserts(self) -> bool:
        # A row that wins takes the place of another.
        wins = self.choices.on_conflict == "apply" and self.columns.table.identity is not None
        return not wins and self._ops == ["insert"]

    def _new_rows(self, there: RowDigests) -> Iterator[pa.Table]:
        came = RowDigests()
        for piece in pieces_of(self.changes.rows):
            found = to_typed_changes(self.columns, piece, self.changes.positions)
            new = found.new
            if self.columns.table.identity is not None:
                identities = new.select(self.columns.identity)
                met = np.flatnonzero(came.add(identities) | there.has(identities))
                if len(met) and self.choices.on_conflict == "error":
                    first = int(met[0]), ConflictKind.INSERT_EXISTS
                    require_no_conflict(self.columns, found, Conflicts(first=first))
                self.conflicts[ConflictKind.INSERT_EXISTS.value] += len(met)
                new = new.take(np.setdiff1d(np.arange(new.num_rows), met))
            self.columns.require_values(new)
            self.inserted += new.num_rows
            yield new

    def _effects(
        self, parts: Iterator[tuple[TypedChanges, pa.Table]]
    ) -> Iterator[tuple[pa.Table, Effect]]:
        """The stored rows of each part, and the effect on them."""
        for changes, stored in parts:
            effect = self._effect(stored, changes)
            self.inserted += effect.inserted
            self.updated += effect.updated
            self.deleted += effect.deleted
            self.conflicts += effect.conflicts.counts
            yield stored, effect

    def _effect(self, stored: pa.Table, changes: TypedChanges) -> Effect:
        return effect_of(RowsAtHand(stored), self.columns, changes, self.choices.on_conflict)

    def _parts(self) -> Iterator[tuple[TypedChanges, pa.Table]]:
        """The changes and the stored rows of each part; what is done is released."""
        parts = Parts.of(
            self.columns,
            self.changes.rows,
            self.changes.positions,
            stored=self.there.row_count,
            at_once=self.choices.in_memory // 2 + 1,
        )
        changes, stored = parts.split_changes(self.changes.rows), parts.split_target(self.there)
        return ((parts.cast_changes(c), s) for c, s in _each_once(changes, stored))

    def _noting(self, items: Iterator[_Item]) -> Iterator[_Item]:
        try:
            yield from items
        except Exception as error:
            self.error = error
            raise


def _each_once(*tables: list[pa.Table]) -> Iterator[tuple[pa.Table, ...]]:
    for each in tables:
        each.reverse()
    while tables[0]:
        yield tuple(each.pop() for each in tables)
