"""Infer the types that cannot be stored or compared, and find collations that escape.

sqlglot does not infer the types of anonymous calls, such as those that return a MAP; it takes the
difference of two dates for a date, and gives the result of LATERAL explode(x) the type of x. This
module infers such types where they matter. The types of the keys and values of a MAP may be
UNKNOWN.

COLLATE may stand in what is compared, and never in what is kept:

    region COLLATE UTF8_LCASE = name        TRUE, FALSE or NULL: a function of the row, like others
    ORDER BY region COLLATE UTF8_LCASE      rows that are equal by it are ordered by their columns
    MAX(region COLLATE UTF8_LCASE)          refused: one of 'North' and 'NORTH', and any of them

A collation takes strings of different bytes for equal. Rows are told apart by their bytes, and so
are the keys of groups, windows and intermediate tables. So the value of an expression may not have
a collation where it is kept: as an output, a key, the argument of an aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.optimizer.annotate_types import TypeAnnotator
from sqlglot.schema import Schema

from dagster_streamtables.compiler.analyze.ordered_aggregates import STRINGS
from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.sqlglot_dialects import type_from

UNCOMPARABLE = (exp.DType.OBJECT, exp.DType.JSON, exp.DType.GEOMETRY, exp.DType.GEOGRAPHY)
"""Types whose values cannot be compared, so rows with them cannot be distinguished."""
UNGROUPED = (exp.DType.VARIANT, *UNCOMPARABLE)
"""Types by whose values Spark itself neither groups nor sorts."""
UNSTORED = (exp.DType.INTERVAL,)
"""Types that no column of a Delta table can have."""

_MOMENTS = (
    exp.DType.DATE,
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPTZ,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ,
)
_BY_SCHEMA = {"from_csv", "from_json", "from_xml"}
_ONE_OF_MANY = {"any_value", "first", "first_value", "last", "last_value", "max_by", "min_by"} | {
    "lag", "lead", "mode", "nth_value",
}  # fmt: skip


def first_kind(type_: exp.DataType | None, kinds: tuple[exp.DType, ...]) -> str | None:
    """The first of these kinds that a type is or contains.

    >>> first_kind(type_from("array<variant>"), UNGROUPED)
    'VARIANT'
    """
    for part in type_.find_all(exp.DataType) if type_ is not None else ():
        kind = exp.DType.INTERVAL if isinstance(part.this, exp.Interval) else part.this
        if kind in kinds:
            return str(kind.value)
    return None


def drop_interval_types(tree: exp.Query) -> None:
    """Remove the types of intervals, whose units are not known, from the tree."""
    for node in tree.walk():
        if first_kind(node.type, UNSTORED):
            node.type = exp.DataType.build("UNKNOWN")


def _of_call(annotator: Any, call: exp.Anonymous) -> None:
    """Set the type of an anonymous call if it contains one that matters."""
    name, arguments = call.name.lower(), call.expressions
    first = arguments[0].type if arguments else None
    found: exp.DataType | None = None
    if name in spark_functions.MAPS:
        found = _map_type(name, arguments)
    elif name in spark_functions.INTERVALS:
        found = type_from("interval")
    elif name in spark_functions.VARIANTS:
        found = type_from("variant")
    elif name in ("variant_get", "try_variant_get"):
        # Without a type, or with this one, it is an entry as it is, such as v:a.
        as_it_is = len(arguments) < 3 or arguments[2].name.lower() == "variant"
        found = type_from("variant") if as_it_is else None
    elif name in _BY_SCHEMA:
        found = _of_schema(arguments[1:2])
    elif name == "element_at" and first is not None and first.is_type(exp.DType.MAP):
        found = first.expressions[1]
    elif name in _ONE_OF_MANY:
        found = first
    matters = first_kind(found, (exp.DType.MAP, *UNGROUPED, *UNSTORED)) is not None
    annotator._set_type(call, found.copy() if found is not None and matters else None)


def _of_schema(schema: list[exp.Expr]) -> exp.DataType | None:
    """The type of a schema such as ``a INT, m MAP<STRING, INT>`` or ``ARRAY<INT>``."""
    text = schema[0].name if schema and schema[0].is_string else ""
    one = type_from(text)
    return type_from(f"struct<{text}>") if one.is_type(exp.DType.UNKNOWN) else one


def _of_sum(annotator: Any, node: exp.Binary) -> None:
    """Set the type of a sum or difference of times and intervals; UNKNOWN if an operand is."""
    sides = node.left, node.right
    kinds = [each.type.this if each.type else exp.DType.UNKNOWN for each in sides]
    intervals = [
        side for side, kind in zip(sides, kinds, strict=True) if kind is exp.DType.INTERVAL
    ]
    other = next((kind for kind in kinds if kind is not exp.DType.INTERVAL), None)
    if isinstance(node, exp.Sub) and all(kind in _MOMENTS for kind in kinds):
        annotator._set_type(node, exp.DType.INTERVAL)
    elif len(intervals) != 1 or (
        other is exp.DType.DATE and isinstance(intervals[0], exp.Interval)
    ):
        Spark.EXPRESSION_METADATA[type(node)]["annotator"](annotator, node)
    else:
        # A date plus an interval is a date or a timestamp, depending on the interval.
        known = other in _MOMENTS and other is not exp.DType.DATE
        annotator._set_type(node, other if known else None)


def _of_each(annotator: Any, node: exp.Transform) -> None:
    """Set the type of ``transform(list, x -> …)`` if it contains one that matters."""
    made = node.expression.this.type if isinstance(node.expression, exp.Lambda) else None
    found = exp.DataType(
        this=exp.DType.ARRAY, expressions=[made.copy()] if made else [], nested=True
    )
    annotator._set_type(node, found if first_kind(found, (exp.DType.MAP, *UNGROUPED)) else None)


def _of_entry(annotator: Any, node: exp.Bracket) -> None:
    """Set the type of ``m[key]`` of a MAP; sqlglot has those of other values."""
    type_ = node.this.type
    if type_ is not None and type_.is_type(exp.DType.MAP):
        annotator._set_type(node, type_.expressions[1].copy())
    else:
        Spark.EXPRESSION_METADATA[exp.Bracket]["annotator"](annotator, node)


_TYPES: Any = {
    **Spark.EXPRESSION_METADATA,
    exp.Bracket: {"annotator": _of_entry},
    exp.Transform: {"annotator": _of_each},
    exp.Add: {"annotator": _of_sum},
    exp.Sub: {"annotator": _of_sum},
    exp.Anonymous: {"annotator": _of_call},
}


class _Annotator(TypeAnnotator):
    def _get_source_scope_selects(self, source: Any) -> dict[str, Any]:
        if not isinstance(source.expression, exp.Lateral):
            return super()._get_source_scope_selects(source)
        types = _of_rows(source.expression.this)
        return dict(zip(source.expression.alias_column_names, types, strict=False))


def _of_rows(call: exp.Expr) -> list[exp.DataType]:
    """The types of the columns that a table function returns; empty if unknown."""
    if isinstance(call, exp.Anonymous):
        variant = call.name.lower() in spark_functions.VARIANT_TABLES
        return [type_from(each) for each in ("int", "string", "variant")] if variant else []
    if not isinstance(call, exp.Explode):
        return []
    first = [type_from("int")] if isinstance(call, exp.Posexplode) else []
    type_ = call.this.type
    known = type_ is not None and type_.is_type(exp.DType.ARRAY, exp.DType.MAP)
    parts = type_.expressions if type_ is not None and known else []
    return [*first, *(part.copy() for part in parts)]


def infer_types(tree: exp.Expr, schema: Schema) -> exp.Expr:
    """The tree, with the types that can be inferred."""
    return _Annotator(schema, expression_metadata=_TYPES).annotate(tree)


def _map_type(name: str, arguments: Sequence[exp.Expr]) -> exp.DataType:
    """The type of a call of `spark_functions.MAPS`, with UNKNOWN for parts that are not known."""
    types = [each.type for each in arguments]
    match name:
        case "map":
            return _build_map_type(_one(types[::2]), _one(types[1::2]))
        case "str_to_map":
            return type_from("map<string,string>")
        case "map_filter" | "map_concat":
            return _build_map_type(
                *(_one([_part(each, place) for each in types[:1]]) for place in (0, 1))
            )
        case "map_from_arrays":
            return _build_map_type(*(_part(each, 0) for each in types[:2]))
        case "map_from_entries":
            return _build_map_type(
                *(_field(_part(types[0] if types else None, 0), n) for n in (0, 1))
            )
        case "transform_keys" | "transform_values" if len(arguments) > 1:
            function = arguments[1]
            made = function.this.type if isinstance(function, exp.Lambda) else None
            by_key = name == "transform_keys"
            return _build_map_type(
                made if by_key else _part(types[0], 0), _part(types[0], 1) if by_key else made
            )
    return _build_map_type(None, None)


def _build_map_type(key: exp.DataType | None, value: exp.DataType | None) -> exp.DataType:
    parts = [each.copy() if each else type_from("unknown") for each in (key, value)]
    return exp.DataType(this=exp.DType.MAP, expressions=parts, nested=True)


def _one(types: Sequence[exp.DataType | None]) -> exp.DataType | None:
    """The type that all of them are; a literal is a VARCHAR, to sqlglot."""
    texts = exp.DataType.TEXT_TYPES
    distinct = {type_from("string") if each and each.this in texts else each for each in types}
    return distinct.pop() if len(distinct) == 1 else None


def _part(type_: exp.DataType | None, place: int) -> exp.DataType | None:
    """The elements of a list, or the keys or values of a MAP."""
    listed = type_ is not None and type_.is_type(exp.DType.ARRAY, exp.DType.MAP)
    parts = type_.expressions if type_ is not None and listed else []
    return parts[place] if place < len(parts) else None


def _field(type_: exp.DataType | None, place: int) -> exp.DataType | None:
    struct = type_ is not None and type_.is_type(exp.DType.STRUCT)
    fields = type_.expressions if type_ is not None and struct else []
    return fields[place].args.get("kind") if place < len(fields) else None


_PLAIN = "UTF8_BINARY"
"""The collation of every string that has no other: bytes."""
_COMPARING = (
    *(exp.Predicate, exp.Contains, exp.StartsWith, exp.EndsWith, exp.EqualNull),
    *(exp.Length, exp.Levenshtein, exp.StrPosition, exp.ArrayPosition),
)
"""Their results are booleans or numbers, and sqlglot's `Predicate` is not all of them."""


