"""A VARIANT as strings that are equal exactly for variants that no reader can tell apart.

    ARRAY(json, schema, types)

    json      to_json(v), in UTC whatever the zone of the session: structure and values
    schema    schema_of_variant(v): 1, 1.0 and '1' have other types, of which JSON shows two at most
    types     the types of the values in it, in the order in which JSON lists them; else NULL

The schema has one type for all elements of an array: `[1, 1.0]` and `[1.0, 1]` both become
`[1,1]` and `ARRAY<DECIMAL(20,0)>`. Where it may have merged several types, `types` has each: the
value is replaced by its parts, and these by theirs, until none has any. There are no more rounds
than JSON has brackets, and those after the last one that finds a part do nothing.

Spark itself ignores what is equal here: the order of the keys of an object, the scale of a decimal,
the width of an integer. SQL's NULL is an array of NULLs, and the variant null has a schema, VOID.
"""

from __future__ import annotations

import functools

import sqlglot
from sqlglot import exp

from dagster_streamtables.compiler.text.spark import DIALECT

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
    """Strings that stand for a VARIANT where values are compared, grouped or sorted."""
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
