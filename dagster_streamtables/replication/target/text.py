"""Values as the texts that PostgreSQL writes, by which it replicates into columns of type text."""

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
