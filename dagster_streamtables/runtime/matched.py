"""What `Match` yields, made here: touched groups beside their stored rows.

A statement over the two is a join, and a job of Spark's. Over the pairs it looks at each row by
itself, and Spark computes it while it plans.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dagster_streamtables.compiler.match import added, held

if TYPE_CHECKING:
    import pyarrow as pa


def matched(touched: pa.Table, stored: pa.Table, key: Sequence[tuple[str, str]]) -> pa.Table:
    """Each row of `touched` with the stored row of its key, or NULLs.

    Args:
        touched: What the change adds to each group, a row for each.
        stored: Stored rows, each key once; those of other groups may be among them.
        key: The stored key columns and those of `touched`, of types that `netted_here` knows.
    """
    import pyarrow as pa

    places = {values: i for i, values in enumerate(_values(stored, (name for name, _ in key)))}
    found = [places.get(values) for values in _values(touched, (name for _, name in key))]
    beside = stored.take(pa.array(found, pa.int64()))
    partial = touched.rename_columns([added(name) for name in touched.column_names])
    for name, column in zip(stored.column_names, beside.columns, strict=True):
        partial = partial.append_column(held(name), column)
    return partial


def _values(rows: pa.Table, names: Iterable[str]) -> Iterable[tuple[object, ...]]:
    columns = [_comparable(rows.column(name)).to_pylist() for name in names]
    return zip(*columns, strict=True) if columns else [()] * rows.num_rows


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as numbers: Python knows the years from 1 to 9999 only."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
