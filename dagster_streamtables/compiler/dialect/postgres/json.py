"""JSON of Postgres, kept in Delta as text: paths, keys, types, and values that are built."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import made, string
from dagster_streamtables.compiler.dialect.rules.query import (
    Query,
    Rule,
    call,
    literal_int,
    literal_text,
)

TEXT = "JSON as text has other spaces, another order of keys, and no trailing zeros in numbers"
_TEXTUAL = (Kind.STRING, Kind.JSON)
_BUILT = (*WHOLE, Kind.DECIMAL, Kind.STRING, Kind.BOOL, Kind.DATE, Kind.JSON)
_EXTRACTS = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)
_SCALAR = (exp.JSONExtractScalar, exp.JSONBExtractScalar)
_SHOWN = "TO_JSON(VARIANT_GET(PARSE_JSON(_j), _p))"
_KEYS = (exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys, exp.JSONBContainsAllTopKeys)
_TYPES = (
    "CASE WHEN {0} IS NULL THEN NULL WHEN {0} LIKE 'OBJECT%' THEN 'object' "
    "WHEN {0} LIKE 'ARRAY%' THEN 'array' WHEN {0} = 'STRING' THEN 'string' "
    "WHEN {0} = 'BOOLEAN' THEN 'boolean' WHEN {0} = 'VOID' THEN 'null' ELSE 'number' END"
)


def extracted(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``->`` and ``->>``, a chain of them at its end, as one path into the text."""
    if isinstance(_around(node), _EXTRACTS) and _around(node).this.unnest() is node:  # type: ignore[union-attr]
        return None  # part of a longer chain
    return _at_path(node, *_chain(node, query), query, as_text=isinstance(node, _SCALAR))


def _at_path(
    node: exp.Expr, root: exp.Expr, steps: list[str], query: Query, *, as_text: bool
) -> exp.Expr:
    query.require(node, root, _TEXTUAL, "this needs JSON", "name a column of JSON as text")
    query.note(TEXT)
    if any(a == "[0]" and b.startswith("[") and b[1] != "'" for a, b in pairwise(steps)):
        raise query.refusal(node, "in Postgres a number or a text is its own first element",
                            "take one element at a time, in a subquery")  # fmt: skip
    value = "VARIANT_GET(PARSE_JSON(_j), _p, 'string')" if as_text else _SHOWN
    found = made(value, j=root, p=string("$" + "".join(steps)))
    if not steps or steps[-1] != "[0]":
        return found
    # A number, a text or a truth value is its own first element; so is the whole of an array.
    before = string("$" + "".join(steps[:-1]))
    kind = "SCHEMA_OF_VARIANT(VARIANT_GET(PARSE_JSON(_j), _p))"
    scalar = f"CASE WHEN {kind} LIKE 'OBJECT%' OR {kind} LIKE 'ARRAY%' THEN _f ELSE {value} END"
    return made(scalar, j=root, p=before, f=found)


def _around(node: exp.Expr) -> exp.Expr | None:
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return around


def _chain(node: exp.Expr, query: Query) -> tuple[exp.Expr, list[str]]:
    """The value that a chain begins with, and the steps from it."""
    inner = node.this.unnest() if isinstance(node, _EXTRACTS) else node
    if not isinstance(node, _EXTRACTS):
        return node, []
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


