"""Apply more changes than fit into memory, as one commit.

Inserts are appended in their order, and only digests of identities are kept. Other changes are
folded part by part (`Parts`), and the target is written anew with what each part comes to.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dagster_streamtables.replication.apply.contract import Applied, Choices, Conflicts, Kind
from dagster_streamtables.replication.apply.copy_rows import identities_in
from dagster_streamtables.replication.apply.effect import Effect, effect_of, require_no_conflict
from dagster_streamtables.replication.apply.parts import Parts, pieces_of
from dagster_streamtables.replication.apply.rewritten import rewritten
from dagster_streamtables.replication.apply.seen import Seen
from dagster_streamtables.replication.apply.told import ToldChanges, told
from dagster_streamtables.replication.apply.write import (
    shape_of_parts,
    whole_rows,
    write_parts_by_spark,
)
from dagster_streamtables.replication.model.batch import TableChanges
from dagster_streamtables.replication.target.columns import Columns
from dagster_streamtables.replication.target.target import Provenance, committed, properties
from dagster_streamtables.replication.target.target_table import RowsAtHand, TargetTable
from dagster_streamtables.runtime.storage.target import FILE_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties
    from pyspark.sql import SparkSession

Mode = Literal["append", "overwrite"]


def apply_in_parts(
    there: TargetTable,
    columns: Columns,
    changes: TableChanges,
    after: int | None,
    end: int,
    choices: Choices,
) -> Applied:
    """
    Args:
        there: The target.
        columns: Its columns.
        changes: Those that are not applied yet.
        after: The position of the target.
        end: The position that it reaches.
        choices: How.
    """
    target = there.target
    flow = _Flow(there, columns, changes, choices)
    made = Provenance(target.replication, target.origin, changes.table.name, after, end)
    try:
        version = committed(target, there.log.version, made, lambda: flow.write(made))
    except Exception:
        if flow.error is not None:
            raise flow.error from None
        raise
    return Applied(version, end, flow.inserted, flow.updated, flow.deleted, flow.conflicts)


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
    """What stopped them: an engine that reads them tells only its words."""

    def write(self, made: Provenance) -> None:
        if self.there.spark is None:
            self._write_by_delta_rs(properties(self.there.target, made))
        else:
            self._write_by_spark(self.there.spark, made)

    def _write_by_delta_rs(self, properties: CommitProperties) -> None:
        import pyarrow as pa
        from deltalake import write_deltalake

        log = self.there.log
        mode: Mode = "append" if self._only_inserts() else "overwrite"
        # What is stored is read before: delta-rs does not read while it writes.
        rows = self._told(self._appended() if mode == "append" else self._rewritten(self._parts()))
        write_deltalake(
            log.to_write(),
            pa.RecordBatchReader.from_batches(log.arrow_schema, rows),
            mode=mode,
            target_file_size=FILE_BYTES[-1],
            commit_properties=properties,
        )

    def _write_by_spark(self, spark: SparkSession, made: Provenance) -> None:
        import pyarrow.compute as pc

        truncates = "truncate" in pc.unique(self.changes.rows["op"]).to_pylist()
        if self._only_inserts():
            effects = map(self._effect_of_new, self._appended())
        else:
            effects = self._effects(self._parts())
        shape = shape_of_parts(self.there.log, self._no_effect())
        kept = self._noting(effects)
        write_parts_by_spark(spark, self.there, shape, kept, made, replaces=truncates)

    def _only_inserts(self) -> bool:
        import pyarrow.compute as pc

        # A row that wins takes the place of another.
        wins = self.choices.on_conflict == "apply" and self.columns.table.identity is not None
        return not wins and pc.unique(self.changes.rows["op"]).to_pylist() == ["insert"]

    def _told(self, rows: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        try:
            for some in rows:
                self.columns.require_values(some)
                yield from whole_rows(self.there.log.arrow_schema, some).to_batches()
        except Exception as error:
            self.error = error
            raise

    def _appended(self) -> Iterator[pa.Table]:
        return self._new_rows(identities_in(self.there, self.columns))

    def _new_rows(self, there: Seen) -> Iterator[pa.Table]:
        came = Seen()
        for piece in pieces_of(self.changes.rows):
            found = told(self.columns, piece, self.changes.transactions)
            new = found.new
            if self.columns.table.identity is not None:
                identities = new.select(self.columns.identity)
                met = np.flatnonzero(came.add(identities) | there.has(identities))
                if len(met) and self.choices.on_conflict == "error":
                    first = int(met[0]), Kind.INSERT_EXISTS
                    require_no_conflict(self.columns, found, Conflicts(first=first))
                self.conflicts[Kind.INSERT_EXISTS.value] += len(met)
                new = new.take(np.setdiff1d(np.arange(new.num_rows), met))
            self.inserted += new.num_rows
            yield new

    def _rewritten(self, parts: Iterator[tuple[ToldChanges, pa.Table]]) -> Iterator[pa.Table]:
        for changes, stored in parts:
            found = rewritten(self.columns, changes, stored, self.choices.on_conflict)
            self.inserted += found.inserted
            self.updated += found.updated
            self.deleted += found.deleted
            self.conflicts += found.conflicts
            yield found.rows

    def _effects(self, parts: Iterator[tuple[ToldChanges, pa.Table]]) -> Iterator[Effect]:
        for changes, stored in parts:
            at_hand, policy = RowsAtHand(stored), self.choices.on_conflict
            effect = effect_of(at_hand, self.columns, changes, policy)
            if policy == "error":
                require_no_conflict(self.columns, changes, effect.conflicts)
            effect.require_values(self.columns)
            self.inserted += effect.inserted
            self.updated += effect.updated
            self.deleted += stored.num_rows if effect.deleted is None else effect.deleted
            self.conflicts += effect.conflicts.counts
            yield effect

    def _parts(self) -> Iterator[tuple[ToldChanges, pa.Table]]:
        """The changes and the stored rows of each part; what is done is let go."""
        parts = Parts.of(
            self.columns,
            self.changes.rows,
            self.changes.transactions,
            stored=self.there.row_count,
            at_once=self.choices.in_memory // 2 + 1,
        )
        changes, stored = parts.of_changes(self.changes.rows), parts.of_stored(self.there)
        return ((parts.told(c), s) for c, s in _each_once(changes, stored))

    def _effect_of_new(self, rows: pa.Table) -> Effect:
        self.columns.require_values(rows)
        return replace(self._no_effect(), came=rows)

    def _no_effect(self) -> Effect:
        none = told(self.columns, self.changes.rows.slice(0, 0), self.changes.transactions)
        at_hand = RowsAtHand(self.columns.stored.empty_table())
        return effect_of(at_hand, self.columns, none, self.choices.on_conflict)

    def _noting(self, effects: Iterator[Effect]) -> Iterator[Effect]:
        try:
            yield from effects
        except Exception as error:
            self.error = error
            raise


def _each_once(*tables: list[pa.Table]) -> Iterator[tuple[pa.Table, ...]]:
    for each in tables:
        each.reverse()
    while tables[0]:
        yield tuple(each.pop() for each in tables)
