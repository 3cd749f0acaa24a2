"""``@>`` of arrays, ranges, and JSON that contains a constant; and JSON as rows."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.postgres import arrays, ranges
from dagster_streamtables.compiler.dialect.postgres.clauses import require_in_from
from dagster_streamtables.compiler.dialect.postgres.json import KIND, TEXT, TEXTUAL
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import made, string
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule, call, literal_text

_NUMBERS = "('BIGINT', 'DOUBLE')"
_AT = "VARIANT_GET(PARSE_JSON(_j), _p)"


def contains(node: exp.Expr, query: Query) -> exp.Expr:
    """``@>`` of arrays, of a range, or of JSON and a constant object."""
    found = ranges.contains(node, query)
    if found is not None:
        return found
    if Kind.ARRAY in (query.kind(node.this), query.kind(node.expression)):
        return arrays.contains(node, query)
    return _of_json(node, node.this, node.expression, query)


def contained(node: exp.Expr, query: Query) -> exp.Expr:
    """``<@``: the other way round."""
    found = ranges.contains(node, query)
    if found is not None:
        return found
    if Kind.ARRAY in (query.kind(node.this), query.kind(node.expression)):
        return arrays.contained(node, query)
    return _of_json(node, node.expression, node.this, query)


def _of_json(node: exp.Expr, whole: exp.Expr, part: exp.Expr, query: Query) -> exp.Expr:
    query.require(node, whole, TEXTUAL, "this needs arrays or JSON", "compare columns")
    text = literal_text(part.this if isinstance(part, exp.Cast) else part)
    try:
        value = json.loads(text or "", parse_float=Decimal)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise query.refusal(node, "only a constant object is looked for in JSON",
                            "write one such as '{\"a\": 1}', or compare by ->>")  # fmt: skip
    tests = list(_tests(node, whole, "$", value, query))
    found = exp.and_(*tests, wrap=True)
    return made("CASE WHEN _j IS NOT NULL THEN COALESCE(_f, FALSE) END", j=whole, f=found)


def _tests(node: exp.Expr, whole: exp.Expr, path: str, value: Any, query: Query) -> list[exp.Expr]:
    """What must hold at a path for the value to be contained there."""
    kind = "SCHEMA_OF_VARIANT(" + _AT + ")"
    parts = {"j": whole, "p": string(path)}
    if isinstance(value, dict):
        if any(set(key) & set("'\"\\") for key in value):
            raise query.refusal(node, "a key has a quote", "compare by ->>")
        below = [test for key, inner in value.items()
                 for test in _tests(node, whole, f"{path}['{key}']", inner, query)]  # fmt: skip
        return [made(f"{kind} LIKE 'OBJECT%'", **parts), *below]
    if value is None:
        return [made(f"{kind} = 'VOID'", **parts)]
    if isinstance(value, bool):
        test = f"{kind} = 'BOOLEAN' AND VARIANT_GET(PARSE_JSON(_j), _p, 'boolean') = {value}"
        return [made(test, **parts)]
    if isinstance(value, str):
        test = f"{kind} = 'STRING' AND VARIANT_GET(PARSE_JSON(_j), _p, 'string') = _v"
        return [made(test, v=string(value), **parts)]
    if isinstance(value, int | Decimal) and abs(value) < 10**18:
        test = (
            f"CASE WHEN {kind} IN {_NUMBERS} OR {kind} LIKE 'DECIMAL%' "
            "THEN TRY_VARIANT_GET(PARSE_JSON(_j), _p, 'decimal(38,18)') = _v ELSE FALSE END"
        )
        return [made(test, v=exp.Literal.number(format(value, "f")), **parts)]
    raise query.refusal(node, "only objects, texts and numbers are looked for in JSON",
                        "unnest the array, and compare its elements")  # fmt: skip


def _rows(template: str, *, told: bool) -> Rule:
    """A function of JSON that returns rows, in FROM."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        require_in_from(node, query)
        value = node.expressions[0]
        query.require(node, value, TEXTUAL, "this needs JSON", "name a column of JSON as text")
        if told:
            query.note(TEXT)
        return call("EXPLODE", made(template, j=value))

    return rule


def _pairs(value: str) -> Rule:
    """``jsonb_each``: the keys of an object with their values, as two columns."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        item = require_in_from(node, query)
        json_ = node.expressions[0]
        query.require(node, json_, TEXTUAL, "this needs JSON", "name a column of JSON as text")
        query.note(TEXT)
        alias = item.args.get("alias")
        if alias is not None and not alias.columns:
            alias.set("columns", [exp.to_identifier(each) for each in ("key", "value")])
        entries = "MAP_ENTRIES(CAST(PARSE_JSON(_j) AS MAP<STRING, VARIANT>))"
        pair = f"NAMED_STRUCT('key', st_e.key, 'value', {value})"
        return call("INLINE", made(f"TRANSFORM({entries}, st_e -> {pair})", j=json_))

    return rule


_ELEMENTS = "CAST(PARSE_JSON(_j) AS ARRAY<VARIANT>)"
_KEYS = (
    f"CASE WHEN {KIND} LIKE 'OBJECT%' THEN JSON_OBJECT_KEYS(_j) WHEN _j IS NOT NULL "
    "THEN CAST(ARRAY(CAST('cannot get keys of what is no object' AS INT)) AS ARRAY<STRING>) END"
)
_TEXTS = f"TRANSFORM({_ELEMENTS}, st_e -> VARIANT_GET(st_e, '$', 'string'))"
RULES: Rules = {exp.ArrayContainsAll: contains, exp.ArrayContainedBy: contained}
CALLS: dict[str, Rule] = {
    f"{kind}_{name}": rule
    for kind in ("json", "jsonb")
    for name, rule in {
        "array_elements": _rows(f"TRANSFORM({_ELEMENTS}, st_e -> TO_JSON(st_e))", told=True),
        "array_elements_text": _rows(_TEXTS, told=True),
        "object_keys": _rows(_KEYS, told=False),
        "each": _pairs("TO_JSON(st_e.value)"),
        "each_text": _pairs("VARIANT_GET(st_e.value, '$', 'string')"),
    }.items()
}
