"""JSON of Postgres as rows of FROM: elements, keys, pairs, and records of declared columns."""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import RECORDS
from dagster_streamtables.compiler.dialect.postgres.json.json_text import KIND, NEEDS_JSON, TEXT
from dagster_streamtables.compiler.dialect.rules.array_rules import require_in_from
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
)

_T = exp.DataType.Type
_JSON, _TEXTS = (_T.JSON, _T.JSONB), (_T.TEXT, _T.VARCHAR)
_CAST = (
    *(_T.SMALLINT, _T.INT, _T.BIGINT, _T.FLOAT, _T.DOUBLE, _T.BOOLEAN, _T.DATE),
    *(_T.TIMESTAMPNTZ, _T.TIMESTAMPTZ),
)
_LIST = "CAST(PARSE_JSON(_j) AS ARRAY<VARIANT>)"
_OBJECT = (
    "CASE WHEN st_e IS NULL OR SCHEMA_OF_VARIANT(st_e) LIKE 'OBJECT%' THEN st_e "
    "ELSE CAST(CAST('this needs objects' AS INT) AS VARIANT) END"
)


def _json_of(node: exp.Expr, query: Query) -> exp.Expr:
    value = node.expressions[0]
    query.require(node, value, *NEEDS_JSON)
    return value


def _rows(node: exp.Expr, query: Query, *, template: str, noted: bool = True) -> exp.Expr:
    """A function of JSON that returns rows, in FROM."""
    require_in_from(node, query)
    if noted:
        query.note(TEXT)
    return call("EXPLODE", from_template(template, j=_json_of(node, query)))


def _pairs(node: exp.Expr, query: Query, *, value: str) -> exp.Expr:
    """``jsonb_each``: the keys of an object with their values, as two columns."""
    item = require_in_from(node, query)
    query.note(TEXT)
    alias = item.args.get("alias")
    if alias is not None and not alias.columns:
        alias.set("columns", [exp.to_identifier(each) for each in ("key", "value")])
    entries = "MAP_ENTRIES(CAST(PARSE_JSON(_j) AS MAP<STRING, VARIANT>))"
    pair = f"NAMED_STRUCT('key', st_e.key, 'value', {value})"
    rows = f"TRANSFORM({entries}, st_e -> {pair})"
    return call("INLINE", from_template(rows, j=_json_of(node, query)))


def declare_records(tree: exp.Query) -> None:
    """Put the columns of ``jsonb_to_recordset(j) AS r(a int)`` after the argument of the call, so
    that the alias has names alone, as for any other function."""
    for node in tree.find_all(exp.Table, exp.Lateral):
        alias, function = node.args.get("alias"), node.this
        if not isinstance(function, exp.Anonymous) or function.name.lower() not in RECORDS:
            continue
        declared = alias.args.get("columns") or [] if alias is not None else []
        if alias is None or not all(
            isinstance(each, exp.ColumnDef) and each.args.get("kind") for each in declared
        ):
            continue
        for each in declared:
            function.append("expressions", exp.Kwarg(this=each.this.copy(), expression=each.kind))
        alias.set("columns", [each.this.copy() for each in declared])


def _records(node: exp.Expr, query: Query, *, rows: str) -> exp.Expr:
    """Records of declared columns; `rows` is the template of their objects, an array of VARIANT."""
    require_in_from(node, query)
    columns = node.expressions[1:]
    if not columns:
        raise query.refusal(node, "its columns must be known",
                            "declare them, as in AS r(sku text, qty int)")  # fmt: skip
    query.note(TEXT)
    names = {f"c{at}": each.name for at, each in enumerate(columns)}
    paths = {f"p{at}": _path(each, query) for at, each in enumerate(columns)}
    fields = ", ".join(f"_c{at}, {_value(node, each, f'_p{at}', query)}"
                       for at, each in enumerate(columns))  # fmt: skip
    objects = f"TRANSFORM({rows}, st_e -> {_OBJECT})"
    records = f"TRANSFORM({objects}, st_e -> NAMED_STRUCT({fields}))"
    return call("INLINE", from_template(records, j=_json_of(node, query), **names, **paths))


def _path(column: exp.Expr, query: Query) -> str:
    if set(column.name) & set("'\"\\"):
        raise query.refusal(column, "a key has a quote", "take it by ->>")
    return f"$['{column.name}']"


def _value(node: exp.Expr, column: exp.Expr, path: str, query: Query) -> str:
    """A key's value as its column's type; both a missing key and ``null`` are NULL."""
    type_ = column.expression
    text = f"VARIANT_GET(st_e, {path}, 'string')"
    if type_.this in _JSON:
        inner = f"VARIANT_GET(st_e, {path})"
        return f"CASE WHEN SCHEMA_OF_VARIANT({inner}) <> 'VOID' THEN TO_JSON({inner}) END"
    if type_.this in _TEXTS and not type_.expressions:
        return text
    if type_.this is _T.DECIMAL and not type_.expressions:
        query.note("NUMERIC without digits is DECIMAL(38, 18)")
        return f"CAST({text} AS DECIMAL(38, 18))"
    if type_.this not in (*_CAST, _T.DECIMAL):
        raise query.refusal(column, "a column of JSON becomes a text, a number, a boolean, a date, "
                            "a timestamp or JSON", "declare it as jsonb",
                            called=f"the column {column.name}")  # fmt: skip
    return f"CAST({text} AS {type_.sql('spark')})"


_KEYS = (
    f"CASE WHEN {KIND} LIKE 'OBJECT%' THEN JSON_OBJECT_KEYS(_j) WHEN _j IS NOT NULL "
    "THEN CAST(ARRAY(CAST('cannot get keys of what is no object' AS INT)) AS ARRAY<STRING>) END"
)
_ELEMENT_TEXTS = f"TRANSFORM({_LIST}, st_e -> VARIANT_GET(st_e, '$', 'string'))"
CALLS: dict[str, Rule] = {
    f"{kind}_{name}": rule
    for kind in ("json", "jsonb")
    for name, rule in {
        "array_elements": partial(_rows, template=f"TRANSFORM({_LIST}, st_e -> TO_JSON(st_e))"),
        "array_elements_text": partial(_rows, template=_ELEMENT_TEXTS),
        "object_keys": partial(_rows, template=_KEYS, noted=False),
        "each": partial(_pairs, value="TO_JSON(st_e.value)"),
        "each_text": partial(_pairs, value="VARIANT_GET(st_e.value, '$', 'string')"),
        "to_recordset": partial(_records, rows=_LIST),
        "to_record": partial(_records, rows="ARRAY(PARSE_JSON(_j))"),
    }.items()
}
