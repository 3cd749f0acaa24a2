"""The difference between a recomputed result and the stored rows, as a change of the stored table.

Most rows of a recomputed table are unchanged. Readers of its changes (another stream table, a
reader of its feed) should see only the few changed rows, not all rows deleted and inserted again.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.runtime.compute.netting import netted, weighted
from dagster_streamtables.runtime.delta.arrow import storable
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.stored_rows import stored_rows

if TYPE_CHECKING:
    import pyarrow as pa


def difference(
    log: TableLog,
    rows: pa.Table,
    key: Sequence[str] | None,
    *,
    columns: Collection[str],
    limit: int,
) -> pa.Table | None:
    """The change that makes the stored rows equal to `rows`, in the form that writers expect.

    Args:
        log: The stored table.
        rows: The whole result.
        key: The columns that identify a row; None for a bag.
        columns: The stored columns of the query.
        limit: Number of stored rows that may be read into this process.

    Returns:
        The columns of `rows` and the weight; no row if nothing differs. None if the rows cannot be
        compared here.
    """
    import pyarrow as pa

    if set(rows.column_names) != set(columns) or (log.row_count or 0) > limit:
        return None
    try:
        held = stored_rows(log, {}, rows.column_names, limit=limit)
        if held is None:
            return None
        now = storable(rows).cast(held.schema)
    except (DeltaError, pa.ArrowException, OSError):
        return None
    both = pa.concat_tables([weighted(now, 1), weighted(held, -1)])
    change = netted(both)
    return change if key is None else _one_a_key(change, key)


def _one_a_key(change: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows to store, and for each key that no longer has one, a row with only the key."""
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
