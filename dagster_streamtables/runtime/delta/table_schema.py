"""Column types of the Delta protocol as Spark types, and column names quoted for both engines.

Types follow the "Schema Serialization Format" of the Delta transaction log protocol: primitive
types by name, nested ones as objects. A collation is metadata of the column or struct field that
it is in: `{"__COLLATIONS": {"tags.element": "icu.UNICODE_CI"}}`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def spark_name(name: str) -> str:
    """A name in Spark SQL.

    >>> spark_name("two `words`")
    '`two ``words```'
    """
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def delta_rs_name(name: str) -> str:
    """A name in the SQL of the engine inside delta-rs.

    >>> print(delta_rs_name('two "quoted" words'))
    "two ""quoted"" words"
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


_NONE: Mapping[str, str] = MappingProxyType({})
_COLLATIONS = "__COLLATIONS"
_SPARK = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def column_type(field: Mapping[str, Any]) -> str:
    """The type of a column, or of a field of a struct, as Spark writes it.

    >>> told = {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}
    >>> column_type({"name": "s", "type": "string", "metadata": told})
    'string collate UTF8_LCASE'
    """
    collations = (field.get("metadata") or {}).get(_COLLATIONS, {})
    return spark_type(field["type"], field["name"], collations)


def spark_type(
    delta_type: str | Mapping[str, Any], path: str = "", collations: Mapping[str, str] = _NONE
) -> str:
    """The type of a column as Spark writes it.

    `collations` are those of the strings in it, by path; `path` is that of the type itself.

    >>> spark_type("long"), spark_type({"type": "array", "elementType": "decimal(10,2)"})
    ('bigint', 'array<decimal(10,2)>')
    """
    if isinstance(delta_type, str):
        collation = collations.get(path, "").rpartition(".")[2]
        plain = _SPARK.get(delta_type, delta_type)
        return f"{plain} collate {collation}" if collation else plain

    def inside(part: str, of: str) -> str:
        return spark_type(delta_type[part], f"{path}.{of}", collations)

    match delta_type["type"]:
        case "array":
            return f"array<{inside('elementType', 'element')}>"
        case "map":
            return f"map<{inside('keyType', 'key')},{inside('valueType', 'value')}>"
        case _:
            fields = delta_type["fields"]
            inner = (f"{spark_name(each['name'])}:{column_type(each)}" for each in fields)
            return f"struct<{','.join(inner)}>"


def has_variants(types: Iterable[str]) -> bool:
    """Whether one of these types, in Spark's spelling, is or contains a VARIANT.

    >>> has_variants(["array<struct<`variant`:int>>"]), has_variants(["map<int,variant>"])
    (False, True)
    """
    return any(_VARIANT.search(_QUOTED.sub("", each)) for each in types)


_QUOTED = re.compile(r"`(?:[^`]|``)*`")
_VARIANT = re.compile(r"\bvariant\b")


def json_for_variants(type_: Any) -> Any:
    """A type in Spark's JSON, with STRING instead of VARIANT, as after `json_columns`.

    >>> json_for_variants({"type": "array", "elementType": "variant", "containsNull": True})
    {'type': 'array', 'elementType': 'string', 'containsNull': True}
    """
    if type_ == "variant":
        return "string"
    if not isinstance(type_, Mapping):
        return type_
    inside = ("elementType", "keyType", "valueType")
    made = {key: json_for_variants(each) if key in inside else each for key, each in type_.items()}
    if "fields" in made:
        made["fields"] = [{**f, "type": json_for_variants(f["type"])} for f in made["fields"]]
    return made


def types_of(rows: DataFrame) -> dict[str, str]:
    """Column → type. Spark's `dtypes` would leave the names in a struct unquoted."""
    return {field.name: column_type(field.jsonValue()) for field in rows.schema.fields}


_HARMLESS = ("comment", "CURRENT_DEFAULT", "delta.invariants", "delta.generationExpression")
_IDENTITY = "delta.identity."  # the next value of an identity column changes with every commit
_INSIDE = ("type", "fields", "elementType", "keyType", "valueType")


def encoding(field: Any) -> str:
    """The metadata of a field and of all fields in it, except harmless ones, as JSON; empty if
    there are none."""
    found = _metadata(field)
    return json.dumps(found, sort_keys=True) if found else ""


def maps_columns(settings: Mapping[str, str | None]) -> bool:
    """Whether a table with these properties maps its columns to other names in the files.

    Protocol version 5 does so without a feature.
    """
    return (settings.get("delta.columnMapping.mode") or "none").lower() != "none"


def has_physical_names(fields: Any) -> bool:
    """Whether a column, or a field in one, has another name in the files than in the schema."""
    if isinstance(fields, list):
        return any(map(has_physical_names, fields))
    if not isinstance(fields, dict):
        return False
    name = fields.get("name")
    named = (fields.get("metadata") or {}).get("delta.columnMapping.physicalName", name)
    return named != name or any(has_physical_names(fields.get(key)) for key in _INSIDE)


def metadata_in(node: Any) -> Iterator[Mapping[str, Any]]:
    """The metadata of some fields, and of all fields in them."""
    if isinstance(node, dict):
        yield node.get("metadata") or {}
        node = list(node.values())
    for each in node if isinstance(node, list) else ():
        yield from metadata_in(each)


def digest(content: bytes) -> str:
    """A digest of content that is only compared."""
    return hashlib.sha256(content).hexdigest()[:24]


def _metadata(node: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(node, list):
        found = {each["name"]: _metadata(each) for each in node}
    elif isinstance(node, dict):
        found = {key: _metadata(node.get(key)) for key in _INSIDE}
        found["metadata"] = {
            key: value
            for key, value in (node.get("metadata") or {}).items()
            if key not in _HARMLESS and not key.startswith(_IDENTITY)
        }
    return {name: part for name, part in found.items() if part}
