"""Paths of SQL/JSON in Postgres, in lax mode: ``$.items[*].sku ? (@ > 1)``.

A path is read into steps and the conditions of its filters. Arrays of VARIANT follow it, each step
from the items found so far to their members. In lax mode (SQL:2016, 9.46) a key looks into the
elements of an array, and a subscript takes any other value for an array of itself; a missing member
is no item, and no error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from dagster_streamtables.compiler.dialect.postgres.json.json_text import TEXT, json_of
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    from_template,
    literal_text,
    string,
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


class PathKey(NamedTuple):
    name: str


class PathSubscript(NamedTuple):
    place: str
    """A number, ``last`` or ``*``."""


class PathTest(NamedTuple):
    operator: str
    """As in Spark, or ``starts with``."""
    kind: str
    text: str


class PathCondition(NamedTuple):
    """Some item of a path passes a test, or exists."""

    path: list[Step]
    test: PathTest | None


class ConditionGroup(NamedTuple):
    all: bool
    parts: list[Condition]


class PathFilter(NamedTuple):
    condition: Condition


Condition = PathCondition | ConditionGroup
Step = PathKey | PathSubscript | PathFilter


class _UnknownPathError(ValueError):
    """A part of a path that is not translated."""


def read(text: str) -> list[Step] | None:
    """The steps of a path after its ``$``; None if it has others than `Step`.

    >>> read(".a[*]"), read(".a.size()")
    ([PathKey(name='a'), PathSubscript(place='*')], None)
    """
    reader = _PathReader(text)
    try:
        steps = reader.steps(filters=True)
    except _UnknownPathError:
        return None
    return steps if reader.at == len(text) else None


@dataclass
class _PathReader:
    text: str
    at: int = 0

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def _word(self, word: str) -> bool:
        self._take(_SPACE)
        return self._take(re.compile(re.escape(word))) is not None

    def _require(self, word: str) -> None:
        if not self._word(word):
            raise _UnknownPathError

    def steps(self, *, filters: bool) -> list[Step]:
        found: list[Step] = []
        while True:
            step = self._take(_STEP)
            if step is not None:
                if _METHOD.match(self.text, self.at):
                    raise _UnknownPathError
                key = step["key"] if step["key"] is not None else step["quoted"]
                found.append(PathKey(key) if key is not None else PathSubscript(step["at"]))
            elif filters and self._take(_FILTER):
                found.append(PathFilter(self._either()))
                self._require(")")
                self._take(_SPACE)
            else:
                return found

    def _either(self) -> Condition:
        parts = [self._both()]
        while self._word("||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else ConditionGroup(all=False, parts=parts)

    def _both(self) -> Condition:
        parts = [self._one()]
        while self._word("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else ConditionGroup(all=True, parts=parts)

    def _one(self) -> Condition:
        if self._word("("):
            inner = self._either()
            self._require(")")
            return inner
        if self._word("exists"):
            self._require("(")
            self._require("@")
            found = PathCondition(self.steps(filters=False), None)
            self._require(")")
            return found
        self._require("@")
        return PathCondition(self.steps(filters=False), self._test())

    def _test(self) -> PathTest:
        self._take(_SPACE)
        operator, constant = self._take(_OPERATOR), self._take(_CONSTANT)
        if operator is None or constant is None or constant.lastgroup is None:
            raise _UnknownPathError
        name, kind = re.sub(r"\s+", " ", operator[1]), constant.lastgroup
        if name == "starts with" and kind != "STRING":
            raise _UnknownPathError
        return PathTest({"==": "=", "!=": "<>"}.get(name, name), kind, constant[kind])


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


def _path(node: exp.Expr, path: exp.Expr, query: Query) -> list[Step]:
    text = (literal_text(path.this if isinstance(path, exp.Cast) else path) or "").strip()
    rest = re.sub(r"^(lax\s+)?\$", "", text)
    if rest == text:
        raise query.refusal(node, _UNKNOWN, "write a constant, such as '$.a.b[0]'")
    steps = read(rest)
    if steps is None:
        raise query.refusal(node, _UNKNOWN, "filter and compute outside of the path")
    return steps


def _items(node: exp.Expr, query: Query) -> exp.Expr:
    """All that a path finds, in order, as an array of VARIANT; NULL of NULL."""
    json, path = _operands(node)
    whole = json_of(node, json, query)
    items = from_template("CASE WHEN _j IS NOT NULL THEN ARRAY(PARSE_JSON(_j)) END", j=whole)
    return _follow_steps(items, _path(node, path, query))


def _follow_steps(items: exp.Expr, steps: list[Step]) -> exp.Expr:
    for step in steps:
        if isinstance(step, PathFilter):
            holds = _holds(step.condition)
            items = from_template(f"FILTER({_ELEMENTS}, {_ITEM} -> _c)", s=items, c=holds)
        elif isinstance(step, PathKey):
            member = _FOUND.format(_ELEMENTS, "VARIANT_GET(st_p, _k)")
            items = from_template(member, s=items, k=string(f"$['{step.name}']"))
        elif step.place == "*":
            items = from_template(_ELEMENTS, s=items)
        else:
            found = _FOUND.format("_s", _element(step.place))
            items = from_template(found, s=items, k=string(f"$[{step.place}]"))
    return items


def _holds(condition: Condition) -> exp.Expr:
    """Whether a condition is true: what is false and what is unknown are both left out."""
    if isinstance(condition, ConditionGroup):
        parts = [exp.paren(_holds(each)) for each in condition.parts]
        return exp.and_(*parts) if condition.all else exp.or_(*parts)
    items = _follow_steps(from_template("ARRAY(_v)", v=exp.column(_ITEM)), condition.path)
    if condition.test is None:
        return from_template("CARDINALITY(_s) > 0", s=items)
    return from_template(
        f"EXISTS({_ELEMENTS}, st_q -> _t)", s=items, t=_compare_item(condition.test)
    )


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


def _compare_item(test: PathTest) -> exp.Expr:
    """An item next to a constant: null differs from all else; other types are not compared."""
    if test.operator == "starts with":
        shown = "STARTSWITH(VARIANT_GET(st_q, '$', 'string'), _v)"
        return from_template(
            f"CASE WHEN {_KIND} = 'STRING' THEN {shown} ELSE FALSE END", v=string(test.text)
        )
    differs = test.operator == "<>"
    template = _OF_KIND[test.kind].format(k=_KIND, op=test.operator)
    if test.kind == "VOID":
        return from_template(f"{template} ELSE {str(differs).upper()} END")
    value = {"STRING": string, "NUMBER": exp.Literal.number}.get(test.kind)
    constant = value(test.text) if value is not None else exp.Boolean(this=test.text == "true")
    null = f"WHEN {_KIND} = 'VOID' THEN TRUE " if differs else ""
    return from_template(f"{template} {null} ELSE FALSE END", v=constant)


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
        return from_template(template, s=_items(node, query))

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
