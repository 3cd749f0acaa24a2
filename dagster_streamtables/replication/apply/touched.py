"""Read the rows of a target that changes may be about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.runtime.delta.arrow import plain_schema
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.quote import delta_rs_name
from dagster_streamtables.runtime.delta.stored_rows import among

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 2**18
"""Rows that are looked at together: looking costs as much as preparing it."""


def touched_rows(
    log: TableLog,
    names: Sequence[str],
    wanted: pa.Table,
    is_wanted: Callable[[pa.Table], np.ndarray],
) -> pa.Table:
    """The stored rows that a predicate chooses.

    Args:
        log: The target.
        names: The columns to read.
        wanted: The values of the rows that may be chosen, in some of the columns: files without
            them are not read.
        is_wanted: Says of each row whether it is.
    """
    import pyarrow as pa

    found = [rows.filter(is_wanted(rows)) for rows in _rows(log, names, wanted)]
    schema = pa.schema([log.arrow_schema.field(name) for name in names])
    return pa.concat_tables([plain_schema(schema).empty_table(), *found]).combine_chunks()


def stored_batches(log: TableLog, names: Sequence[str], where: str) -> Iterator[pa.RecordBatch]:
    """Columns of the stored rows, a batch at a time, in plain types."""
    import pyarrow as pa

    listed = ", ".join(delta_rs_name(name) for name in names)
    reader = pa.RecordBatchReader.from_stream(log.query(f"SELECT {listed} FROM t WHERE {where}"))
    schema = plain_schema(reader.schema)
    return (batch.cast(schema) for batch in reader)


def _rows(log: TableLog, names: Sequence[str], wanted: pa.Table) -> Iterator[pa.Table]:
    import pyarrow as pa

    if not wanted.num_rows:
        return
    where = " AND ".join(among(name, wanted.column(name)) for name in wanted.column_names)
    waiting: list[pa.RecordBatch] = []
    for batch in stored_batches(log, names, where or "true"):
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