def _by_path(*, as_text: bool) -> Rule:
    """``jsonb_extract_path(j, 'a', 'b')``."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        root, *keys = node.expressions
        steps = [_step(node, literal_text(each), query, either=True) for each in keys]
        return _at_path(node, root, steps, query, as_text=as_text)

    return rule


def has_key(node: exp.Expr, query: Query) -> exp.Expr:
    """``j ? 'a'``: a key of an object, or a string in an array."""
    query.require(node, node.this, _TEXTUAL, "this needs JSON", "name a column of JSON as text")
    return _has(node.this, node.expression)


def _has(json: exp.Expr, key: exp.Expr) -> exp.Expr:
    kind = "LEFT(LTRIM(_j), 1)"
    template = (
        "CASE WHEN _k IS NULL OR _j IS NULL THEN NULL "
        f"WHEN {kind} = '{{' THEN COALESCE(ARRAY_CONTAINS(JSON_OBJECT_KEYS(_j), _k), FALSE) "
        f"WHEN {kind} = '[' THEN EXISTS(CAST(PARSE_JSON(_j) AS ARRAY<VARIANT>), st_e -> "
        "SCHEMA_OF_VARIANT(st_e) = 'STRING' AND VARIANT_GET(st_e, '$', 'string') = _k) "
        "ELSE COALESCE(SCHEMA_OF_VARIANT(PARSE_JSON(_j)) = 'STRING' "
        "AND VARIANT_GET(PARSE_JSON(_j), '$', 'string') = _k, FALSE) END"
    )
    return made(template, j=json, k=key)


def has_keys(node: exp.Expr, query: Query) -> exp.Expr:
    """``j ?| array`` and ``j ?& array``, of constants."""
    query.require(node, node.this, _TEXTUAL, "this needs JSON", "name a column of JSON as text")
    keys = node.expression.unnest()
    if not isinstance(keys, exp.Array) or not keys.expressions:
        raise query.refusal(node, "the keys must be known", "write ARRAY['a', 'b']")
    parts = [_has(node.this, each) for each in keys.expressions]
    every = isinstance(node, exp.JSONBContainsAllTopKeys)
    return exp.paren(exp.and_(*parts) if every else exp.or_(*parts))


def _length(node: exp.Expr, query: Query) -> exp.Expr:
    """An error for what is no array, as in Postgres."""
    template = (
        "CASE WHEN LEFT(LTRIM(_j), 1) = '[' THEN JSON_ARRAY_LENGTH(_j) "
        "WHEN _j IS NOT NULL THEN CAST('cannot get array length of a non-array' AS INT) END"
    )
    return made(template, j=node.expressions[0])


def _type(node: exp.Expr, query: Query) -> exp.Expr:
    query.require(node, node.expressions[0], _TEXTUAL, "this needs JSON", "name a column of JSON")
    return made(_TYPES.format("SCHEMA_OF_VARIANT(PARSE_JSON(_j))"), j=node.expressions[0])


def value_of(node: exp.Expr, value: exp.Expr, query: Query) -> exp.Expr:
    """A value that Spark writes into JSON as Postgres does.

    Raises:
        InvalidDefinition: Its text would differ: a float, a timestamp, bytes.
    """
    if isinstance(value, exp.Null):
        return exp.cast(value.copy(), "STRING")
    kind = query.require(
        node, value, _BUILT, "Spark writes it differently into JSON",
        "cast it to TEXT or NUMERIC, or use to_char()",
    )  # fmt: skip
    if kind is Kind.DATE:
        return made("CAST(_x AS STRING)", x=value)
    return made("PARSE_JSON(_x)", x=value) if kind is Kind.JSON else value.copy()


def _object(node: exp.Expr, query: Query) -> exp.Expr:
    """``jsonb_build_object('a', x)``: keys with NULL stay."""
    parts = node.expressions
    keys = [literal_text(each) for each in parts[::2]]
    if len(parts) % 2 or None in keys or len(set(keys)) < len(keys):
        raise query.refusal(node, "Spark needs constant keys, each once", "write constant keys")
    query.note(TEXT)
    pairs = [each for key, value in zip(parts[::2], parts[1::2], strict=True)
             for each in (key.copy(), value_of(node, value, query))]  # fmt: skip
    if not pairs:
        return string("{}")
    return made("TO_JSON(_o, MAP('ignoreNullFields', 'false'))", o=call("NAMED_STRUCT", *pairs))


def cast(node: exp.Expr, query: Query) -> exp.Expr:
    """A cast to JSON: of a text that an operator or a function of JSON takes."""
    around = _around(node)
    named = isinstance(around, exp.Anonymous) and "json" in around.name.lower()
    if not named and not isinstance(around, (*_EXTRACTS, *_KEYS)):
        raise query.refusal(
            node, "JSON is text here, whose spaces and order of keys would count",
            "take its parts by ->>, or leave the cast out",
        )  # fmt: skip
    if literal_text(node.this) is not None or query.kind(node.this) in _TEXTUAL:
        return node.this.copy()
    raise query.refusal(node, "this needs a text", "use to_jsonb()")


def _array(node: exp.Expr, query: Query) -> exp.Expr:
    query.note(TEXT)
    template = "TO_JSON(_o, MAP('ignoreNullFields', 'false'))"
    if not node.expressions:
        return string("[]")
    values = [made(template, o=call("NAMED_STRUCT", string("v"), value_of(node, each, query)))
              for each in node.expressions]  # fmt: skip
    # The values may differ in type, so each is written alone, without {"v": and }.
    inner = [made("SUBSTRING(_v, 6, LENGTH(_v) - 6)", v=each) for each in values]
    return call("CONCAT", string("["), call("CONCAT_WS", string(","), *inner), string("]"))


def _to_json(node: exp.Expr, query: Query) -> exp.Expr:
    value = node.expressions[0]
    if query.kind(value) is Kind.JSON:
        return value.copy()
    found = _array(node, query)
    return made("CASE WHEN _x IS NOT NULL THEN SUBSTRING(_v, 2, LENGTH(_v) - 2) END", x=value,
                v=found)  # fmt: skip


RULES: Rules = {
    **dict.fromkeys(_EXTRACTS, extracted),
    exp.JSONBContainsTopKey: has_key, exp.JSONBContainsAnyTopKeys: has_keys,
    exp.JSONBContainsAllTopKeys: has_keys, exp.JSONPath: lambda node, query: None,
    exp.JSONPathRoot: lambda node, query: None, exp.JSONPathKey: lambda node, query: None,
    exp.JSONPathSubscript: lambda node, query: None,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    **{f"{kind}_{name}": rule for kind in ("json", "jsonb") for name, rule in {
        "extract_path": _by_path(as_text=False), "extract_path_text": _by_path(as_text=True),
        "array_length": _length, "typeof": _type, "build_object": _object, "build_array": _array,
    }.items()},
    "to_json": _to_json, "to_jsonb": _to_json,
}  # fmt: skip
