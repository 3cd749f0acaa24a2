"""Types of Arrow: which can be compared, and in which form they are given out."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from dagster_streamtables.errors import RefusedOperation

_ORDERED = (
    types.is_null, types.is_boolean, types.is_integer, types.is_float32, types.is_float64,
    types.is_decimal, types.is_string, types.is_large_string, types.is_binary,
    types.is_large_binary, types.is_fixed_size_binary, types.is_date, types.is_time,
    types.is_timestamp, types.is_duration,
)  # fmt: skip


def is_ordered(type_: pa.DataType) -> bool:
    """Whether values of this type can be compared and sorted here."""
    return any(is_it(type_) for is_it in _ORDERED)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type in which a column is given out, which every reader of Arrow knows.

    delta-rs reads strings as views, which pyarrow cannot sort.
    """
    if types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if types.is_string_view(type_):
        return pa.string()
    return pa.binary() if types.is_binary_view(type_) else type_


def check_ordered(schema: pa.Schema, column: str, purpose: str) -> None:
    """Refuse a column whose values cannot be compared.

    Args:
        purpose: What the column is wanted for: ``a key``.
    """
    type_ = schema.field(column).type
    if not is_ordered(type_):
        raise RefusedOperation(
            f'column "{column}" cannot be {purpose}',
            why=f"it is of type {type_}, whose values have no order",
            fix="choose another column, or compute one from it, in a SELECT: "
            "to_json(…), or a field of the struct",
        )


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The same values in one array."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def as_type(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    return column if column.type.equals(type_) else column.cast(type_)
