"""What a recomputed result and the stored rows differ in, as a change of the stored table.

A table that is computed in full is mostly what it was. Who reads its changes (another stream table,
a reader of its feed) should see the few rows that are others, not all rows going and coming back.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.runtime.compute.netting import netted
from dagster_streamtables.runtime.delta.arrow import storable
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.stored_rows import stored_rows

if TYPE_CHECKING:
    import pyarrow as pa


def difference(
    log: TableLog, rows: pa.Table, key: Sequence[str] | None, *, limit: int
) -> pa.Table | None:
    """The change that makes the stored rows equal to `rows`, in the form that writers take.

    Args:
        log: The stored table.
        rows: The result, all of it.
        key: The columns that identify a row; None for a bag.
        limit: Stored rows that may come to this process.

    Returns:
        The columns of `rows` and the weight; no row if nothing differs. None where the rows cannot
        be compared here.
    """
    import pyarrow as pa

    if set(rows.column_names) != set(log.columns) or (log.row_count or 0) > limit:
        return None
    try:
        held = stored_rows(log, {}, rows.column_names, limit=limit)
        if held is None:
            return None
        now = storable(rows).cast(held.schema)
    except (DeltaError, pa.ArrowException, OSError):
        return None
    both = pa.concat_tables([_weighted(now, 1), _weighted(held, -1)])
    change = netted(both)
    return change if key is None else _one_a_key(change, key)


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    import pyarrow as pa

    return rows.append_column(WEIGHT, pa.array([weight] * rows.num_rows, pa.int64()))


def _one_a_key(change: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows to store, and for each key that has none any more, one row with nothing else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    came = change.filter(pc.greater(change.column(WEIGHT), 0))
    keys = netted(change.select([*key, WEIGHT]))
    gone = keys.filter(pc.less(keys.column(WEIGHT), 0))
    missing = [pa.nulls(gone.num_rows, field.type) for field in change.schema]
    columns = [
        gone.column(field.name) if field.name in (*key, WEIGHT) else nulls
        for field, nulls in zip(change.schema, missing, strict=True)
    ]
    return pa.concat_tables([came, pa.Table.from_arrays(columns, schema=change.schema)])
