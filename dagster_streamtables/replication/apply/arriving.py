"""`ArrivingRows`: the rows of a copy on their way into the target, checked as they pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.apply.contract import Kind, OnConflict
from dagster_streamtables.replication.apply.effect import shown
from dagster_streamtables.replication.apply.seen import Seen
from dagster_streamtables.replication.model.errors import ReplicationConflict
from dagster_streamtables.replication.target.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa


class ArrivingRows:
    """The rows in the target's types, without those that give way."""

    def __init__(self, columns: Columns, there: Seen, on_conflict: OnConflict) -> None:
        """
        Args:
            columns: Those of the target.
            there: The identities of its rows.
            on_conflict: What becomes of a row whose identity is there, or came before.
        """
        self._columns, self._there, self._on_conflict = columns, there, on_conflict
        self._came = Seen()
        self.passed = 0
        self.replacing = 0
        """Those of the passed that take the place of a row."""
        self.conflicts: Counter[str] = Counter()
        self.error: Exception | None = None
        """What stopped them: an engine that reads them tells only its words."""

    def read(
        self, rows: pa.RecordBatchReader, fit: Callable[[pa.Table], pa.Table]
    ) -> pa.RecordBatchReader:
        """Let rows pass.

        Args:
            rows: The copy.
            fit: Makes of rows in the published columns what the target is written with.
        """
        import pyarrow as pa

        none = fit(self._columns.schema(self._columns.published).empty_table())
        return pa.RecordBatchReader.from_batches(none.schema, self._batches(rows, fit))

    def _batches(
        self, rows: pa.RecordBatchReader, fit: Callable[[pa.Table], pa.Table]
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            for batch in rows:
                checked = self._checked(pa.Table.from_batches([batch]))
                self.passed += checked.num_rows
                yield from fit(checked).to_batches()
        except Exception as error:
            self.error = error
            raise

    def _checked(self, rows: pa.Table) -> pa.Table:
        columns = self._columns
        values = [rows.column(name) for name in columns.published]
        rows = columns.cast(columns.published, values)
        columns.require_values(rows)
        return rows if columns.table.identity is None else self._without_conflicts(rows)

    def _without_conflicts(self, rows: pa.Table) -> pa.Table:
        identities = rows.select(self._columns.identity)
        again, there = self._came.add(identities), self._there.has(identities)
        conflicts = np.flatnonzero(again | there)
        if not len(conflicts):
            return rows
        if self._on_conflict == "error":
            raise self._there_already(shown(identities, int(conflicts[0])))
        self.conflicts[Kind.INSERT_EXISTS.value] += len(conflicts)
        wins = there & (self._on_conflict == "apply")
        self.replacing += int((wins & ~again).sum())
        return rows.filter(~again & (~there | wins))

    def _there_already(self, row: str) -> ReplicationConflict:
        return ReplicationConflict(
            f'the copy of "{self._columns.table.name}" has a row that is there already',
            where=f"{self._columns.location}: {row}",
            why="the target has a row with that identity, or the copy has two; nothing was copied",
            fix="empty the target; or name another one; or let the publisher's rows win: "
            "streamtables replications alter NAME --on-conflict apply; or keep the target's: "
            "streamtables replications alter NAME --on-conflict skip",
        )
