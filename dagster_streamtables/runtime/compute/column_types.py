"""Check column types that only Spark knows, before a table is built.

The compiler refuses what it can tell from the text. The rest would fail with an error of Delta or
Arrow, or be recomputed at every refresh, since no change of it can be subtracted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dagster_streamtables.compiler import is_storable, unstorable
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery
from dagster_streamtables.runtime.model.definition import visible_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNSTORED = ("interval", "time(")
_UNCOMPARABLE = ("geometry", "geography")
_NO_KEYS = (*_UNCOMPARABLE, "map", "variant")
_NOT_BY_ARROW = ("variant", "void")

Type = str | Mapping[str, Any]
"""A type in Spark's JSON."""


def spark_types(rows: DataFrame) -> dict[str, Type]:
    """The columns of a query, and their Spark types."""
    return {field.name: field.dataType.jsonValue() for field in rows.schema.fields}


def names_problem(found: Sequence[str], expected: Sequence[str]) -> UnsupportedQuery | None:
    """Why a change of a query cannot be stored if Spark's analysis found other columns than the
    plan has: rows are stored by place, and changes by name."""
    if list(found) == list(expected):
        return None
    return UnsupportedQuery(
        "the columns of the query are not those that Spark returns",
        why=f"Spark: {', '.join(visible_names(found))}; "
        f"worked out: {', '.join(visible_names(expected))}",
        fix="list the outputs in place of *, each with AS, or choose mode FULL; and report the "
        "query, since this is a fault of dagster-streamtables",
    )


def require_storable(types: Mapping[str, Type]) -> None:
    """
    Raises:
        InvalidDefinition: A column has a type that no Delta table has.
    """
    for column, type_ in types.items():
        kind = _unstorable_part(type_)
        if kind is not None:
            raise InvalidDefinition(
                f'the column "{column}" holds values of the type {kind.upper()}',
                why="no column of a Delta table has such a type",
                fix=f'give "{column}" another type, with CAST(… AS STRING), or of array() with '
                "CAST(array() AS ARRAY<INT>)",
            )


def require_names(types: Mapping[str, Type]) -> None:
    """
    Raises:
        InvalidDefinition: A column, or a field of a struct, has a name that no Delta table has.
    """
    for column, type_ in types.items():
        if not is_storable(column):
            raise unstorable(column)
        for each in _types_in(type_):
            for field in () if isinstance(each, str) else each.get("fields", ()):
                if not is_storable(field["name"], field=True):
                    raise unstorable(field["name"], field=True)


def maintenance_problem(
    types: Mapping[str, Type], key: Collection[str] = ()
) -> UnsupportedQuery | None:
    """Why no change of a plan can be stored, given its column types and those that are its key."""
    for column, type_ in types.items():
        unstored, kinds = _unstorable_part(type_), _kinds(type_)
        if unstored is not None and not visible_names([column]):
            return UnsupportedQuery(
                f"the table's own state would hold values of the type {unstored.upper()}",
                why="the table stores the keys, extrema and sums of each group, and no column of a "
                "Delta table has such a type",
                fix="group by and aggregate numbers or texts instead, or choose mode FULL",
            )
        if unstored is not None:
            continue  # refused in every mode
        uncomparable = _NO_KEYS if column in key else _UNCOMPARABLE
        kind = next((each for each in kinds if each.startswith(uncomparable)), None)
        if kind is not None:
            return UnsupportedQuery(
                f'"{column}" holds a {kind.upper()}',
                why="rows are distinguished by comparing, and such values cannot be compared",
                fix="extract the entries you need, make a string of it with to_json, or choose "
                "mode FULL",
            )
        if "void" in kinds:
            return UnsupportedQuery(
                f'"{column}" holds a NULL of no type',
                why="a row that changes has the types of the row that is stored, and NULL has none",
                fix="give it a type with CAST(NULL AS …), or choose mode FULL",
            )
    return None


def require_comparable(types: Mapping[str, Type], key: Collection[str] = ()) -> None:
    """
    Raises:
        InvalidDefinition: A column has a type that no Delta table has.
        UnsupportedQuery: Rows cannot be told apart by a column.
    """
    require_storable(types)
    problem = maintenance_problem(types, key)
    if problem is not None:
        raise problem


def are_of_arrow(types: Mapping[str, Type]) -> bool:
    """Whether Arrow has types for the columns; for a VARIANT, it has only two binary strings."""
    return not any(kind in _NOT_BY_ARROW for type_ in types.values() for kind in _kinds(type_))


def _unstorable_part(type_: Type, *, listed: bool = False) -> str | None:
    """The part of a type that Delta cannot store, such as NULL in a list, or a struct of NULLs."""
    if isinstance(type_, str):
        return type_ if type_.startswith(_UNSTORED) or (type_ == "void" and listed) else None
    parts = _parts(type_)
    if parts and all(part == "void" for part in parts):
        return "void"
    listed = listed or type_["type"] != "struct"
    found = (_unstorable_part(part, listed=listed) for part in parts)
    return next((kind for kind in found if kind is not None), None)


def _types_in(type_: Type) -> Iterator[Type]:
    """The type, and those inside it."""
    yield type_
    for part in () if isinstance(type_, str) else _parts(type_):
        yield from _types_in(part)


def _kinds(type_: Type) -> list[str]:
    return [each if isinstance(each, str) else each["type"] for each in _types_in(type_)]


def _parts(type_: Mapping[str, Any]) -> list[Type]:
    inside = [type_[key] for key in ("elementType", "keyType", "valueType") if key in type_]
    return [*inside, *(field["type"] for field in type_.get("fields", ()))]
