"""JSON of Postgres that is changed: keys and elements set, removed, or merged; nulls stripped.

Spark has no function that walks through all of a JSON value, so nulls are stripped from its text,
as Spark writes it, without spaces. Each string in it is matched as a whole, and kept, so that
nothing inside a string is taken for JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres.json.json_text import (
    KIND,
    TEXT,
    TEXTUAL,
    canonical,
    json_of,
)
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    from_template,
    literal_text,
)

_MAP, _LIST = "CAST({} AS MAP<STRING, VARIANT>)", "CAST({} AS ARRAY<VARIANT>)"
_WHOLE = "PARSE_JSON(_j)"
_NO_SCALAR = "CAST(CAST('this needs an object or an array' AS INT) AS {})"
_INDEX = re.compile(r"-?\d+")
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MEMBER, _ELEMENT = rf"{_STRING}:null", r"(?<=[\[,])null"
_COMMAS = r"(?<=[{\[]),+|,+(?=[,}\]])"
"""The commas next to a null that was stripped."""


def less(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``j - 'a'``, ``j - 0`` and ``j - ARRAY['a', 'b']``; None if the left side is no JSON."""
    key = node.expression
    kind = query.kind(key)
    if query.kind(node.this) not in TEXTUAL or kind not in (*WHOLE, Kind.STRING, Kind.ARRAY):
        return None
    query.note(TEXT)
    if kind in WHOLE:
        elements = _LIST.format(_WHOLE)
        place = f"CASE WHEN _k < 0 THEN CARDINALITY({elements}) + _k ELSE _k END"
        kept = f"FILTER({elements}, (st_e, st_i) -> st_i <> {place})"
        without = (
            f"CASE WHEN {KIND} LIKE 'ARRAY%' THEN TO_JSON({kept}) "
            f"WHEN _j IS NOT NULL THEN {_NO_SCALAR.format('STRING')} END"
        )
        return from_template(without, j=node.this, k=key)
    found = "ARRAY_CONTAINS(_k, {})" if kind is Kind.ARRAY else "{} = _k"
    kept = f"MAP_FILTER({_MAP.format(_WHOLE)}, (st_k, st_v) -> NOT {found.format('st_k')})"
    text = found.format("VARIANT_GET(st_e, '$', 'string')")
    rest = (
        f"FILTER({_LIST.format(_WHOLE)}, st_e -> NOT "
        f"CASE WHEN SCHEMA_OF_VARIANT(st_e) = 'STRING' THEN {text} ELSE FALSE END)"
    )
    template = (
        f"CASE WHEN _k IS NULL THEN NULL WHEN {KIND} LIKE 'OBJECT%' "
        f"THEN TO_JSON(TO_VARIANT_OBJECT({kept})) WHEN {KIND} LIKE 'ARRAY%' THEN TO_JSON({rest}) "
        f"WHEN _j IS NOT NULL THEN {_NO_SCALAR.format('STRING')} END"
    )
    return from_template(template, j=node.this, k=key)


