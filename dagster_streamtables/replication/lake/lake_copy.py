"""`LakeCopy`: the published rows of tables, each at a version that a slot holds."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import DamagedTable, HistoryUnavailable
from dagster_streamtables.replication.lake.errors import lost_table
from dagster_streamtables.replication.lake.read_ahead import read_ahead
from dagster_streamtables.replication.lake.shown_rows import ShownRows
from dagster_streamtables.runtime.delta.only_spark import text_explained
from dagster_streamtables.runtime.delta.stored_rows import streamed
from dagster_streamtables.runtime.errors.tables import LostHistory
from dagster_streamtables.runtime.errors.translate import explained

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 65_536


@dataclass(frozen=True)
class LakeCopy:
    """See `Copy`."""

    slot: str
    tables: Mapping[str, ShownRows]

    def position(self, table: str) -> int:
        return self.tables[table].log.version

    def rows(self, table: str) -> pa.RecordBatchReader:
        import pyarrow as pa

        schema = self.tables[table].shown.published.schema
        return pa.RecordBatchReader.from_batches(schema, read_ahead(self._batches(table, schema)))

    def _batches(self, table: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            LostSlot: A file of that version is gone.
        """
        try:
            with explained():
                for rows in _rows(self.tables[table]):
                    yield from rows.cast(schema).to_batches(_BATCH)
        except (LostHistory, DamagedTable, HistoryUnavailable) as error:
            raise lost_table(self.slot, table, str(error)) from error


def _rows(copied: ShownRows) -> Iterator[pa.Table]:
    """The rows with all their copies, by delta-rs where it decides as Spark does."""
    columns = copied.shown.columns
    here = None if copied.shown.rule.copy else streamed(copied.log, columns)
    if here is not None:
        with text_explained(copied.log.location):
            yield from here
        return
    for part in copied.snapshot():
        copies = np.repeat(np.arange(part.num_rows), part.column(WEIGHT).to_numpy())
        yield part.select(list(columns)).take(copies)
