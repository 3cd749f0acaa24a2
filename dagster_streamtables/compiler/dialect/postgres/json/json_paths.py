"""Paths of SQL/JSON in Postgres, in lax mode: ``$.items[*].sku ? (@ > 1)``.

Each step leads from an array of VARIANT, the items found so far, to their members. In lax mode
(SQL:2016, 9.46) a key looks into the elements of an array, and a subscript takes any other value
for an array of itself; a missing member is no item, and no error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.postgres.json.json_text import TEXT, json_of
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    from_template,
    literal_text,
)

_SPACE = re.compile(r"\s*")
_STEP = re.compile(
    r'\s*(?:\.\s*(?:(?P<key>[A-Za-z_]\w*)|"(?P<quoted>[^"\'\\]*)")|\[\s*(?P<at>\d+|last|\*)\s*\])\s*'
)
_METHOD, _FILTER = re.compile(r"\s*\("), re.compile(r"\s*\?\s*\(")
_OPERATOR = re.compile(r"(==|!=|<>|<=|>=|<|>|starts\s+with\b)\s*")
_CONSTANT = re.compile(
    r'(?P<NUMBER>-?\d{1,20}(?:\.\d{1,18})?)(?![\w.])|"(?P<STRING>[^"\\]*)"'
    r"|(?P<BOOLEAN>true|false)\b|(?P<VOID>null)\b"
)
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
_UNKNOWN = "only keys, subscripts, [*], and filters by constants of a lax path are translated"
_ITEM = "st_f"
"""The item that a filter looks at."""
_KIND = "SCHEMA_OF_VARIANT(st_q)"
_TOO_FINE = "CAST('a number of more than 18 digits after the point' AS BOOLEAN)"
_OF_KIND = {
    "STRING": "CASE WHEN {k} = 'STRING' THEN VARIANT_GET(st_q, '$', 'string') {op} _v ",
    "BOOLEAN": "CASE WHEN {k} = 'BOOLEAN' THEN VARIANT_GET(st_q, '$', 'boolean') {op} _v ",
    "VOID": "CASE WHEN {k} = 'VOID' THEN 0 {op} 0 ",
    "NUMBER": (
        "CASE WHEN {k} IN ('DOUBLE', 'FLOAT') "
        "THEN VARIANT_GET(st_q, '$', 'double') {op} CAST(_v AS DOUBLE) "
        f"WHEN {{k}} RLIKE '^DECIMAL[(][0-9]+,(19|2[0-9]|3[0-9])[)]' THEN {_TOO_FINE} "
        "WHEN {k} = 'BIGINT' OR {k} LIKE 'DECIMAL%' "
        "THEN VARIANT_GET(st_q, '$', 'decimal(38, 18)') {op} CAST(_v AS DECIMAL(38, 18)) "
    ),
}


class _UnknownPathError(ValueError):
    """A part of a path that is not translated."""


@dataclass
class _PathReader:
    """Reads a path from left to right, and writes each step over the items found so far."""

    text: str
    at: int = 0

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def _word(self, word: str) -> bool:
        return self._take(re.compile(rf"\s*{re.escape(word)}")) is not None

    def _require(self, word: str) -> None:
        if not self._word(word):
            raise _UnknownPathError

    def items(self, items: exp.Expr, *, filters: bool) -> exp.Expr:
        """What the next steps find in some items."""
        while True:
            step = self._take(_STEP)
            if step is not None:
                if _METHOD.match(self.text, self.at):
                    raise _UnknownPathError
                items = _members(items, step)
            elif filters and self._take(_FILTER):
                holds = self._either()
                items = from_template(f"FILTER({_ELEMENTS}, {_ITEM} -> _c)", s=items, c=holds)
                self._require(")")
                self._take(_SPACE)
            else:
                return items

    def _either(self) -> exp.Expr:
        parts = [self._both()]
        while self._word("||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else exp.or_(*map(exp.paren, parts))

    def _both(self) -> exp.Expr:
        parts = [self._one()]
        while self._word("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else exp.and_(*map(exp.paren, parts))

    def _one(self) -> exp.Expr:
        """Whether a condition is true: a filter omits both false and unknown ones."""
        if self._word("("):
            inner = self._either()
            self._require(")")
            return inner
        exists = self._word("exists")
        if exists:
            self._require("(")
        self._require("@")
        items = self.items(from_template("ARRAY(_v)", v=exp.column(_ITEM)), filters=False)
        if exists:
            self._require(")")
            return from_template("CARDINALITY(_s) > 0", s=items)
        return from_template(f"EXISTS({_ELEMENTS}, st_q -> _t)", s=items, t=self._test())

    def _test(self) -> exp.Expr:
        """An item next to a constant: null differs from all else; other types are not compared."""
        self._take(_SPACE)
        operator, constant = self._take(_OPERATOR), self._take(_CONSTANT)
        if operator is None or constant is None or constant.lastgroup is None:
            raise _UnknownPathError
        kind, text = constant.lastgroup, constant[constant.lastgroup]
        if operator[1].startswith("starts"):
            if kind != "STRING":
                raise _UnknownPathError
            shown = "STARTSWITH(VARIANT_GET(st_q, '$', 'string'), _v)"
            template = f"CASE WHEN {_KIND} = 'STRING' THEN {shown} ELSE FALSE END"
            return from_template(template, v=text)
        name = {"==": "=", "!=": "<>"}.get(operator[1], operator[1])
        template, differs = _OF_KIND[kind].format(k=_KIND, op=name), name == "<>"
        if kind == "VOID":
            return from_template(f"{template} ELSE {str(differs).upper()} END")
        value = {"STRING": exp.Literal.string, "NUMBER": exp.Literal.number}.get(kind)
        constant_ = value(text) if value is not None else exp.Boolean(this=text == "true")
        null = f"WHEN {_KIND} = 'VOID' THEN TRUE " if differs else ""
        return from_template(f"{template} {null} ELSE FALSE END", v=constant_)


def _members(items: exp.Expr, step: re.Match[str]) -> exp.Expr:
    """The members of items by a key, a subscript or ``[*]``."""
    if step["at"] == "*":
        return from_template(_ELEMENTS, s=items)
    if step["at"] is not None:
        found = _FOUND.format("_s", _element(step["at"]))
        return from_template(found, s=items, k=f"$[{step['at']}]")
    key = step["key"] if step["key"] is not None else step["quoted"]
    member = _FOUND.format(_ELEMENTS, "VARIANT_GET(st_p, _k)")
    return from_template(member, s=items, k=f"$['{key}']")


def _element(step: str) -> str:
    itself = " ELSE st_p" if step in ("0", "last") else ""
    inside = "VARIANT_GET(st_p, _k)" if step != "last" else f"TRY_ELEMENT_AT({_LIST}, -1)"
    return f"CASE WHEN {_ARRAY} THEN {inside}{itself} END"


def _items(node: exp.Expr, query: Query) -> exp.Expr:
    """All that a path finds, in order, as an array of VARIANT; NULL of NULL."""
    json, path = _operands(node)
    whole = json_of(node, json, query)
    items = from_template("CASE WHEN _j IS NOT NULL THEN ARRAY(PARSE_JSON(_j)) END", j=whole)
    text = (literal_text(path.this if isinstance(path, exp.Cast) else path) or "").strip()
    rest = re.sub(r"^(lax\s+)?\$", "", text)
    if rest == text:
        raise query.refusal(node, _UNKNOWN, "write a constant, such as '$.a.b[0]'")
    reader = _PathReader(rest)
    try:
        found = reader.items(items, filters=True)
    except _UnknownPathError:
        found = None
    if found is None or reader.at < len(rest):
        raise query.refusal(node, _UNKNOWN, "filter and compute outside of the path")
    return found


def _operands(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return node.expressions[0], node.expressions[1]
    return node.this, node.args["path"] if isinstance(node, exp.JSONValue) else node.expression


def _result(node: exp.Expr, query: Query, *, template: str, shown: bool = False) -> exp.Expr:
    """A template over the items, ``_s``; `shown` if it shows JSON, or a value of it, as text."""
    if isinstance(node, exp.Anonymous) and len(node.expressions) != 2:
        raise query.refusal(node, "variables of a path are not translated",
                            "write their values into the path")  # fmt: skip
    for clause in ("returning", "on_condition"):
        if node.args.get(clause):
            raise query.refusal(node, "clauses after the path are not translated",
                                "cast the text, and use coalesce()")  # fmt: skip
    if shown:
        query.note(TEXT)
    return from_template(template, s=_items(node, query))


_exists = partial(_result, template="CARDINALITY(_s) > 0")
RULES: Rules = {
    exp.JSONBPathExists: _exists,
    exp.JSONValue: partial(_result, template=_ONE.format(_SCALAR), shown=True),
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "jsonb_path_exists": _exists, "json_exists": _exists,
    "jsonb_path_query_first": partial(_result, template=f"TO_JSON({_FIRST})", shown=True),
    "jsonb_path_query_array": partial(_result, template="TO_JSON(_s)", shown=True),
    "json_query": partial(_result, template=_ONE.format(f"TO_JSON({_FIRST})"), shown=True),
}  # fmt: skip
