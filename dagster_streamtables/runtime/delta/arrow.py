"""Arrow, imported at its first use, and conversions of its columns for Spark, writers and Python.

delta-rs reads strings into types that Spark does not know, and Spark has years that Python has not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any


class LazyModule:
    """A module that is imported when an attribute of it is first read.

    Processes that read no rows save 40 MB and a tenth of a second without numpy and pyarrow. (A
    loader of importlib or of lazy_loader imports pyarrow at once for a submodule of it.)
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name), name)
        setattr(self, name, found)
        return found


pc: Any = LazyModule("pyarrow.compute")  # whose functions no type checker sees
if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.fs as fs
    import pyarrow.parquet as pq
else:
    np, pa = LazyModule("numpy"), LazyModule("pyarrow")
    fs, pq = LazyModule("pyarrow.fs"), LazyModule("pyarrow.parquet")


_SMALL = 1_000_000
"""Bytes of a file that is read whole from an object store."""


@contextmanager
def open_parquet(files: Any, path: str) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile` whose timestamps are microseconds, also those of INT96.

    Files from a store's client in Python must be read in the calling thread (`may_use_threads`).
    Otherwise a thread of Arrow may drop the last reference to a buffer of Python while the
    interpreter ends, which aborts the process: "terminate called without an active exception".

    Raises:
        OSError: The file cannot be read.
        pyarrow.ArrowException: It is no Parquet file.
    """
    native = may_use_threads(files)
    with files.open_input_file(path) as stream:
        # Of a small file, the footer and each column would be a request to the store.
        whole = not native and stream.size() <= _SMALL
        source = pa.BufferReader(stream.read()) if whole else stream
        yield pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=native)


def may_use_threads(files: Any) -> bool:
    """Whether Arrow itself reads the files."""
    return not isinstance(files, fs.PyFileSystem)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns, nullable at any depth, without views and without 64-bit offsets."""
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    return _with_inside(type_, _plain)


def _with_inside(type_: pa.DataType, changed: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with changed types of its fields, elements, keys and values."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(each.name, changed(each.type)) for each in type_])
    if pa.types.is_map(type_):
        return pa.map_(changed(type_.key_type), changed(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_list_view(type_):
        return pa.list_(pa.field(type_.value_field.name, changed(type_.value_type)))
    return type_


def python_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows to show, as values of Python, which has only the years 1 to 9999: a column with another
    year has texts instead of times."""
    columns = [_representable(column) for column in rows.columns]
    shown = pa.Table.from_arrays(columns, names=rows.column_names)
    return shown.to_pylist(maps_as_pydicts="lossy")


def _representable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        column.to_pylist()
    except OverflowError:
        return times_as_texts(column)
    return column


def times_as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """With texts instead of dates and timestamps, at any depth."""
    return column.cast(_without_times(column.type))


def _without_times(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return pa.string()
    return _with_inside(type_, _without_times)


def times_as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of times as whole numbers, which Python can represent; any other unchanged."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def has_variant_columns(schema: pa.Schema) -> bool:
    """Whether a column from Spark is or contains a VARIANT: a struct whose metadata has a mark.

    Few operations keep the mark, and Spark does not accept a NULL back: such rows stay in Spark.
    """
    return any(_is_variant(field.type) for field in schema)


def _is_variant(type_: pa.DataType) -> bool:
    fields = [type_.field(number) for number in range(type_.num_fields)]
    marked = any(b"variant" in (each.metadata or {}) for each in fields)
    return (marked and pa.types.is_struct(type_)) or any(_is_variant(each.type) for each in fields)


def nullable(schema: pa.Schema) -> pa.Schema:
    """The same columns and marks, nullable at any depth."""
    return pa.schema([_nullable(field) for field in schema], metadata=schema.metadata)


def _nullable(field: pa.Field) -> pa.Field:
    type_ = field.type
    if pa.types.is_struct(type_):
        type_ = pa.struct([_nullable(type_.field(n)) for n in range(type_.num_fields)])
    elif pa.types.is_map(type_):
        type_ = pa.map_(type_.key_field, _nullable(type_.item_field))
    elif pa.types.is_list(type_):
        type_ = pa.list_(_nullable(type_.value_field))
    return field.with_type(type_).with_nullable(True)


def storable(rows: pa.Table) -> pa.Table:
    """The rows in plain columns, so that a table can store them and every later change.

    Spark types `array(1, 2)` as an array without NULLs, and could not merge other rows into a
    table with that type.
    """
    return rows.cast(plain_schema(rows.schema))


def is_dataset(type_: type) -> bool:
    """Whether the type is a dataset of pyarrow, whose files are read later."""
    import pyarrow.dataset as ds

    return type_ is ds.Dataset


def with_columns(dataset: Any, names: Sequence[str]) -> Any:
    """A dataset with only these columns."""
    return dataset.replace_schema(pa.schema([dataset.schema.field(name) for name in names]))
