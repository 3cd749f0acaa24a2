"""Types of a query's columns that only Spark knows, looked at before a table is built.

The compiler refuses what it can tell from the text. The rest would fail in Delta or in Arrow with
an error of theirs, or be recomputed at every refresh since no change of it can be taken away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HIDDEN = "__st_"
_UNSTORED = ("interval", "time(")
_UNCOMPARABLE = ("map", "variant", "geometry", "geography")
_NOT_BY_ARROW = ("variant", "void")

Type = str | Mapping[str, Any]
"""As Spark writes it in JSON."""


def told(rows: DataFrame) -> dict[str, Type]:
    """The columns of a query, and their types, as Spark has them."""
    return {field.name: field.dataType.jsonValue() for field in rows.schema.fields}


def require_stored(types: Mapping[str, Type]) -> None:
    """
    Raises:
        InvalidDefinition: A column has a type that no Delta table has.
    """
    for column, type_ in types.items():
        kind = _unstored(type_)
        if kind is not None:
            raise InvalidDefinition(
                f'the column "{column}" holds values of the type {kind.upper()}',
                why="no column of a Delta table has such a type",
                fix=f'give "{column}" another type, with CAST(… AS STRING), or of array() with '
                "CAST(array() AS ARRAY<INT>)",
            )


def unmaintained(types: Mapping[str, Type]) -> UnsupportedQuery | None:
    """Why no change of a plan can be stored, given what its columns turn out to be."""
    for column, type_ in types.items():
        unstored, kinds = _unstored(type_), list(_kinds(type_))
        if unstored is not None and column.startswith(_HIDDEN):
            return UnsupportedQuery(
                f"the table's own state would hold values of the type {unstored.upper()}",
                why="a group is kept by what it is grouped by and by its extrema and sums, and no "
                "column of a Delta table has such a type",
                fix="group by and aggregate numbers or texts in place of them, or choose mode FULL",
            )
        if unstored is not None:
            continue  # in no mode
        kind = next((each for each in kinds if each.startswith(_UNCOMPARABLE)), None)
        if kind is not None:
            return UnsupportedQuery(
                f'"{column}" holds a {kind.upper()}',
                why="rows are told apart by comparing, and such values cannot be compared",
                fix="take out the entries you need, make a string of it with to_json, or choose "
                "mode FULL",
            )
        if "void" in kinds:
            return UnsupportedQuery(
                f'"{column}" holds a NULL of no type',
                why="a row that changes has the types of the row that is stored, and NULL has none",
                fix="say which with CAST(NULL AS …), or choose mode FULL",
            )
    return None


def are_of_arrow(types: Mapping[str, Type]) -> bool:
    """Whether Arrow has all that the columns are; a VARIANT, it has as two texts in bytes."""
    return not any(kind in _NOT_BY_ARROW for type_ in types.values() for kind in _kinds(type_))


def _unstored(type_: Type, *, listed: bool = False) -> str | None:
    """What in a type Delta does not store; of nothing but NULLs, no list and no struct."""
    if isinstance(type_, str):
        return type_ if type_.startswith(_UNSTORED) or (type_ == "void" and listed) else None
    parts = _parts(type_)
    if parts and all(part == "void" for part in parts):
        return "void"
    listed = listed or type_["type"] != "struct"
    found = (_unstored(part, listed=listed) for part in parts)
    return next((kind for kind in found if kind is not None), None)


def _kinds(type_: Type) -> Iterator[str]:
    """The type, and those inside."""
    if isinstance(type_, str):
        yield type_
        return
    yield str(type_["type"])
    for part in _parts(type_):
        yield from _kinds(part)


def _parts(type_: Mapping[str, Any]) -> list[Type]:
    inside = [type_[key] for key in ("elementType", "keyType", "valueType") if key in type_]
    return [*inside, *(field["type"] for field in type_.get("fields", ()))]
