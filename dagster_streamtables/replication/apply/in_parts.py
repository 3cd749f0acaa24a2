"""Apply more changes than fit into memory, as one commit.

Inserts are appended in their order, and only digests of identities are kept. Other changes are
folded part by part (`Parts`), and the target is written anew with what each part comes to.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from dagster_streamtables.replication.apply.applied import Applied
from dagster_streamtables.replication.apply.choices import Choices
from dagster_streamtables.replication.apply.columns import Columns
from dagster_streamtables.replication.apply.commit import Provenance, committed
from dagster_streamtables.replication.apply.conflicts import Conflicts, Kind
from dagster_streamtables.replication.apply.copy_rows import identities_in
from dagster_streamtables.replication.apply.keyed import require_no_conflict
from dagster_streamtables.replication.apply.parts import Parts, pieces_of
from dagster_streamtables.replication.apply.rewritten import rewritten
from dagster_streamtables.replication.apply.seen import Seen
from dagster_streamtables.replication.apply.target import Target, rows_in
from dagster_streamtables.replication.apply.told import told
from dagster_streamtables.replication.apply.write import whole_rows
from dagster_streamtables.replication.model.batch import TableChanges
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.storage.target import FILE_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties

Mode = Literal["append", "overwrite"]


def apply_in_parts(
    log: TableLog,
    target: Target,
    columns: Columns,
    changes: TableChanges,
    after: int | None,
    end: int,
    choices: Choices,
) -> Applied:
    """
    Args:
        log: The target.
        target: The same.
        columns: Its columns.
        changes: Those that are not applied yet.
        after: The position of the target.
        end: The position that it reaches.
        choices: How.
    """
    flow = _Flow(log, columns, changes, choices)
    made = Provenance(target.replication, target.origin, changes.table.name, after, end)
    try:
        version = committed(target, log.version, made, flow.write)
    except Exception:
        if flow.error is not None:
            raise flow.error from None
        raise
    return Applied(version, end, flow.inserted, flow.updated, flow.deleted, flow.conflicts)


@dataclass
class _Flow:
    """The rows on their way into the target, counted as they pass."""

    log: TableLog
    columns: Columns
    changes: TableChanges
    choices: Choices
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: Counter[str] = field(default_factory=Counter)
    error: Exception | None = None
    """What stopped them: an engine that reads them tells only its words."""

    def write(self, properties: CommitProperties) -> None:
        import pyarrow as pa
        from deltalake import write_deltalake

        mode: Mode = "append" if self._only_inserts() else "overwrite"
        # What is stored is read before: delta-rs does not read while it writes.
        rows = self._told(self._appended() if mode == "append" else self._rewritten())
        write_deltalake(
            self.log.to_write(),
            pa.RecordBatchReader.from_batches(self.log.arrow_schema, rows),
            mode=mode,
            target_file_size=FILE_BYTES[-1],
            commit_properties=properties,
        )

    def _only_inserts(self) -> bool:
        import pyarrow.compute as pc

        # A row that wins takes the place of another.
        wins = self.choices.on_conflict == "apply" and self.columns.table.identity is not None
        return not wins and pc.unique(self.changes.rows["op"]).to_pylist() == ["insert"]

    def _told(self, rows: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        try:
            for some in rows:
                self.columns.require_values(some)
                yield from whole_rows(self.log, some).to_batches()
        except Exception as error:
            self.error = error
            raise

    def _appended(self) -> Iterator[pa.Table]:
        return self._new_rows(identities_in(self.log, self.columns))

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

    def _rewritten(self) -> Iterator[pa.Table]:
        parts = Parts.of(
            self.columns,
            self.changes.rows,
            self.changes.transactions,
            stored=rows_in(self.log),
            at_once=self.choices.in_memory // 2 + 1,
        )
        changes, stored = parts.of_changes(self.changes.rows), parts.of_stored(self.log)
        return self._by_part(parts, changes[::-1], stored[::-1])

    def _by_part(
        self, parts: Parts, changes: list[pa.Table], stored: list[pa.Table]
    ) -> Iterator[pa.Table]:
        while changes:  # what is done is let go
            those = parts.told(changes.pop())
            found = rewritten(self.columns, those, stored.pop(), self.choices.on_conflict)
            self.inserted += found.inserted
            self.updated += found.updated
            self.deleted += found.deleted
            self.conflicts += found.conflicts
            yield found.rows
