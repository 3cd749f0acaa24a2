"""Cast values to other types exactly, or find the one that has no equal value there."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from dagster_streamtables.replication.target.text import texts

if TYPE_CHECKING:
    import pyarrow as pa

_INTO = {
    "integer": {"integer", "decimal", "float", "text"},
    "decimal": {"integer", "decimal", "float", "text"},
    "float": {"integer", "decimal", "float", "text"},
    "boolean": {"boolean", "text"},
    "date": {"date", "time", "text"},
    "time": {"date", "time", "text"},
    "bytes": {"bytes", "text"},
    "text": {"integer", "decimal", "float", "date", "time", "text"},
}
"""Types → those that take their values, written as text in PostgreSQL."""


class Inexact(Exception):
    """A value has no equal one in the other type."""

    def __init__(self, index: int) -> None:
        self.index = index


def castable(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether some values of a type have equal ones in another."""
    return given.equals(wanted) or _kind(wanted) in _INTO.get(_kind(given), ())


def cast(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """
    Raises:
        Inexact: A value has no equal one of the wanted type.
    """
    import pyarrow as pa

    if values.type.equals(wanted):
        return values
    if pa.types.is_string(wanted):
        return texts(values)
    found = _cast(values, wanted)
    if found is None:
        raise Inexact(_first_inexact(values, wanted))
    return found


def _cast(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | None:
    import pyarrow as pa

    try:
        if pa.types.is_decimal(values.type) and pa.types.is_floating(wanted):
            return _floats(values, wanted)
        found = _through_decimals(values, wanted)
        same = pa.types.is_string(values.type) or _equal(
            _through_decimals(found, values.type), values
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return found if same else None


def _through_decimals(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Arrow casts integers only to decimals that hold all of their type."""
    import pyarrow as pa

    if pa.types.is_integer(values.type) and pa.types.is_decimal(wanted):
        values = values.cast(pa.decimal128(38, 0))
    return values.cast(wanted)


def _floats(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | None:
    """Decimals whose digits are those that the float is written with."""
    import pyarrow as pa

    given = values.to_pylist()
    found = pa.chunked_array([pa.array([None if v is None else float(v) for v in given], wanted)])
    shown = texts(found).to_pylist()
    same = all(v is None or Decimal(text) == v for v, text in zip(given, shown, strict=True))
    return found if same else None


def _equal(found: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(values.type):
        differs = pc.and_(pc.not_equal(found, values), pc.invert(pc.is_nan(values)))
        return not pc.any(differs).as_py()
    return found.equals(values)


def _first_inexact(values: pa.ChunkedArray, wanted: pa.DataType) -> int:
    """By halves: the first of them that cannot be cast has it."""
    first, count = 0, len(values)
    while count > 1:
        half = count // 2
        if _cast(values.slice(first, half), wanted) is None:
            count = half
        else:
            first, count = first + half, count - half
    return first


def _kind(type_: pa.DataType) -> str:
    import pyarrow as pa

    kinds = {
        "integer": pa.types.is_integer,
        "decimal": pa.types.is_decimal,
        "float": pa.types.is_floating,
        "boolean": pa.types.is_boolean,
        "date": pa.types.is_date,
        "time": pa.types.is_timestamp,
        "bytes": pa.types.is_binary,
        "text": pa.types.is_string,
    }
    return next((kind for kind, is_ in kinds.items() if is_(type_)), "")