def escaping_collations(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node, if it gives a value a collation that this value still has where it is kept."""
    if _gives(node) and not _is_inside_comparison(node):
        yield node


def desugar_collations(tree: exp.Expr) -> None:
    """Write the name of each collation as a word: the qualifier takes other spellings for columns.

    CAST(x AS STRING COLLATE UTF8_LCASE), collate(x, 'UTF8_LCASE'), x COLLATE system.builtin.UNICODE
    """
    for type_ in tree.find_all(exp.DataType):
        if type_.args.get("collate") is not None:
            type_.set("collate", exp.Var(this=type_.args["collate"].name))
    for node in tree.find_all(exp.Collate):
        node.set("expression", exp.Var(this=node.expression.name))


def _gives(node: exp.Expr) -> bool:
    """Whether it gives a value a collation other than by bytes."""
    if isinstance(node, exp.DataType):
        name = node.args.get("collate")
    else:
        name = node.expression if isinstance(node, exp.Collate) else None
    return name is not None and name.name.upper() != _PLAIN


def _is_inside_comparison(node: exp.Expr) -> bool:
    """Whether nothing but the result of a comparison leaves the expression around the node."""
    if isinstance(node, exp.DataType):
        if not isinstance(node.parent, exp.Cast):
            return False
        node = node.parent
    while (around := node.parent) is not None:
        if _compares(around, node):
            return True
        if not _is_of_one_row(around):
            return isinstance(around, exp.Ordered) and _orders_rows(around)
        node = around
    return False


def _orders_rows(item: exp.Ordered) -> bool:
    """Whether rows or values are put in an order by it: rows that are equal by a collation are
    then ordered by their columns, and values by their bytes. MODE() gives back what it orders."""
    of_group = item.find_ancestor(exp.WithinGroup, exp.Query)
    return not isinstance(of_group, exp.WithinGroup) or of_group.this.name.lower() in STRINGS


def _compares(around: exp.Expr, operand: exp.Expr) -> bool:
    if isinstance(around, exp.Case | exp.If):
        return operand.arg_key == "this"  # of CASE x WHEN y: x and y, but no result
    if isinstance(around, exp.Cast):
        return not around.to.args.get("collate")
    return isinstance(around, _COMPARING)


def _is_of_one_row(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in spark_functions.SCALAR
    if isinstance(node, exp.AggFunc | exp.Explode | exp.Inline):
        return False
    return isinstance(node, exp.Func | exp.Binary | exp.Paren | exp.Tuple)
