"""Types of Postgres that casts name, and casts of texts to UUID and to BYTEA."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON
from dagster_streamtables.compiler.dialect.rules.made import from_template, string
from dagster_streamtables.compiler.dialect.rules.query import Query

_T = exp.DataType.Type
_JSON = (_T.JSON, _T.JSONB)
_BY_CAST = (*_JSON, _T.INTERVAL, _T.TIME, _T.UUID, _T.VARBINARY, _T.ARRAY)
_UUID = r"([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}"


def uuid(node: exp.Expr, query: Query) -> exp.Expr:
    """A cast to UUID: its text in lower case, with its hyphens (RFC 9562, 4)."""
    value = node.this
    query.require(node, value, (Kind.STRING,), "this needs a text", "cast it to TEXT")
    template = (
        "CASE WHEN _s IS NULL THEN NULL WHEN _s RLIKE _p THEN REGEXP_REPLACE(LOWER("
        "REGEXP_REPLACE(_s, '[{}-]', '')), '^(.{8})(.{4})(.{4})(.{4})(.{12})$', "
        "'$1-$2-$3-$4-$5') ELSE CAST(CAST('this is no UUID' AS INT) AS STRING) END"
    )
    return from_template(template, s=value, p=string(rf"^(\{{{_UUID}\}}|{_UUID})\z"))


def bytes_of(node: exp.Expr, query: Query) -> exp.Expr:
    """A cast to BYTEA of a text without backslashes, which Postgres would read as escapes."""
    value = node.this
    query.require(node, value, (Kind.STRING,), "this needs a text", "cast it to TEXT")
    error = "CAST(CAST(CAST('a backslash is an escape' AS INT) AS STRING) AS BINARY)"
    encoded = f"CASE WHEN CONTAINS(_s, CHR(92)) THEN {error} ELSE ENCODE(_s, 'UTF-8') END"
    return from_template(encoded, s=value)


def type_(node: exp.Expr, query: Query) -> None:
    """A type that Delta does not have is left to the cast around it, or to the function that
    declares a column of it."""
    around = node.parent
    while isinstance(around, exp.DataType) and around.is_type(_T.ARRAY):
        around = around.parent
    by_cast = node.args["this"] in _BY_CAST and isinstance(around, exp.Cast)
    declared = node.args["this"] in _JSON and isinstance(around, exp.Kwarg)
    if not by_cast and not declared:
        COMMON.mended[exp.DataType](node, query)
