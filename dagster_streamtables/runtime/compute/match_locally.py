"""The result of `Match`, computed in this process: touched groups joined with their stored rows.

A statement over both would be a join. A statement over the pairs reads each row separately, and if
they are few, Spark computes it while planning, without a job.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import partial_column, stored_column
from dagster_streamtables.runtime.delta.arrow import times_as_numbers

if TYPE_CHECKING:
    import pyarrow as pa


def matched(touched: pa.Table, stored: pa.Table, key: Sequence[tuple[str, str]]) -> pa.Table:
    """Each row of `touched` with the stored row of its key, or NULLs.

    Args:
        touched: The partial sums of the change, one row per group.
        stored: Stored rows, each key once; may include other groups.
        key: The stored key columns and those of `touched`, of types that `netted_here` accepts.
    """
    beside = stored.take(_places(touched, stored, key))
    partial = touched.rename_columns([partial_column(name) for name in touched.column_names])
    for name, column in zip(stored.column_names, beside.columns, strict=True):
        partial = partial.append_column(stored_column(name), column)
    return partial


def _places(
    touched: pa.Table, stored: pa.Table, key: Sequence[tuple[str, str]]
) -> pa.Array | pa.ChunkedArray:
    """For each touched group, the index of its stored row, or NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = [times_as_numbers(touched.column(name)) for _, name in key]
    there = [times_as_numbers(stored.column(name)) for name, _ in key]
    if len(key) == 1 and wanted[0].type == there[0].type:
        return pc.index_in(wanted[0], value_set=there[0])
    numbers = {values: number for number, values in enumerate(_values(there, stored.num_rows))}
    found = [numbers.get(values) for values in _values(wanted, touched.num_rows)]
    return pa.array(found, pa.int64())


def _values(columns: Sequence[pa.ChunkedArray], count: int) -> Iterable[tuple[object, ...]]:
    lists = [column.to_pylist() for column in columns]
    return zip(*lists, strict=True) if lists else [()] * count
