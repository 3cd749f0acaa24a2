"""``@>`` of arrays, ranges, and JSON that contains a constant."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.postgres import arrays, ranges
from dagster_streamtables.compiler.dialect.postgres.json.keys import TEXTUAL
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import from_template, string
from dagster_streamtables.compiler.dialect.rules.query import Query, literal_text

_NUMBERS = "('BIGINT', 'DOUBLE')"
_AT = "VARIANT_GET(PARSE_JSON(_j), _p)"


def rewrite_contains(node: exp.Expr, query: Query) -> exp.Expr:
    """``@>`` of arrays, of a range, or of JSON and a constant object."""
    found = ranges.contains(node, query)
    if found is not None:
        return found
    if Kind.ARRAY in (query.kind(node.this), query.kind(node.expression)):
        return arrays.array_contains(node, query)
    return _of_json(node, node.this, node.expression, query)


def rewrite_contained_by(node: exp.Expr, query: Query) -> exp.Expr:
    """``<@``: the other way round."""
    found = ranges.contains(node, query)
    if found is not None:
        return found
    if Kind.ARRAY in (query.kind(node.this), query.kind(node.expression)):
        return arrays.array_contained_by(node, query)
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
    return from_template("CASE WHEN _j IS NOT NULL THEN COALESCE(_f, FALSE) END", j=whole, f=found)


def _tests(node: exp.Expr, whole: exp.Expr, path: str, value: Any, query: Query) -> list[exp.Expr]:
    """What must hold at a path for the value to be contained there."""
    kind = "SCHEMA_OF_VARIANT(" + _AT + ")"
    parts = {"j": whole, "p": string(path)}
    if isinstance(value, dict):
        if any(set(key) & set("'\"\\") for key in value):
            raise query.refusal(node, "a key has a quote", "compare by ->>")
        below = [test for key, inner in value.items()
                 for test in _tests(node, whole, f"{path}['{key}']", inner, query)]  # fmt: skip
        return [from_template(f"{kind} LIKE 'OBJECT%'", **parts), *below]
    if value is None:
        return [from_template(f"{kind} = 'VOID'", **parts)]
    if isinstance(value, bool):
        test = f"{kind} = 'BOOLEAN' AND VARIANT_GET(PARSE_JSON(_j), _p, 'boolean') = {value}"
        return [from_template(test, **parts)]
    if isinstance(value, str):
        test = f"{kind} = 'STRING' AND VARIANT_GET(PARSE_JSON(_j), _p, 'string') = _v"
        return [from_template(test, v=string(value), **parts)]
    if isinstance(value, int | Decimal) and abs(value) < 10**18:
        test = (
            f"CASE WHEN {kind} IN {_NUMBERS} OR {kind} LIKE 'DECIMAL%' "
            "THEN TRY_VARIANT_GET(PARSE_JSON(_j), _p, 'decimal(38,18)') = _v ELSE FALSE END"
        )
        return [from_template(test, v=exp.Literal.number(format(value, "f")), **parts)]
    raise query.refusal(node, "only objects, texts and numbers are looked for in JSON",
                        "unnest the array, and compare its elements")  # fmt: skip


CONTAINMENT_RULES: Rules = {
    exp.ArrayContainsAll: rewrite_contains,
    exp.ArrayContainedBy: rewrite_contained_by,
}
