"""JSON of Postgres beside JSON: casts and equality.

Equal values of jsonb may be written differently: their keys in any order, with any spaces, and
numbers with zeros at their end. Spark compares texts, so both sides are written in one way first.
"""

from __future__ import annotations

import json

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.postgres.json.keys import (
    EXTRACTS,
    KEYS,
    TEXT,
    TEXTUAL,
    around,
    canonical,
)
from dagster_streamtables.compiler.dialect.rules.made import from_template
from dagster_streamtables.compiler.dialect.rules.query import Query, literal_text

_T = exp.DataType.Type


def json_of(node: exp.Expr, value: exp.Expr, query: Query) -> exp.Expr:
    """A value that Postgres reads as JSON.

    Raises:
        InvalidDefinition: It is a text that is no JSON, or of another type.
    """
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
    outer = around(node)
    named = isinstance(outer, exp.Anonymous) and "json" in outer.name.lower()
    if named or isinstance(outer, (*EXTRACTS, *KEYS)):
        return value.copy()  # it is read there
    query.note(TEXT)
    if node.args["to"].this is _T.JSON:
        return from_template("CASE WHEN PARSE_JSON(_j) IS NOT NULL THEN _j END", j=value)
    return canonical(value)


def cast_from(node: exp.Expr, query: Query) -> exp.Expr:
    """A cast of JSON: to a text, or of one number or truth value. ``null`` is NULL."""
    target, value = node.args["to"], node.this
    if target.this in (_T.TEXT, _T.VARCHAR) and not target.expressions:
        query.note(TEXT)
        return value.copy()
    if target.this is _T.BOOLEAN:
        no = "CAST(CAST('this is no truth value' AS INT) AS BOOLEAN)"
        known = "WHEN _j = 'true' THEN TRUE WHEN _j = 'false' THEN FALSE"
        return from_template(
            f"CASE WHEN _j IS NULL OR _j = 'null' THEN NULL {known} ELSE {no} END", j=value
        )
    if target.this in (_T.DOUBLE, _T.FLOAT):
        return from_template(f"CAST(NULLIF(_j, 'null') AS {target.sql('spark')})", j=value)
    number = "CAST(NULLIF(_j, 'null') AS DECIMAL(38, 18))"
    if target.this in (_T.SMALLINT, _T.INT, _T.BIGINT):
        return from_template(f"CAST(ROUND({number}, 0) AS {target.sql('spark')})", j=value)
    if target.this is _T.DECIMAL:
        query.note("NUMERIC without digits is DECIMAL(38, 18)") if not target.expressions else None
        in_digits = f"CAST({number} AS {target.sql('spark')})" if target.expressions else number
        return from_template(in_digits, j=value)
    raise query.refusal(node, "JSON has texts, numbers and truth values", "take it by ->>")


def compare_json(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``j -> 'a' = '1.0'``, ``IS DISTINCT FROM`` and ``IN``; None where no side is JSON."""
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
    """The error where JSON is put in an order."""
    return query.refusal(node, "Postgres orders JSON by types and sizes, and Spark by its text",
                         "take its parts by ->>")  # fmt: skip
