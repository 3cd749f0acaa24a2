"""Rows that only Spark reads right.

Spark keeps any bytes in a STRING, for example those that `CAST(value AS STRING)` makes of a binary
one. Arrow, its readers and delta-rs take every text for UTF-8: Python raises, some libraries read
beyond the text, and delta-rs refuses the whole file. So no such text comes to this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.errors.tables import NOT_UTF8, no_utf8

if TYPE_CHECKING:
    import pyarrow as pa


class OnlySpark(Exception):
    """Rows that would be read differently here, or not at all."""


def is_utf8(rows: pa.Table) -> bool:
    """Whether every text, at any depth, is UTF-8."""
    import pyarrow as pa

    try:
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def require_utf8(rows: pa.Table) -> pa.Table:
    """The same rows.

    Raises:
        OnlySpark: A text is no UTF-8.
    """
    if not is_utf8(rows):
        raise OnlySpark
    return rows


@contextmanager
def read_by_delta_rs() -> Iterator[None]:
    """Where delta-rs reads rows.

    Raises:
        OnlySpark: A text in one of its files is no UTF-8.
    """
    try:
        yield
    except Exception as error:  # of no class of its own
        if NOT_UTF8 in str(error):
            raise OnlySpark from error
        raise


@contextmanager
def text_explained(location: str) -> Iterator[None]:
    """Tell that delta-rs cannot read a text of a table, where nothing else can.

    Raises:
        SourceProblem: It is no UTF-8.
    """
    try:
        with read_by_delta_rs():
            yield
    except OnlySpark as error:
        raise no_utf8(location) from error


def is_spelled_alike(wanted: pa.Schema, found: pa.Schema) -> bool:
    """Whether a file has the names of a table as they are, or has not got them at all.

    CONVERT TO DELTA keeps files whose columns differ from the table's in case. Spark finds them;
    here, and in delta-rs, they would be NULL.
    """
    import pyarrow as pa

    return _is_alike(pa.struct(list(wanted)), pa.struct(list(found)))


def _is_alike(wanted: pa.DataType, found: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        return all(_is_field_alike(wanted.field(n), found) for n in range(wanted.num_fields))
    if wanted.num_fields != found.num_fields:
        return True
    parts = range(wanted.num_fields)  # of a list or a map, whose names mean nothing
    return all(_is_alike(wanted.field(n).type, found.field(n).type) for n in parts)


def _is_field_alike(field: pa.Field, found: pa.DataType) -> bool:
    there = [found.field(n) for n in range(found.num_fields)]
    same = [each for each in there if each.name.lower() == field.name.lower()]
    if not same:
        return True
    exactly = [each.name for each in same] == [field.name]
    return exactly and _is_alike(field.type, same[0].type)
