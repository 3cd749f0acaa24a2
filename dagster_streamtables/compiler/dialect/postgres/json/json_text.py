"""JSON of Postgres, kept in Delta as text: paths, keys, types, casts and equality.

Equal values of jsonb may be written differently: their keys in any order, with any spaces, and
numbers with zeros at their end. Spark compares texts, so both sides are written in one way first.
"""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import pairwise

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    from_template,
    literal_int,
    literal_text,
    outer_node,
    template_rule,
)

_T = exp.DataType.Type
TEXT = "JSON as text has other spaces, another order of keys, and no trailing zeros in numbers"
TEXTUAL = (Kind.STRING, Kind.JSON)
NEEDS_JSON = TEXTUAL, "this needs JSON", "name a column of JSON as text"
EXTRACTS = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)
_SCALAR = (exp.JSONExtractScalar, exp.JSONBExtractScalar)
_SHOWN = "TO_JSON(VARIANT_GET(PARSE_JSON(_j), _p))"
KEYS = (exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys, exp.JSONBContainsAllTopKeys)
KIND = "SCHEMA_OF_VARIANT(PARSE_JSON(_j))"
_TYPES = (
    "CASE WHEN {0} IS NULL THEN NULL WHEN {0} LIKE 'OBJECT%' THEN 'object' "
    "WHEN {0} LIKE 'ARRAY%' THEN 'array' WHEN {0} = 'STRING' THEN 'string' "
    "WHEN {0} = 'BOOLEAN' THEN 'boolean' WHEN {0} = 'VOID' THEN 'null' ELSE 'number' END"
)


def canonical(value: exp.Expr) -> exp.Expr:
    """The one text of equal values of jsonb: keys are sorted, and no number ends in zeros."""
    return from_template("TO_JSON(PARSE_JSON(_j))", j=value)


