"""What was read of a slot → a `Batch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.model.publisher import Batch, TableChanges, Transaction
from dagster_streamtables.replication.postgres.messages import moment
from dagster_streamtables.replication.postgres.reading import Piece, Read, renumber

if TYPE_CHECKING:
    import pyarrow as pa


def batch_of(read: Read, up_to: int, max_rows: int) -> Batch:
    """
    Args:
        read: What was read, whole transactions only.
        up_to: The position up to which it was asked for.
        max_rows: The number of messages after which the server stopped at the end of a transaction.
    """
    stopped = read.cut is not None or read.messages >= max_rows
    ends = read.ends[: read.cut]
    last = int(ends[-1]) if len(ends) else 0
    end = last if stopped else max(last, up_to)
    # Behind the cut a table may have other columns.
    kept = {
        name: [each for each in pieces if _starts_before_the_cut(read, each)]
        for name, pieces in read.pieces.items()
    }
    return Batch(
        tables={name: _changes(read, pieces) for name, pieces in kept.items() if pieces},
        end={
            name: max(end, position)
            for name, position in read.after.items()
            if name not in read.refused
        },
        complete=not stopped,
        refused=read.refused,
    )


def _changes(read: Read, pieces: list[Piece]) -> TableChanges:
    import pyarrow as pa

    rows = pa.concat_tables([_before_the_cut(read, each.rows) for each in pieces])
    used, numbered = renumber(rows)
    ends, times = read.ends[used].tolist(), read.times[used].tolist()
    return TableChanges(
        table=pieces[0].form.table,
        transactions=tuple(
            Transaction(end, moment(time)) for end, time in zip(ends, times, strict=True)
        ),
        rows=numbered,
    )


def _starts_before_the_cut(read: Read, piece: Piece) -> bool:
    return read.cut is None or piece.rows["transaction"][0].as_py() < read.cut


def _before_the_cut(read: Read, rows: pa.Table) -> pa.Table:
    if read.cut is None:
        return rows
    return rows.slice(0, int(np.searchsorted(rows["transaction"].to_numpy(), read.cut)))
