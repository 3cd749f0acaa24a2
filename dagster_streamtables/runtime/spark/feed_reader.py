"""What Delta's reader of the Change Data Feed does to values.

It hands its rows over as objects of Java, which do not have all of Spark's values: a text that is
no UTF-8 comes back with U+FFFD in place of the other bytes, and a day from 5 to 14 October 1582,
which the calendar of that time skips, as the 15th. Both are values in themselves, so a feed that
shows one is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.delta.quote import spark_name

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_REPLACED = "contains({}, '\\uFFFD')"
_MOVED = "{0} >= TIMESTAMP_NTZ '1582-10-14' AND {0} < TIMESTAMP_NTZ '1582-10-17'"
"""A day more at both ends, for the zone of the session."""


def doubt(schema: StructType) -> str:
    """SQL that is true for rows of a feed of which a value may be another; empty if none can."""
    return _any(_of_value(each.dataType, spark_name(each.name)) for each in schema)


def _of_value(type_: DataType, value: str) -> str:
    from pyspark.sql import types

    match type_:
        case types.StringType():
            return _REPLACED.format(value)
        case types.DateType() | types.TimestampType():
            return _MOVED.format(f"CAST({value} AS TIMESTAMP_NTZ)")
        case types.StructType():
            return _any(_of_value(e.dataType, f"{value}.{spark_name(e.name)}") for e in type_)
        case types.ArrayType():
            return _of_elements(type_.elementType, value)
        case types.MapType():
            keys = _of_elements(type_.keyType, f"map_keys({value})")
            return _any([keys, _of_elements(type_.valueType, f"map_values({value})")])
        case _:
            return ""


def _of_elements(type_: DataType, values: str) -> str:
    inner = _of_value(type_, "x")
    return inner and f"exists({values}, x -> {inner})"


def _any(conditions: Iterable[str]) -> str:
    return " OR ".join(f"({each})" for each in conditions if each)
