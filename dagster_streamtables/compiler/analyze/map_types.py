"""The types of calls that return a MAP, of which sqlglot knows none."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dagster_streamtables.compiler.text.types import type_from

Kind = exp.DataType.Type


def map_type(name: str, arguments: Sequence[exp.Expr]) -> exp.DataType:
    """The type of a call; parts that are not known are UNKNOWN.

    Args:
        name: A function of `spark_functions.MAPS`.
        arguments: With their types.
    """
    types = [each.type for each in arguments]
    match name:
        case "map":
            return _made(_one(types[::2]), _one(types[1::2]))
        case "str_to_map":
            return type_from("map<string,string>")
        case "map_filter" | "map_concat":
            return _made(*(_one([_part(each, place) for each in types[:1]]) for place in (0, 1)))
        case "map_from_arrays":
            return _made(*(_part(each, 0) for each in types[:2]))
        case "map_from_entries":
            return _made(*(_field(_part(types[0] if types else None, 0), n) for n in (0, 1)))
        case "transform_keys" | "transform_values" if len(arguments) > 1:
            made = _of_lambda(arguments[1])
            by_key = name == "transform_keys"
            return _made(
                made if by_key else _part(types[0], 0), _part(types[0], 1) if by_key else made
            )
    return _made(None, None)


def _made(key: exp.DataType | None, value: exp.DataType | None) -> exp.DataType:
    parts = [each.copy() if each else type_from("unknown") for each in (key, value)]
    return exp.DataType(this=Kind.MAP, expressions=parts, nested=True)


def _one(types: Sequence[exp.DataType | None]) -> exp.DataType | None:
    """The type that all of them are; a literal is a VARCHAR, to sqlglot."""
    texts = exp.DataType.TEXT_TYPES
    distinct = {type_from("string") if each and each.this in texts else each for each in types}
    return distinct.pop() if len(distinct) == 1 else None


def _part(type_: exp.DataType | None, place: int) -> exp.DataType | None:
    """The elements of a list, or the keys or values of a MAP."""
    listed = type_ is not None and type_.is_type(Kind.ARRAY, Kind.MAP)
    parts = type_.expressions if type_ is not None and listed else []
    return parts[place] if place < len(parts) else None


def _field(type_: exp.DataType | None, place: int) -> exp.DataType | None:
    struct = type_ is not None and type_.is_type(Kind.STRUCT)
    fields = type_.expressions if type_ is not None and struct else []
    return fields[place].args.get("kind") if place < len(fields) else None


def _of_lambda(function: exp.Expr) -> exp.DataType | None:
    return function.this.type if isinstance(function, exp.Lambda) else None
