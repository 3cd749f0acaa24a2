"""Names in Postgres: of outputs without an alias, and quoted by ``quote_ident`` and ``%I``."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.rules.rule import Query, Rule, from_template
from dagster_streamtables.compiler.text.sqlglot_dialects import AROUND_CALLS, CALLED

_NAMES: dict[type[exp.Expr], str] = {
    exp.Array: "array", exp.AtTimeZone: "timezone", exp.CurrentDate: "current_date",
    exp.CurrentTime: "current_time", exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentUser: "current_user", exp.Exists: "exists", exp.Localtime: "localtime",
    exp.Localtimestamp: "localtimestamp", exp.Overlaps: "overlaps", exp.Tuple: "row",
}  # fmt: skip
"""The names of outputs that are no calls in parentheses."""
_TYPES = {"int": "int4", "integer": "int4", "bigint": "int8", "smallint": "int2", "text": "text",
          "double precision": "float8", "real": "float4", "decimal": "numeric", "date": "date",
          "varchar": "varchar", "boolean": "bool", "timestamp": "timestamp",
          "timestamptz": "timestamptz", "time": "time"}  # fmt: skip
_UNNAMED = "?column?"
_THROUGH = (*AROUND_CALLS, exp.Paren, exp.Bracket, exp.Collate)
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}
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
"""The words that PostgreSQL 18 quotes: `pg_get_keywords()` without the unreserved ones."""
_QUOTED = (
    "CASE WHEN _s RLIKE '^[a-z_][a-z0-9_]*\\\\z' AND NOT ARRAY_CONTAINS(SPLIT(_w, ' '), _s) "
    "THEN _s ELSE CONCAT(_q, REPLACE(_s, _q, _qq), _q) END"
)


class _Name(NamedTuple):
    text: str = _UNNAMED
    is_own: bool = False
    """Whether a cast or a CASE around the output keeps it."""


def name_outputs(tree: exp.Query) -> None:
    """Give the outputs of a query, and of its subqueries in FROM, their names in Postgres.

    >>> from dagster_streamtables.compiler.text.query_text import read
    >>> tree = read("SELECT count(*), x + 1 FROM t", "postgres").tree
    >>> name_outputs(tree)
    >>> tree.sql("postgres")
    'SELECT COUNT(*) AS count, x + 1 AS "?column?" FROM t'
    """
    for node in tree.find_all(exp.Select):
        if not _is_relation(node):
            continue
        for output in node.selects:
            if isinstance(output, exp.Alias | exp.Aliases | exp.Column) or output.is_star:
                continue
            name = _find_name(output).text
            alias = exp.to_identifier(name, quoted=not name.isidentifier())
            output.replace(exp.Alias(this=output.copy(), alias=alias))


def _is_relation(node: exp.Expr) -> bool:
    """Whether its columns have names that matter."""
    around = node.parent
    while isinstance(around, exp.SetOperation | exp.CTE | exp.Subquery):
        if isinstance(around, exp.CTE):
            return True
        if isinstance(around, exp.Subquery):
            return isinstance(around.parent, exp.From | exp.Join | exp.Lateral | type(None))
        around = around.parent
    return around is None


def _find_name(node: exp.Expr) -> _Name:
    """The name that Postgres gives to an output without an alias."""
    if isinstance(node, exp.Column):
        return _Name(node.name, True)
    if isinstance(node, _THROUGH):
        return _find_name(node.this)
    if isinstance(node, exp.Trim):
        side = node.args.get("position")
        called = str(node.meta.get(CALLED, "trim"))
        return _Name(_TRIMS.get(side or "", "btrim") if called == "trim" else called, True)
    called = node.meta.get(CALLED)
    if called is not None and not (isinstance(node, exp.Cast) and called == "cast"):
        return _Name(str(called), True)
    if isinstance(node, exp.Cast | exp.Interval):
        inner = _find_name(node.this)
        return inner if inner.is_own else _Name(_type_name(node))
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        found = _Name() if default is None else _find_name(default)
        return found if found.is_own else _Name("case")
    if isinstance(node, exp.Subquery) and len(node.selects) == 1:
        alias = node.selects[0].alias
        return _Name(alias, True) if alias else _find_name(node.selects[0])
    if isinstance(node, exp.Anonymous):
        return _Name(node.name.lower(), True)
    word = _NAMES.get(type(node))
    return _Name() if word is None else _Name(word, True)


def _type_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Interval):
        return "interval"
    kind = node.args["to"]
    while kind.this is exp.DataType.Type.ARRAY:
        kind = kind.expressions[0]
    name = kind.sql("postgres").lower().split("(")[0]
    return str(_TYPES.get(name, name))


def quote_identifier(text: exp.Expr) -> exp.Expr:
    """A text as a name: in quotes, unless it is one without them."""
    found = from_template(_QUOTED, s=text, w=KEYWORDS, q='"', qq='""')
    return from_template("CASE WHEN _s IS NOT NULL THEN _f END", s=text, f=found)


def _quote(node: exp.Expr, query: Query) -> exp.Expr:
    [value] = node.expressions
    query.require(node, value, (Kind.STRING,), "this needs a text", "cast it to TEXT")
    return quote_identifier(value)


CALLS: dict[str, Rule] = {"quote_ident": _quote}
