"""Names that Postgres would read as SQL: ``quote_ident`` and ``%I`` of ``format``."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.rules.made import made, string
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule

KEYWORDS = (
    "all analyse analyze and any array as asc asymmetric authorization between bigint binary bit "
    "boolean both case cast char character check coalesce collate collation column concurrently "
    "constraint create cross current_catalog current_date current_role current_schema current_time "
    "current_timestamp current_user dec decimal default deferrable desc distinct do else end "
    "except exists extract false fetch float for foreign freeze from full grant greatest group "
    "grouping having ilike in initially inner inout int integer intersect interval into is isnull "
    "join json json_array json_arrayagg json_exists json_object json_objectagg json_query "
    "json_scalar json_serialize json_table json_value lateral leading least left like limit "
    "localtime localtimestamp merge_action national natural nchar none normalize not notnull null "
    "nullif numeric offset on only or order out outer overlaps overlay placing position precision "
    "primary real references returning right row select session_user setof similar smallint some "
    "substring symmetric system_user table tablesample then time timestamp to trailing treat trim "
    "true union unique user using values varchar variadic verbose when where window with "
    "xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot "
    "xmlserialize xmltable"
)
"""Those that PostgreSQL 18 quotes: `pg_get_keywords()` without the unreserved ones."""
_QUOTED = (
    "CASE WHEN _s RLIKE '^[a-z_][a-z0-9_]*\\\\z' AND NOT ARRAY_CONTAINS(SPLIT(_w, ' '), _s) "
    "THEN _s ELSE CONCAT(_q, REPLACE(_s, _q, _qq), _q) END"
)


def quoted(text: exp.Expr) -> exp.Expr:
    """A text as a name: in quotes, unless it is one without them."""
    found = made(_QUOTED, s=text, w=string(KEYWORDS), q=string('"'), qq=string('""'))
    return made("CASE WHEN _s IS NOT NULL THEN _f END", s=text, f=found)


def in_format(text: exp.Expr) -> exp.Expr:
    """A text as a name in a text that ``format`` makes: NULL is none."""
    error = "CAST(CAST('null values cannot be formatted as an SQL identifier' AS INT) AS STRING)"
    return made(f"COALESCE(_f, {error})", f=quoted(text))


def _quote(node: exp.Expr, query: Query) -> exp.Expr:
    [value] = node.expressions
    query.require(node, value, (Kind.STRING,), "this needs a text", "cast it to TEXT")
    return quoted(value)


CALLS: dict[str, Rule] = {"quote_ident": _quote}
