"""Column types of the Delta protocol as Spark types.

They follow the "Schema Serialization Format" of the Delta transaction log protocol: primitive types
by name, nested ones as objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.delta.quote import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPARK = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def spark_type(delta_type: str | Mapping[str, object]) -> str:
    """The type of a column as Spark writes it.

    >>> spark_type("long"), spark_type("decimal(10,2)")
    ('bigint', 'decimal(10,2)')
    >>> spark_type({"type": "array", "elementType": "integer", "containsNull": True})
    'array<int>'
    """
    if isinstance(delta_type, str):
        return _SPARK.get(delta_type, delta_type)
    nested: Mapping[str, object] = delta_type
    match nested["type"]:
        case "array":
            return f"array<{spark_type(nested['elementType'])}>"  # type: ignore[arg-type]
        case "map":
            key, value = nested["keyType"], nested["valueType"]
            return f"map<{spark_type(key)},{spark_type(value)}>"  # type: ignore[arg-type]
        case _:
            fields = nested["fields"]
            inner = (f"{spark_name(f['name'])}:{spark_type(f['type'])}" for f in fields)  # type: ignore
            return f"struct<{','.join(inner)}>"


def types_of(rows: DataFrame) -> dict[str, str]:
    """Column → type. Spark's `dtypes` would leave the names in a struct unquoted."""
    return {field.name: spark_type(field.dataType.jsonValue()) for field in rows.schema.fields}
