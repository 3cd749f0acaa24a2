"""Casts of Postgres to its types: UUID, BYTEA, and arrays, one element after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import WHOLE, Kind
from dagster_streamtables.compiler.dialect.kinds.kind_inference import results
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
    literal_text,
    template_rule,
)

_T = exp.DataType.Type
_JSON = (_T.JSON, _T.JSONB)
_BY_CAST = (*_JSON, _T.INTERVAL, _T.TIME, _T.UUID, _T.VARBINARY, _T.ARRAY)
_UUID = r"([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}"


NEEDS_TEXT = (Kind.STRING,), "this needs a text", "cast it to TEXT"
TO_UUID = template_rule(
    "CASE WHEN _s IS NULL THEN NULL WHEN _s RLIKE _p THEN REGEXP_REPLACE(LOWER("
    "REGEXP_REPLACE(_s, '[{}-]', '')), '^(.{8})(.{4})(.{4})(.{4})(.{12})$', "
    "'$1-$2-$3-$4-$5') ELSE CAST(CAST('this is no UUID' AS INT) AS STRING) END",
    "s", needs=NEEDS_TEXT, p=rf"^(\{{{_UUID}\}}|{_UUID})\z",
)  # fmt: skip
"""A cast to UUID: its text in lower case, with its hyphens (RFC 9562, 4)."""
TO_BYTES = template_rule(
    "CASE WHEN CONTAINS(_s, CHR(92)) "
    "THEN CAST(CAST(CAST('a backslash is an escape' AS INT) AS STRING) AS BINARY) "
    "ELSE ENCODE(_s, 'UTF-8') END",
    "s", needs=NEEDS_TEXT,
)  # fmt: skip
"""A cast to BYTEA of a text without backslashes, which Postgres would read as escapes."""


def type_(node: exp.Expr, query: Query) -> None:
    """A type that Delta does not have is left to the cast around it, or to the function that
    declares a column of it."""
    around = node.parent
    while isinstance(around, exp.DataType) and around.is_type(_T.ARRAY):
        around = around.parent
    by_cast = node.args["this"] in _BY_CAST and isinstance(around, exp.Cast)
    declared = node.args["this"] in _JSON and isinstance(around, exp.Kwarg)
    if not by_cast and not declared:
        COMMON.rewrites[exp.DataType](node, query)


_ONE_DIMENSION = "Spark's arrays have one dimension, from 1"
_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^{}",\\]|\\.)+?))\s*(,|$)', re.DOTALL)
_ELEMENT_NAME = "st_e"
_CALLED = "the cast to an array"
_UNDECLARED = "DECIMAL(38, 18)"
_JOINED_ALIKE = (*WHOLE, Kind.STRING, Kind.DATE, Kind.LOCAL)
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
_FLOAT = re.compile(rf"{_DECIMAL.pattern}([eE][+-]?\d+)?")
_DATE = re.compile(r"(?!0000)\d{4}-\d\d-\d\d")
WHOLE_NUMBER = re.compile(r"[+-]?\d+")
_TEXTS = (_T.TEXT, _T.VARCHAR)
_READ_ALIKE = {
    **dict.fromkeys((_T.SMALLINT, _T.INT, _T.BIGINT), WHOLE_NUMBER),
    _T.DECIMAL: _DECIMAL,
    **dict.fromkeys((_T.FLOAT, _T.DOUBLE), _FLOAT),
    _T.BOOLEAN: re.compile("t|f|true|false", re.IGNORECASE),
    _T.DATE: _DATE,
    _T.TIMESTAMPNTZ: re.compile(rf"{_DATE.pattern}( \d\d:\d\d:\d\d(\.\d{{1,6}})?)?"),
    _T.UUID: re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
}
"""The texts that mean the same in both, by the type of the cast."""


def cast_array(node: exp.Expr, query: Query, single: Rule) -> exp.Expr | None:
    """A cast to an array type; `single` is the rule for the cast of one value."""
    of, value = node.args["to"].expressions[0], node.this.unnest()
    if of.is_type(_T.ARRAY):
        raise query.refusal(node, _ONE_DIMENSION, "write int[] for int[][]", called=_CALLED)
    if isinstance(value, exp.Null):
        return _to_array_type(exp.null(), of)
    if isinstance(value, exp.Array) or value.is_string:
        elements = value.expressions if isinstance(value, exp.Array) else _read(node, of, query)
        array = call("ARRAY", *[_cast_one(each, of, query, single) for each in elements])
        return array if array.expressions and _is_plain_numeric(of) else _to_array_type(array, of)
    if query.kind(value) is not Kind.ARRAY:
        raise query.refusal(node, "Spark reads no arrays from texts that differ by row",
                            "write string_to_array(s, ',')::int[]", called=_CALLED)  # fmt: skip
    return _each_cast(node, value, of, query, single)


def _to_array_type(value: exp.Expr, of: exp.DataType) -> exp.Expr:
    """A cast to an array in Spark."""
    spark = "string" if of.is_type(_T.UUID) else of.sql("spark")
    return from_template(
        f"CAST(_a AS ARRAY<{_UNDECLARED if _is_plain_numeric(of) else spark}>)", a=value
    )


def _is_plain_numeric(of: exp.DataType) -> bool:
    """Whether it is NUMERIC, whose elements have the digits that the cast of each gives them."""
    return of.is_type(_T.DECIMAL) and not of.expressions


def _cast_one(value: exp.Expr, of: exp.DataType, query: Query, single: Rule) -> exp.Expr:
    """An element of ARRAY[…] or of a text; Postgres also casts each on its own."""
    one = exp.Cast(this=value.copy(), to=of.copy())
    if isinstance(value, exp.Null):
        return one
    query.kinds.carry(value, one.this)
    return single(one, query) or one


def _each_cast(
    node: exp.Expr, value: exp.Expr, of: exp.DataType, query: Query, single: Rule
) -> exp.Expr:
    kind = query.kinds.element(node.this)
    if kind is Kind.UNKNOWN or (kind is Kind.DECIMAL and of.this in _TEXTS):
        why = "the type of its elements, or how many digits they have, is not known"
        fix = "cast each: array_agg(n::text), or ARRAY[n::text]"
        raise query.refusal(node, why, fix, called=_CALLED)
    element = exp.column(_ELEMENT_NAME)
    query.kinds.declare(element, kind)
    one = exp.Cast(this=element, to=of.copy())
    found = single(one, query)
    if found is None and one.this is element:
        return _to_array_type(value, of)
    changed = from_template(
        f"TRANSFORM(_a, {_ELEMENT_NAME} -> {(found or one).sql('streamtables')})", a=value
    )
    return changed if _is_plain_numeric(of) else _to_array_type(changed, of)


def read_empty_arrays(node: exp.Expr, query: Query) -> None:
    """``coalesce(array, '{}')``: the text is an array of the same type."""
    for each in results(node) if query.kind(node) is Kind.ARRAY else ():
        text = literal_text(each)
        if text is None:
            continue
        if re.sub(r"\s", "", text) != "{}":
            raise query.refusal(node, "Spark has no arrays as texts", "write ARRAY[…]")
        each.replace(exp.Anonymous(this="ARRAY"))


def check_array_to_string(node: exp.Expr, query: Query) -> None:
    """``array_to_string``: Spark joins texts, and may write other elements differently."""
    array = node.this
    kind = query.kinds.element(array)
    column = kind is Kind.DECIMAL and isinstance(array.unnest(), exp.Column)
    if kind not in _JOINED_ALIKE and not column:
        raise query.refusal(
            node, f"its elements are {kind.value}, and Spark may write them differently",
            "cast each to TEXT, as in array_to_string(ARRAY[a::text, b::text], ',')",
            called="array_to_string()",
        )  # fmt: skip


def _read(node: exp.Expr, of: exp.DataType, query: Query) -> Iterator[exp.Expr]:
    """The elements of a text such as ``'{1,NULL,"a b"}'``, if Postgres reads each one alike."""
    texts = elements_of(literal_text(node.this.unnest()) or "")
    if texts is None:
        raise query.refusal(node, f"the text is no array of one dimension; {_ONE_DIMENSION}",
                            "write ARRAY[…]", called=_CALLED)  # fmt: skip
    for text in texts:
        pattern = _READ_ALIKE.get(of.this)
        alike = of.this in _TEXTS or (pattern is not None and pattern.fullmatch(text or ""))
        if text is not None and not alike:
            raise query.refusal(node, f"Spark may read {text!r} differently, or not at all",
                                "write ARRAY[…], with each element as its type",
                                called=_CALLED)  # fmt: skip
        yield exp.null() if text is None else exp.Literal.string(text)


def elements_of(array: str) -> list[str | None] | None:
    """The texts of an array's elements, NULL as None; None if it is no array of one dimension.

    >>> elements_of('{a, "b,c", null, "null"}'), elements_of("{}"), elements_of("{a,,b}")
    (['a', 'b,c', None, 'null'], [], None)
    """
    braces = re.fullmatch(r"\s*\{\s*(.*)\}\s*", array, re.DOTALL)
    if braces is None:
        return None
    texts: list[str | None] = []
    inner = braces[1]
    if not inner:
        return texts
    at, more = 0, ","
    while more:
        found = _ELEMENT.match(inner, at)
        if found is None:
            return None
        quoted, plain, more = found.groups()
        is_null = plain is not None and plain.upper() == "NULL"
        written = re.sub(r"\\(.)", r"\1", quoted or plain or "", flags=re.DOTALL)
        texts.append(None if is_null else written)
        at = found.end()
    return texts
