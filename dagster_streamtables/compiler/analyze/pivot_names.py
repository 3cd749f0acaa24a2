"""The names that Spark gives to the columns of a PIVOT whose author gives none.

    FOR k IN (1, 'x', NULL, DATE '2024-01-31')     1, x, null, 2024-01-31
    FOR (k, r) IN ((1, 'x'), (2, NULL))            {1, x}, {2, null}
    SUM(a), COUNT(*) FOR k IN (1)                  1_sum(a), 1_count(1)

A value is named by its text, a tuple as the struct that it is to Spark, and an aggregate, where
there are several, by its call. No stored table has a column with such characters, but a query
around the PIVOT may mention it.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dagster_streamtables.compiler.text.output_names import name_of_call
from dagster_streamtables.compiler.text.refusal import Refusal

_NUMBER = re.compile(r"(0|[1-9]\d*)(\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_BY_THEIR_NAMES = frozenset(("avg", "count", "max", "min", "sum"))
"""Aggregates that Spark prints by the name that calls them. Not FIRST and the like: a full refresh
writes other calls for them, whose value depends on no order of rows."""


def name_of_value(value: exp.Expr) -> str:
    name = _name(value.unnest())
    if name is None:
        raise Refusal(
            value,
            "a value of PIVOT has no name",
            why="Spark would name its column by the text of the value, which only Spark can write",
            fix="give it one with AS",
        )
    return name


def _name(value: exp.Expr) -> str | None:
    match value:
        case exp.Null():
            return "null"
        case exp.Boolean():
            return "true" if value.this else "false"
        case exp.Neg() | exp.Paren():
            return _negative(value)
        case exp.Literal():
            known = value.is_string or _NUMBER.fullmatch(value.name)
            return value.name if known else None
        case exp.Cast():
            return _cast(value)
        case exp.Tuple() | exp.Array():
            names = [_name(each.unnest()) for each in value.expressions]
            marks = "{}" if isinstance(value, exp.Tuple) else "[]"
            told = [each for each in names if each is not None]
            return f"{marks[0]}{', '.join(told)}{marks[1]}" if len(told) == len(names) else None
    return None


def _negative(value: exp.Expr) -> str | None:
    if isinstance(value, exp.Paren):
        return _name(value.unnest())
    number = value.this
    is_number = isinstance(number, exp.Literal) and not number.is_string
    name = _name(number) if is_number else None
    return None if name is None or not float(name) else f"-{name}"


def _cast(value: exp.Cast) -> str | None:
    """The name of a date, and of a whole number or a text of another type."""
    inner, kind = value.this.unnest(), value.to
    if not isinstance(inner, exp.Literal):
        return None
    if kind.is_type(exp.DType.DATE):
        return inner.name if inner.is_string and _DATE.fullmatch(inner.name) else None
    whole = kind.is_type(*exp.DataType.INTEGER_TYPES) and not inner.is_string and inner.is_int
    text = kind.is_type(exp.DType.TEXT)
    return _name(inner) if whole or text else None


def name_of_aggregate(aggregate: exp.Expr) -> str:
    """The call as Spark prints it: over columns by their own names."""
    call, name = aggregate.unnest(), name_of_call(aggregate.unnest())
    given = call.expressions if isinstance(call, exp.Anonymous) else [call.this, *call.expressions]
    word = ""
    if given and isinstance(given[0], exp.Distinct):
        word, given = "DISTINCT ", given[0].expressions
    if name == "count" and len(given) == 1 and isinstance(given[0], exp.Star):
        return "count(1)"
    plain = all(isinstance(each, exp.Column) for each in given)
    if name not in _BY_THEIR_NAMES or not plain:
        raise Refusal(
            aggregate,
            "one of several aggregates of PIVOT has no name",
            why="Spark would name its columns by the text of the call, which only Spark can write",
            fix="give it one with AS",
        )
    return f"{name}({word}{', '.join(each.name for each in given)})"