def merge_json(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``a || b``: the keys of both objects, or the elements of both arrays; any other value is an
    array of itself. None if no side is JSON."""
    kinds = [query.kind(each) for each in (node.this, node.expression)]
    if Kind.JSON not in kinds:
        return None
    for each, kind in zip((node.this, node.expression), kinds, strict=True):
        if kind is not Kind.JSON and literal_text(each) is None:
            raise query.refusal(node, "|| merges JSON, and joins texts",
                                "cast both to JSONB, or write concat() for texts")  # fmt: skip
    query.note(TEXT)
    a, b = (json_of(node, each, query) for each in (node.this, node.expression))
    own = _MAP.format("PARSE_JSON(_a)")
    others = _MAP.format("PARSE_JSON(_b)")
    left = f"MAP_FILTER({own}, (st_k, st_v) -> NOT MAP_CONTAINS_KEY({others}, st_k))"
    lists = ", ".join(
        f"CASE WHEN SCHEMA_OF_VARIANT(PARSE_JSON({each})) LIKE 'ARRAY%' "
        f"THEN {_LIST.format(f'PARSE_JSON({each})')} ELSE ARRAY(PARSE_JSON({each})) END"
        for each in ("_a", "_b")
    )
    template = (
        "CASE WHEN _a IS NULL OR _b IS NULL THEN NULL "
        "WHEN SCHEMA_OF_VARIANT(PARSE_JSON(_a)) LIKE 'OBJECT%' "
        "AND SCHEMA_OF_VARIANT(PARSE_JSON(_b)) LIKE 'OBJECT%' "
        f"THEN TO_JSON(TO_VARIANT_OBJECT(MAP_CONCAT({left}, {others}))) "
        f"ELSE TO_JSON(CONCAT({lists})) END"
    )
    return from_template(template, a=a, b=b)


@dataclass(frozen=True)
class _Change:
    """A change at the end of a path, whose keys are the operands ``_k0``, ``_k1`` and so on."""

    keys: Sequence[str]
    deletes: bool = False
    creates: bool = False
    inserts: str = ""
    """Whether it inserts ``before`` or ``after`` an element; a key that exists is an error."""

    def at(self, value: str, depth: int = 0) -> str:
        """The value with the change in it, as a VARIANT."""
        kind = f"SCHEMA_OF_VARIANT({value})"
        key = self.keys[depth]
        in_list = self._in_list(value, depth, int(key)) if _INDEX.fullmatch(key) else (
            _NO_SCALAR.format("VARIANT"))  # fmt: skip
        other = _NO_SCALAR.format("VARIANT") if depth == 0 else value
        return (
            f"CASE WHEN {kind} LIKE 'OBJECT%' THEN {self._in_object(value, depth)} "
            f"WHEN {kind} LIKE 'ARRAY%' THEN {in_list} ELSE {other} END"
        )

    def _last(self, depth: int) -> bool:
        return depth == len(self.keys) - 1

    def _inner(self, value: str, depth: int) -> str:
        return "PARSE_JSON(_n)" if self._last(depth) else f"({self.at(value, depth + 1)})"

    def _in_object(self, value: str, depth: int) -> str:
        whole, key = _MAP.format(value), f"_k{depth}"
        rest = f"MAP_FILTER({whole}, (st_k{depth}, st_v{depth}) -> st_k{depth} <> {key})"
        if self.deletes and self._last(depth):
            return f"TO_VARIANT_OBJECT({rest})"
        inner = self._inner(f"ELEMENT_AT({whole}, {key})", depth)
        changed = f"TO_VARIANT_OBJECT(MAP_CONCAT({rest}, MAP({key}, {inner})))"
        if self.inserts and self._last(depth):
            no = "CAST(CAST('cannot replace existing key' AS INT) AS VARIANT)"
            return f"CASE WHEN MAP_CONTAINS_KEY({whole}, {key}) THEN {no} ELSE {changed} END"
        if self.creates and self._last(depth):
            return changed
        return f"CASE WHEN MAP_CONTAINS_KEY({whole}, {key}) THEN {changed} ELSE {value} END"

    def _in_list(self, value: str, depth: int, index: int) -> str:
        whole = _LIST.format(value)
        place = str(index) if index >= 0 else f"(CARDINALITY({whole}) - {-index})"
        each, at = f"st_e{depth}", f"st_i{depth}"
        if self.deletes and self._last(depth):
            return f"CAST(FILTER({whole}, ({each}, {at}) -> {at} <> {place}) AS VARIANT)"
        inner = self._inner(each, depth)
        changed = (
            f"CAST(TRANSFORM({whole}, ({each}, {at}) -> "
            f"CASE WHEN {at} = {place} THEN {inner} ELSE {each} END) AS VARIANT)"
        )
        if self.inserts and self._last(depth):
            changed = self._insert_element(whole, place)
        if not self.creates or not self._last(depth):
            return changed
        parts = [whole, f"ARRAY({inner})"] if index >= 0 else [f"ARRAY({inner})", whole]
        outside = f"{place} NOT BETWEEN 0 AND CARDINALITY({whole}) - 1"
        more = f"CAST(CONCAT({', '.join(parts)}) AS VARIANT)"
        return f"CASE WHEN {outside} THEN {more} ELSE {changed} END"

    def _insert_element(self, whole: str, place: str) -> str:
        begin = f"({place} + {1 if self.inserts == 'after' else 0})"
        rest = f"SLICE({whole}, {begin} + 1, CARDINALITY({whole}) - {begin})"
        parts = f"SLICE({whole}, 1, {begin}), ARRAY(PARSE_JSON(_n)), {rest}"
        return f"CAST(CONCAT({parts}) AS VARIANT)"


def _keys(node: exp.Expr, path: exp.Expr, query: Query) -> list[str]:
    text = literal_text(path.this if isinstance(path, exp.Cast) else path)
    found = re.fullmatch(r"\{([^{}\"\\]*)\}", text or "")
    if found is not None:
        return [each.strip() for each in found[1].split(",") if each.strip()]
    parts = [literal_text(each) for each in path.expressions] if isinstance(path, exp.Array) else []
    if not parts or None in parts:
        raise query.refusal(node, "the path must be known", "write one such as '{a,b}'")
    return [each for each in parts if each is not None]


def _apply_change(
    node: exp.Expr, query: Query, json: exp.Expr, change: _Change, new: exp.Expr | None = None
) -> exp.Expr:
    whole = json_of(node, json, query)
    query.note(TEXT)
    if not change.keys:
        return canonical(whole)
    operands: dict[str, exp.Expr | str] = {f"k{at}": key for at, key in enumerate(change.keys)}
    some = "_j IS NOT NULL"
    if new is not None:
        operands["n"] = json_of(node, new, query)
        some += " AND _n IS NOT NULL"
    template = f"CASE WHEN {some} THEN TO_JSON({change.at(_WHOLE)}) END"
    return from_template(template, j=whole, **operands)


def without(node: exp.Expr, query: Query) -> exp.Expr:
    """``j #- '{a,b}'``."""
    keys = _keys(node, node.expression, query)
    return _apply_change(node, query, node.this, _Change(keys, deletes=True))


def _set(node: exp.Expr, query: Query) -> exp.Expr:
    """``jsonb_set(j, '{a,b}', value, create)``."""
    json, path, new, *rest = node.expressions
    creates = not rest or _constant_flag(node, rest[0], "creates the key", query)
    keys = _keys(node, path, query)
    return _apply_change(node, query, json, _Change(keys, creates=creates), new)


def _insert(node: exp.Expr, query: Query) -> exp.Expr:
    """``jsonb_insert(j, '{a,0}', value, after)``."""
    json, path, new, *rest = node.expressions
    after = bool(rest) and _constant_flag(node, rest[0], "inserts after the element", query)
    change = _Change(_keys(node, path, query), creates=True, inserts="after" if after else "before")
    return _apply_change(node, query, json, change, new)


def _constant_flag(node: exp.Expr, value: exp.Expr, what: str, query: Query) -> bool:
    if not isinstance(value, exp.Boolean):
        raise query.refusal(node, f"whether it {what} must be known", "write true or false")
    return bool(value.this)


def _strip_nulls(node: exp.Expr, query: Query) -> exp.Expr:
    """``jsonb_strip_nulls(j, in_arrays)``."""
    json, *rest = node.expressions
    if rest and not isinstance(rest[0], exp.Boolean):
        raise query.refusal(node, "whether it strips arrays must be known", "write true or false")
    query.note(TEXT)
    nulls = f"{_MEMBER}|{_ELEMENT}" if rest and rest[0].this else _MEMBER
    found = canonical(json_of(node, json, query))
    for pattern in (nulls, _COMMAS):
        found = from_template("REGEXP_REPLACE(_j, _p, _r)", j=found,
                     p=f"(?s){pattern}|({_STRING})", r="$1")  # fmt: skip
    return found


RULES: Rules = {exp.JSONBDeleteAtPath: without}
CALLS: dict[str, Rule] = {
    "jsonb_set": _set, "jsonb_insert": _insert,
    **dict.fromkeys(("jsonb_strip_nulls", "json_strip_nulls"), _strip_nulls),
}  # fmt: skip
