"""Forms of values that SQL cannot compare, or compares too loosely: MAP, VARIANT, -0.0 and 0.0.

    comparable(m)    map_entries(m)                in their order, which readers see: the map itself
    comparable(v)    variant_form(v)               no two variants that a reader can tell apart
    ordered(m)       sort_array(map_entries(m))    equal if GROUP BY considers two maps equal
    as_maps          map_from_entries(…)           back
    zeros(x)         differs for -0.0 and 0.0, which are equal to SQL

Spark groups by a MAP, but has no equality of two; of a VARIANT, it has neither. GROUP BY ignores
the order of a map's entries, and returns them by key. So wherever copies of whole rows are counted
or compared, `comparable` values replace them, at any depth; and the key of a group is `ordered`.
There is no way back from the form of a VARIANT: if the value itself is returned, it is the value of
any row with the form.

`CAST(x AS STRING)`, `atan2` and readers of a table distinguish -0.0 from 0.0, and a query returns
the one that it read, but GROUP BY turns both into 0.0. So copies of whole rows are also grouped by
`zeros` of their columns, and keep their values. If the query itself groups or joins, SQL's equality
applies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from dagster_streamtables.compiler.operators.sql_builders import column, is_null
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT

# An unknown type may be a float.
_FLOATS = (exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE, exp.DataType.Type.UNKNOWN)


def has_zeros(type_: exp.DataType) -> bool:
    """Whether a value of the type may be or contain a float."""
    return any(part.this in _FLOATS for part in type_.find_all(exp.DataType))


def zeros(value: exp.Expr, type_: exp.DataType) -> exp.Expr:
    """An expression that differs for values that SQL considers equal but that are not the same."""
    text = exp.cast(value.copy(), "TEXT")
    if type_.this not in _FLOATS[:2]:
        return text
    zero = exp.EQ(this=value.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=zero, true=text)])


def zero_marks(types: Mapping[str, str], table: str | None = None) -> dict[str, str]:
    """For each column that may contain a float: an expression that distinguishes -0.0 from 0.0.

    >>> zero_marks({"id": "bigint", "x": "double"}, "t")
    {'x': 'CASE WHEN `t`.`x` = 0 THEN CAST(`t`.`x` AS STRING) END'}
    """
    return _columns_in_form(types, has_zeros, zeros, table)


Kind = exp.DataType.Type


def has_maps(type_: exp.DataType | None) -> bool:
    """Whether a value is or contains a MAP, as far as its type is known."""
    return _has(type_, Kind.MAP)


def has_variants(type_: exp.DataType | None) -> bool:
    """Whether a value is or contains a VARIANT, as far as its type is known."""
    return _has(type_, Kind.VARIANT)


def has_form(type_: exp.DataType | None) -> bool:
    """Whether a value is compared in another form, as far as its type is known."""
    return _has(type_, Kind.MAP, Kind.VARIANT)


def _has(type_: exp.DataType | None, *kinds: exp.DType) -> bool:
    return type_ is not None and any(each.this in kinds for each in type_.find_all(exp.DataType))


_PRIMITIVE = (
    *(Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE),
    *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIMESTAMPLTZ, Kind.TIMESTAMPNTZ),
    *(Kind.INTERVAL, Kind.UNKNOWN),
)


def value_without_null(type_: exp.DataType | None) -> str | None:
    """The type of the values of a MAP if Spark's own sorting of it loses NULL; otherwise None.

    Spark's compiled code for GROUP BY of a MAP does not test values of Java's primitive types for
    NULL. UNKNOWN may be such a type.
    """
    for each in type_.find_all(exp.DataType) if type_ is not None else ():
        value = each.expressions[1:2] if each.this is Kind.MAP else []
        if each.this is Kind.MAP and (not value or value[0].this in _PRIMITIVE):
            return value[0].sql(DIALECT) if value else "UNKNOWN"
    return None


def comparable(value: exp.Expr, type_: exp.DataType | None) -> exp.Expr:
    """A value that can be compared: the value itself, or with forms for its maps and variants."""
    return _Form(opened=_to_entries, variant=variant_form).of(value, type_)


def as_json(value: exp.Expr, type_: exp.DataType | None) -> exp.Expr:
    """The value with JSON text for its variants, for readers without the type VARIANT."""
    return _Form(_to_entries, _from_entries, variant_json, (Kind.VARIANT,)).of(value, type_)


def ordered(value: exp.Expr, type_: exp.DataType | None) -> exp.Expr:
    """Like `comparable`, but equal for two maps that differ in the order of their entries alone."""
    return _Form(opened=_to_entries, closed=lambda each: _call("sort_array", each)).of(value, type_)


def as_maps(value: exp.Expr, type_: exp.DataType | None) -> exp.Expr:
    """The value of a type from its comparable form."""
    return _Form(closed=_from_entries).of(value, type_)


def comparable_columns(types: Mapping[str, str], table: str | None = None) -> dict[str, str]:
    """For each column with maps or variants: SQL by which its values are compared and grouped.

    >>> comparable_columns({"id": "bigint", "m": "map<string,int>"}, "t")
    {'m': 'MAP_ENTRIES(`t`.`m`)'}
    """
    return _columns_in_form(types, has_form, comparable, table)


def json_columns(types: Mapping[str, str]) -> dict[str, str]:
    """For each column with variants: SQL for it with JSON text instead.

    >>> json_columns({"id": "bigint", "v": "variant"})
    {'v': "TO_JSON(`v`, MAP('timeZone', 'UTC'))"}
    """
    return _columns_in_form(types, has_variants, as_json)


def _columns_in_form(
    types: Mapping[str, str],
    has_form: Callable[[exp.DataType], bool],
    form: Callable[[exp.Expr, exp.DataType], exp.Expr],
    table: str | None = None,
) -> dict[str, str]:
    """For each column whose type has another form: SQL for it in that form."""
    kinds = {name: exp.DataType.build(type_, dialect=DIALECT) for name, type_ in types.items()}
    return {
        name: form(column(name, table), kind).sql(DIALECT)
        for name, kind in kinds.items()
        if has_form(kind)
    }


def _as_it_is(value: exp.Expr) -> exp.Expr:
    return value


@dataclass(frozen=True)
class _Form:
    """The maps and variants of a value in another form."""

    opened: Callable[[exp.Expr], exp.Expr] = _as_it_is
    """A map → its entries."""
    closed: Callable[[exp.Expr], exp.Expr] = _as_it_is
    """Entries, with the other form of their values → the map in its other form."""
    variant: Callable[[exp.Expr], exp.Expr] = _as_it_is
    """A VARIANT in its other form."""
    kinds: tuple[exp.DType, ...] = (Kind.MAP, Kind.VARIANT)
    """What has another form; values without it stay as they are."""

    def of(self, value: exp.Expr, type_: exp.DataType | None, depth: int = 0) -> exp.Expr:
        if type_ is None or not _has(type_, *self.kinds):
            return value.copy()
        parts = type_.expressions
        if type_.this is Kind.VARIANT:
            return self.variant(value.copy())
        if type_.this is Kind.MAP:
            return self._of_map(value, parts[1] if len(parts) > 1 else None, depth)
        if type_.this is Kind.STRUCT:
            return self._of_struct(value, parts, depth)
        return self._of_each(value, parts[0] if parts else None, depth)

    def _of_map(self, value: exp.Expr, inside: exp.DataType | None, depth: int) -> exp.Expr:
        opened = self.opened(value.copy())
        if not _has(inside, *self.kinds):
            return self.closed(opened)
        entry = exp.to_identifier(f"e{depth}")
        key, inner = (
            exp.Dot(this=entry.copy(), expression=exp.to_identifier(name))
            for name in ("key", "value")
        )
        pair = [("key", key), ("value", self.of(inner, inside, depth + 1))]
        return self.closed(_each(opened, entry, _struct(pair)))

    def _of_each(self, value: exp.Expr, inside: exp.DataType | None, depth: int) -> exp.Expr:
        item = exp.to_identifier(f"e{depth}")
        return _each(value.copy(), item, self.of(item.copy(), inside, depth + 1))

    def _of_struct(self, value: exp.Expr, fields: list[exp.Expr], depth: int) -> exp.Expr:
        pairs: list[tuple[str, exp.Expr]] = []
        for each in fields:
            own = exp.Dot(this=value.copy(), expression=exp.to_identifier(each.name, quoted=True))
            pairs.append((each.name, self.of(own, each.args["kind"], depth)))
        return exp.Case().when(is_null(value), exp.null()).else_(_struct(pairs))


def _to_entries(value: exp.Expr) -> exp.Expr:
    return _call("map_entries", value)


def _from_entries(value: exp.Expr) -> exp.Expr:
    return _call("map_from_entries", value)


def _struct(fields: list[tuple[str, exp.Expr]]) -> exp.Expr:
    pairs = (each for name, value in fields for each in (exp.Literal.string(name), value))
    return _call("named_struct", *pairs)


def _each(list_: exp.Expr, item: exp.Identifier, made: exp.Expr) -> exp.Expr:
    return _call("transform", list_, exp.Lambda(this=made, expressions=[item.copy()]))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name.upper(), expressions=list(arguments))


_VALUE = "st_value"
_JSON = f"TO_JSON({_VALUE}, MAP('timeZone', 'UTC'))"
_MERGED = "(?s)ARRAY<.*(DECIMAL|DOUBLE|FLOAT|TIMESTAMP|VARIANT)"
"""The types that Spark gives to an array whose elements have several, NULL aside."""
_KIND = "SCHEMA_OF_VARIANT(st_part)"
_PARTS = (
    f"CASE WHEN {_KIND} LIKE 'ARRAY<%' THEN CAST(st_part AS ARRAY<VARIANT>) "
    f"WHEN {_KIND} LIKE 'OBJECT<%' THEN MAP_VALUES(CAST(st_part AS MAP<STRING, VARIANT>)) "
    "ELSE ARRAY(st_part) END"
)
_ROUND = (
    "CASE WHEN st_all.more THEN NAMED_STRUCT("
    f"'more', EXISTS(st_all.parts, st_part -> {_KIND} RLIKE '^(ARRAY|OBJECT)<'), "
    f"'parts', FLATTEN(TRANSFORM(st_all.parts, st_part -> {_PARTS}))) ELSE st_all END"
)
_TYPES = (
    f"AGGREGATE(SEQUENCE(1, REGEXP_COUNT({_JSON}, '[\\\\[{{]')), "
    f"NAMED_STRUCT('more', TRUE, 'parts', ARRAY({_VALUE})), (st_all, st_round) -> {_ROUND}, "
    f"st_all -> ARRAY_JOIN(TRANSFORM(st_all.parts, st_part -> {_KIND}), ' '))"
)
_SCHEMA = f"SCHEMA_OF_VARIANT({_VALUE})"
_FORM = f"ARRAY({_JSON}, {_SCHEMA}, CASE WHEN {_SCHEMA} RLIKE '{_MERGED}' THEN {_TYPES} END)"


def variant_form(value: exp.Expr) -> exp.Expr:
    """Strings that are equal exactly for variants that no reader can tell apart.

        ARRAY(json, schema, types)

        json      to_json(v), in UTC whatever the zone of the session: structure and values
        schema    schema_of_variant(v): 1, 1.0 and '1' differ in type, and JSON distinguishes two
        types     the types of the values in it, in the order in which JSON lists them; else NULL

    The schema has one type for all elements of an array: `[1, 1.0]` and `[1.0, 1]` both become
    `[1,1]` and `ARRAY<DECIMAL(20,0)>`. If it may have merged several types, `types` has each: the
    value is replaced by its parts, and these by theirs, in as many rounds as JSON has brackets.

    Spark itself ignores the order of the keys of an object, the scale of a decimal, and the width
    of an integer. SQL's NULL is an array of NULLs, and the variant null has a schema, VOID.
    """
    return _fill_template(_FORM, value)


def variant_json(value: exp.Expr) -> exp.Expr:
    """The JSON text of a VARIANT, with times in UTC."""
    return _fill_template(_JSON, value)


def _fill_template(template: str, value: exp.Expr) -> exp.Expr:
    tree = exp.paren(_parse_template(template))
    for node in list(tree.find_all(exp.Column)):
        if node.name == _VALUE:
            node.replace(value.copy())
    return tree.this


@functools.cache
def _parse_template(template: str) -> exp.Expr:
    return sqlglot.parse_one(template, dialect=DIALECT)