def extract_path(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``->`` and ``->>``, a chain of them at its end, as one path into the text."""
    around = outer_node(node)
    if isinstance(around, EXTRACTS) and around.this.unnest() is node:
        return None  # part of a longer chain
    return _at_path(node, *_chain(node, query), query, as_text=isinstance(node, _SCALAR))


def _at_path(
    node: exp.Expr, root: exp.Expr, steps: list[str], query: Query, *, as_text: bool
) -> exp.Expr:
    query.require(node, root, *NEEDS_JSON)
    query.note(TEXT)
    if any(a == "[0]" and b.startswith("[") and b[1] != "'" for a, b in pairwise(steps)):
        raise query.refusal(node, "in Postgres a number or a text is its own first element",
                            "take one element at a time, in a subquery")  # fmt: skip
    value = "VARIANT_GET(PARSE_JSON(_j), _p, 'string')" if as_text else _SHOWN
    found = from_template(value, j=root, p="$" + "".join(steps))
    if not steps or steps[-1] != "[0]":
        return found
    # A number, a text or a truth value is its own first element; so is the whole of an array.
    before = "$" + "".join(steps[:-1])
    kind = "SCHEMA_OF_VARIANT(VARIANT_GET(PARSE_JSON(_j), _p))"
    scalar = f"CASE WHEN {kind} LIKE 'OBJECT%' OR {kind} LIKE 'ARRAY%' THEN _f ELSE {value} END"
    return from_template(scalar, j=root, p=before, f=found)


def _chain(node: exp.Expr, query: Query) -> tuple[exp.Expr, list[str]]:
    """The value that a chain begins with, and the steps from it."""
    if not isinstance(node, EXTRACTS):
        return node, []
    inner = node.this.unnest()
    if isinstance(inner, _SCALAR):
        raise query.refusal(node, "->> returns text, which has no parts", "use -> before it")
    root, steps = _chain(inner, query)
    return root, [*steps, *_steps(node, query)]


def _steps(node: exp.Expr, query: Query) -> list[str]:
    key = node.args["expression"]
    if isinstance(key, exp.JSONPath):
        parts = key.expressions[1:]
        return [_step(node, each.this, query) for each in parts]
    text = literal_text(key)
    if isinstance(node, exp.JSONBExtract | exp.JSONBExtractScalar) and text is not None:
        found = re.fullmatch(r"\{([^{}\"\\]*)\}", text)
        if found is None:
            raise query.refusal(node, "the path must be known", "write one such as '{a,b}'")
        return [_step(node, each.strip(), query, either=True) for each in found[1].split(",")]
    index = literal_int(key)
    return [_step(node, index if index is not None else text, query)]


def _step(node: exp.Expr, key: object, query: Query, *, either: bool = False) -> str:
    """One step of a path in Spark's syntax."""
    if isinstance(key, int) or (either and isinstance(key, str) and key.isdigit()):
        if int(key) >= 0 and not either:
            return f"[{key}]"
        raise query.refusal(
            node, "Spark counts elements from the beginning, and never takes a number for a key",
            "use -> with a number of 0 or more",
        )  # fmt: skip
    if not isinstance(key, str) or "'" in key or '"' in key or "\\" in key:
        raise query.refusal(node, "a key that differs by row has no path in Spark",
                            "write a constant key")  # fmt: skip
    return f"['{key}']"


def name_keys(tree: exp.Query) -> None:
    """Write ``j['a'][0]`` as ``j -> 'a' -> 0``: no array has a text as a subscript."""
    for node in reversed(list(tree.find_all(exp.Bracket))):
        key = node.expressions[0]
        inner = isinstance(node.this.unnest(), exp.JSONExtract)
        if len(node.expressions) == 1 and (literal_text(key) is not None or inner):
            arrow = exp.JSONExtract(
                this=node.this.copy(), expression=key.copy(), only_json_types=True
            )
            node.replace(arrow)


def _by_path(node: exp.Expr, query: Query, *, as_text: bool) -> exp.Expr:
    """``jsonb_extract_path(j, 'a', 'b')``."""
    root, *keys = node.expressions
    steps = [_step(node, literal_text(each), query, either=True) for each in keys]
    return _at_path(node, root, steps, query, as_text=as_text)


def has_key(node: exp.Expr, query: Query) -> exp.Expr:
    """``j ? 'a'``: a key of an object, or a string in an array."""
    query.require(node, node.this, *NEEDS_JSON)
    return _has(node.this, node.expression)


def _has(json: exp.Expr, key: exp.Expr) -> exp.Expr:
    template = (
        "CASE WHEN _k IS NULL OR _j IS NULL THEN NULL "
        f"WHEN {KIND} LIKE 'OBJECT%' "
        "THEN COALESCE(ARRAY_CONTAINS(JSON_OBJECT_KEYS(_j), _k), FALSE) "
        f"WHEN {KIND} LIKE 'ARRAY%' THEN EXISTS(CAST(PARSE_JSON(_j) AS ARRAY<VARIANT>), st_e -> "
        "SCHEMA_OF_VARIANT(st_e) = 'STRING' AND VARIANT_GET(st_e, '$', 'string') = _k) "
        f"ELSE COALESCE({KIND} = 'STRING' "
        "AND VARIANT_GET(PARSE_JSON(_j), '$', 'string') = _k, FALSE) END"
    )
    return from_template(template, j=json, k=key)


def has_keys(node: exp.Expr, query: Query) -> exp.Expr:
    """``j ?| array`` and ``j ?& array``, of constants."""
    query.require(node, node.this, *NEEDS_JSON)
    keys = node.expression.unnest()
    if not isinstance(keys, exp.Array) or not keys.expressions:
        raise query.refusal(node, "the keys must be known", "write ARRAY['a', 'b']")
    parts = [_has(node.this, each) for each in keys.expressions]
    every = isinstance(node, exp.JSONBContainsAllTopKeys)
    return exp.paren(exp.and_(*parts) if every else exp.or_(*parts))


_LENGTH = (
    f"CASE WHEN {KIND} LIKE 'ARRAY%' THEN JSON_ARRAY_LENGTH(_j) "
    "WHEN _j IS NOT NULL THEN CAST('cannot get array length of a non-array' AS INT) END"
)


def json_of(node: exp.Expr, value: exp.Expr, query: Query) -> exp.Expr:
    """A copy of a value that Postgres reads as JSON; any other is refused."""
    text = literal_text(value)
    if text is not None:
        try:
            json.loads(text)
        except ValueError:
            raise query.refusal(node, f"{text!r} is no JSON", "write a text as '\"a\"'") from None
        return value.copy()
    query.require(node, value, TEXTUAL, "this needs JSON", "use to_jsonb()")
    return value.copy()


def cast(node: exp.Expr, query: Query) -> exp.Expr:
    """A cast of a text to JSON."""
    value = node.this
    if query.kind(value) not in TEXTUAL:
        raise query.refusal(node, "this needs a text", "use to_jsonb()")
    outer = outer_node(node)
    named = isinstance(outer, exp.Anonymous) and "json" in outer.name.lower()
    if named or isinstance(outer, (*EXTRACTS, *KEYS)):
        return value.copy()  # it is read there
    query.note(TEXT)
    if node.args["to"].this is _T.JSON:
        return from_template("CASE WHEN PARSE_JSON(_j) IS NOT NULL THEN _j END", j=value)
    return canonical(value)


_NUMBER = "CAST(NULLIF(_j, 'null') AS DECIMAL(38, 18))"
_FROM_JSON = {
    _T.BOOLEAN: "CASE WHEN _j IS NULL OR _j = 'null' THEN NULL WHEN _j = 'true' THEN TRUE WHEN "
    "_j = 'false' THEN FALSE ELSE CAST(CAST('this is no truth value' AS INT) AS BOOLEAN) END",
    **dict.fromkeys((_T.DOUBLE, _T.FLOAT), "CAST(NULLIF(_j, 'null') AS {})"),
    **dict.fromkeys((_T.SMALLINT, _T.INT, _T.BIGINT), f"CAST(ROUND({_NUMBER}, 0) AS {{}})"),
    _T.DECIMAL: f"CAST({_NUMBER} AS {{}})",
}


def cast_from(node: exp.Expr, query: Query) -> exp.Expr:
    """A cast of JSON: to a text, or of one number or truth value. ``null`` is NULL."""
    target, value = node.args["to"], node.this
    if target.this in (_T.TEXT, _T.VARCHAR) and not target.expressions:
        query.note(TEXT)
        return value.copy()
    template = _FROM_JSON.get(target.this)
    if template is None:
        raise query.refusal(node, "JSON has texts, numbers and truth values", "take it by ->>")
    if target.this is _T.DECIMAL and not target.expressions:
        query.note("NUMERIC without digits is DECIMAL(38, 18)")
        template = _NUMBER
    return from_template(template.format(target.sql("spark")), j=value)


def compare_json(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``j -> 'a' = '1.0'``, ``IS DISTINCT FROM`` and ``IN``; None if no side is JSON."""
    sides = [node.this, *(node.expressions or [node.expression])]
    if not any(query.kind(each) is Kind.JSON for each in sides if isinstance(each, exp.Expr)):
        return None
    if isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between):
        raise order_error(node, query)
    left, *others = (canonical(json_of(node, each, query)) for each in sides)
    if isinstance(node, exp.In):
        return exp.paren(exp.In(this=left, expressions=others))
    return exp.paren(type(node)(this=left, expression=others[0]))


def order_error(node: exp.Expr, query: Query) -> Exception:
    """The error for JSON that is put in an order."""
    return query.refusal(node, "Postgres orders JSON by types and sizes, and Spark by its text",
                         "take its parts by ->>")  # fmt: skip


RULES: Rules = {
    **dict.fromkeys(EXTRACTS, extract_path),
    exp.JSONBContainsTopKey: has_key, exp.JSONBContainsAnyTopKeys: has_keys,
    exp.JSONBContainsAllTopKeys: has_keys,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    **{f"{kind}_{name}": rule for kind in ("json", "jsonb") for name, rule in {
        "extract_path": partial(_by_path, as_text=False),
        "extract_path_text": partial(_by_path, as_text=True),
        "array_length": template_rule(_LENGTH, "j"),
        "typeof": template_rule(_TYPES.format(KIND), "j", needs=NEEDS_JSON),
    }.items()},
}  # fmt: skip
