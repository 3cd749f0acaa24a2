"""Net weighted rows in this process; see `capture`."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import WEIGHT

if TYPE_CHECKING:
    import pyarrow as pa


def net_rows(rows: pa.Table) -> pa.Table:
    """Each row once, with the sum of its weights, without rows of weight 0.

    An update that did not change the used columns is two rows that cancel here; then the source
    needs no further reading. Rows with nested columns are returned unchanged: pyarrow cannot group
    by them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = [name for name in rows.column_names if name != WEIGHT]
    if not keys:
        total = pc.sum(rows.column(WEIGHT)).as_py() or 0
        return pa.table({WEIGHT: pa.array([total] if total else [], pa.int64())})
    if has_nested(rows.schema):
        return rows
    # By number: pyarrow reads a name that begins with a dot or a bracket as a path.
    numbers = [str(number) for number in range(len(keys))]
    numbered = rows.select([*keys, WEIGHT]).rename_columns([*numbers, WEIGHT])
    grouped = numbered.group_by(numbers, use_threads=False).aggregate([(WEIGHT, "sum")])
    totals = grouped.rename_columns([*keys, WEIGHT]).select([*keys, WEIGHT])
    return totals.filter(pc.not_equal(totals.column(WEIGHT), 0))


def add_weight(rows: pa.Table, weight: int) -> pa.Table:
    """The rows, each with one weight."""
    import pyarrow as pa

    return rows.append_column(WEIGHT, pa.array([weight] * rows.num_rows, pa.int64()))


def has_nested(schema: pa.Schema) -> bool:
    import pyarrow as pa

    return any(pa.types.is_nested(field.type) for field in schema)


_WHOLE = ("boolean", "tinyint", "smallint", "int", "bigint", "decimal")
_ALIKE = frozenset((*_WHOLE, "string", "binary", "date", "timestamp", "timestamp_ntz"))


def can_net_here(types: Mapping[str, str]) -> bool:
    """Whether rows of these types are equal here exactly if they are equal in Spark.

    Zeros and NaNs of floats are not, and pyarrow cannot group by nested types.
    """
    return all(type_.partition("(")[0] in _ALIKE for type_ in types.values())
