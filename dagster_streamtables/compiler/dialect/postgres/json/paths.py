"""Paths of SQL/JSON in Postgres: ``$.items[*].sku``, in lax mode.

A path is followed by arrays of VARIANT, each step from the items that it found to their members.
In lax mode (SQL:2016, 9.46) a key looks into the elements of an array, and a subscript takes what
is no array for an array of itself; what is not there is no item, and no error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from dagster_streamtables.compiler.dialect.postgres.json.compared import json_of
from dagster_streamtables.compiler.dialect.postgres.json.keys import TEXT
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import made, string
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule, literal_text

_STEP = re.compile(
    r'\s*(?:\.\s*(?:(?P<key>[A-Za-z_]\w*)|"(?P<quoted>[^"\'\\]*)")|\[\s*(?P<at>\d+|last|\*)\s*\])\s*'
)
_METHOD = re.compile(r"\s*\(")
_ARRAY = "SCHEMA_OF_VARIANT(st_p) LIKE 'ARRAY%'"
_LIST = "CAST(st_p AS ARRAY<VARIANT>)"
_ELEMENTS = f"FLATTEN(TRANSFORM(_s, st_p -> CASE WHEN {_ARRAY} THEN {_LIST} ELSE ARRAY(st_p) END))"
_FOUND = "FILTER(TRANSFORM({}, st_p -> {}), st_p -> st_p IS NOT NULL)"
_ONE = "CASE WHEN CARDINALITY(_s) = 1 THEN {} END"
_FIRST = "GET(_s, 0)"
_SCALAR = (
    "GET(TRANSFORM(_s, st_p -> CASE WHEN SCHEMA_OF_VARIANT(st_p) LIKE 'OBJECT%' "
    f"OR {_ARRAY} THEN NULL WHEN SCHEMA_OF_VARIANT(st_p) = 'BOOLEAN' "
    "THEN LEFT(VARIANT_GET(st_p, '$', 'string'), 1) ELSE VARIANT_GET(st_p, '$', 'string') END), 0)"
)
"""Of a truth value Postgres returns the first letter."""
_UNKNOWN = "only keys, subscripts and [*] of a lax path are translated"


def _steps(node: exp.Expr, path: exp.Expr, query: Query) -> Iterator[tuple[str, str]]:
    """The key or the subscript of each step, and which of both it is."""
    text = (literal_text(path.this if isinstance(path, exp.Cast) else path) or "").strip()
    rest = re.sub(r"^(lax\s+)?\$", "", text)
    if rest == text:
        raise query.refusal(node, _UNKNOWN, "write a constant, such as '$.a.b[0]'")
    while rest:
        found = _STEP.match(rest)
        if found is None or _METHOD.match(rest, found.end()):
            raise query.refusal(node, _UNKNOWN, "filter and compute outside of the path")
        key = found["key"] if found["key"] is not None else found["quoted"]
        yield ("key", key) if key is not None else ("at", found["at"])
        rest = rest[found.end() :]


def _items(node: exp.Expr, query: Query) -> exp.Expr:
    """All that a path finds, in order, as an array of VARIANT; NULL of NULL."""
    json, path = _operands(node)
    whole = json_of(node, json, query)
    items = made("CASE WHEN _j IS NOT NULL THEN ARRAY(PARSE_JSON(_j)) END", j=whole)
    for kind, step in _steps(node, path, query):
        if step == "*" and kind == "at":
            items = made(_ELEMENTS, s=items)
        elif kind == "key":
            member = _FOUND.format(_ELEMENTS, "VARIANT_GET(st_p, _k)")
            items = made(member, s=items, k=string(f"$['{step}']"))
        else:
            items = made(_FOUND.format("_s", _element(step)), s=items, k=string(f"$[{step}]"))
    return items


def _element(step: str) -> str:
    itself = " ELSE st_p" if step in ("0", "last") else ""
    inside = "VARIANT_GET(st_p, _k)" if step != "last" else f"TRY_ELEMENT_AT({_LIST}, -1)"
    return f"CASE WHEN {_ARRAY} THEN {inside}{itself} END"


def _operands(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return node.expressions[0], node.expressions[1]
    return node.this, node.args["path"] if isinstance(node, exp.JSONValue) else node.expression


def _result(template: str, *, shown: bool = False) -> Rule:
    """
    Args:
        template: Over the items, ``_s``.
        shown: Whether it shows JSON, or a value of it, as text.
    """

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and len(node.expressions) != 2:
            raise query.refusal(node, "variables of a path are not translated",
                                "write their values into the path")  # fmt: skip
        for clause in ("returning", "on_condition"):
            if node.args.get(clause):
                raise query.refusal(node, "clauses after the path are not translated",
                                    "cast the text, and use coalesce()")  # fmt: skip
        if shown:
            query.note(TEXT)
        return made(template, s=_items(node, query))

    return rule


_exists = _result("CARDINALITY(_s) > 0")
RULES: Rules = {
    exp.JSONBPathExists: _exists, exp.JSONValue: _result(_ONE.format(_SCALAR), shown=True),
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "jsonb_path_exists": _exists, "json_exists": _exists,
    "jsonb_path_query_first": _result(f"TO_JSON({_FIRST})", shown=True),
    "jsonb_path_query_array": _result("TO_JSON(_s)", shown=True),
    "json_query": _result(_ONE.format(f"TO_JSON({_FIRST})"), shown=True),
}  # fmt: skip
