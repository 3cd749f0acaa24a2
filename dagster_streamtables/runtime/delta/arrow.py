"""Arrow columns as Spark takes them, and as every writer stores them alike.

delta-rs reads strings into types that Spark does not know.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns, nullable to any depth, without views and without 64-bit offsets."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(type_: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(each.name, _plain(each.type)) for each in type_])
    if pa.types.is_map(type_):
        return pa.map_(_plain(type_.key_type), _plain(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_list_view(type_):
        return pa.list_(pa.field(type_.value_field.name, _plain(type_.value_type)))
    return type_


def storable(rows: pa.Table) -> pa.Table:
    """The rows as a table can hold them and every later change.

    In plain columns: of `array(1, 2)` Spark says that no element is NULL, which may not be true of
    the next row, and it merges no rows into a table that says so.
    """
    return rows.cast(plain_schema(rows.schema))


def is_dataset(type_: type) -> bool:
    """Whether it is pyarrow's type of files that are read later."""
    import pyarrow.dataset as ds

    return type_ is ds.Dataset


def with_columns(dataset: Any, names: Sequence[str]) -> Any:
    """A dataset that has these columns only."""
    import pyarrow as pa

    return dataset.replace_schema(pa.schema([dataset.schema.field(name) for name in names]))
