"""Cast values to other types exactly, or find the one that has no equal value there.

PostgreSQL replicates by texts, so a column of type text takes any value as PostgreSQL writes it.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values of any type without nesting, as texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    type_ = values.type
    if pa.types.is_boolean(type_):
        return pc.if_else(values, "t", "f")
    if pa.types.is_timestamp(type_):
        return _times(values)
    if pa.types.is_floating(type_):
        return _each(values, _number if pa.types.is_float64(type_) else _single)
    if pa.types.is_decimal(type_):
        return _each(values, lambda value: format(value, "f"))
    if pa.types.is_binary(type_):
        return _each(values, lambda value: "\\x" + value.hex())
    return values.cast(pa.string())


def _each(values: pa.ChunkedArray, text: Any) -> pa.ChunkedArray:
    import pyarrow as pa

    found = [None if value is None else text(value) for value in values.to_pylist()]
    return pa.chunked_array([pa.array(found, pa.string())])


def _times(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without trailing zeros; in UTC if they have a time zone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = values.cast(pa.timestamp("us")).cast(pa.string())
    found = pc.replace_substring_regex(plain, r"(\.\d*?)0+$", r"\1")
    found = pc.replace_substring_regex(found, r"\.$", "")
    if values.type.tz is None:
        return found
    return pc.binary_join_element_wise(found, pa.scalar("+00", pa.string()), "")


def _number(value: float, digits: int = 15) -> str:
    """The shortest digits that give the number back.

    >>> [_number(x) for x in (0.1, 1.0, -0.0, 1e15, 123456.5, 1e-5, 1.25e-7)]
    ['0.1', '1', '-0', '1e+15', '123456.5', '1e-05', '1.25e-07']
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    exact = Decimal(repr(value)).normalize()
    power = exact.adjusted()
    if -4 <= power < digits:
        return format(exact, "f")
    return f"{exact.scaleb(-power):f}e{power:+03d}"


def _single(value: float) -> str:
    import numpy as np

    return _number(float(str(np.float32(value))), 6)


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
