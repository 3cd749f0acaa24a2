"""Refuse what sqlglot parses and Spark does not: other engines' windows, aggregates and LATERAL.

Spark would refuse it too, but only at the first refresh.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.places import place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import InvalidDefinition

_WITHIN_GROUP = {
    "listagg", "mode", "percentile", "percentile_cont", "percentile_disc", "string_agg",
}  # fmt: skip


_UNIT_WORDS = """
    year y years yr yrs yearofweek quarter qtr month mon mons months week w weeks day d days
    dayofweek dow dayofweek_iso dow_iso doy hour h hours hr hrs minute m min mins minutes second s
    sec seconds secs
"""
_UNITS = frozenset(_UNIT_WORDS.split())


def require_spark_syntax(node: exp.Expr, text: Text) -> None:
    """
    Raises:
        InvalidDefinition: Spark does not support the syntax.
    """
    if isinstance(node, exp.Window):
        _require_window(node, text)
    elif isinstance(node, exp.WindowSpec):
        _require_frame(node, text)
    elif isinstance(node, exp.Order | exp.Limit | exp.WithinGroup):
        _require_plain_call(node, text)
    elif isinstance(node, exp.Lateral):
        _require_view(node, text)
    elif isinstance(node, exp.Extract):
        _require_unit(node, text)
    # FROM_UTC_TIMESTAMP(…) is such a node too, but only a call has the position of its name.
    elif isinstance(node, exp.AtTimeZone) and "start" not in node.meta:
        raise InvalidDefinition(
            "Spark has no AT TIME ZONE",
            where=place(node, text),
            why="it converts times by functions",
            fix="write convert_timezone('UTC', 'Europe/Berlin', x), or set dialect to postgres",
        )
    elif isinstance(node, exp.JSON):
        raise InvalidDefinition(
            "Spark has no IS JSON",
            where=place(node, text),
            why="it has no such condition",
            fix="write try_parse_json(x) IS NOT NULL",
        )
    elif isinstance(node, exp.Between) and node.args.get("symmetric"):
        raise InvalidDefinition(
            "Spark has no BETWEEN SYMMETRIC",
            where=place(node, text),
            why="the lower end comes first there",
            fix="write BETWEEN LEAST(a, b) AND GREATEST(a, b)",
        )


def _require_unit(node: exp.Extract, text: Text) -> None:
    if node.name.lower() not in _UNITS:
        raise InvalidDefinition(
            f"Spark cannot extract {node.name.upper()}",
            where=place(node, text),
            why="it has YEAR, YEAROFWEEK, QUARTER, MONTH, WEEK, DAY, DAYOFWEEK, DAYOFWEEK_ISO, "
            "DOY, HOUR, MINUTE and SECOND",
            fix="write UNIX_TIMESTAMP(x)"
            if node.name.lower() == "epoch"
            else "compute it from one of these units",
        )


def _require_window(node: exp.Window, text: Text) -> None:
    more = any(node.args.get(part) for part in ("partition_by", "order", "spec"))
    if node.alias and more:
        raise InvalidDefinition(
            f'a window that adds to the window "{node.alias}"',
            where=place(node, text),
            why="in Spark, a window is either a name or a full definition, in OVER and in WINDOW",
            fix=f"write the definition of {node.alias} in place of its name",
        )


def _require_frame(node: exp.WindowSpec, text: Text) -> None:
    if node.args.get("kind") == "GROUPS":
        raise InvalidDefinition(
            "Spark has no GROUPS in a window",
            where=place(node, text),
            why="Spark's frames count rows (ROWS) or compare values (RANGE)",
            fix="number the groups by DENSE_RANK() in a subquery, and write RANGE over ORDER BY "
            "that number",
        )
    if node.args.get("exclude"):
        raise InvalidDefinition(
            "Spark has no EXCLUDE in a window",
            where=place(node, text),
            why="Spark's frames include every row between their ends",
            fix="subtract the row's own value from the result of the whole frame, or combine the "
            "frame before the row with the one after it",
        )


def _require_plain_call(node: exp.Expr, text: Text) -> None:
    if isinstance(node, exp.WithinGroup):
        called = _name(node.this)
        if called not in _WITHIN_GROUP:
            raise _no_order(called, "WITHIN GROUP", node, text)
    elif isinstance(node.parent, exp.Func) and not isinstance(node.parent, exp.Query):
        word = "ORDER BY" if isinstance(node, exp.Order) else "LIMIT"
        raise _no_order(_name(node.parent), word, node, text)


def _no_order(called: str, word: str, node: exp.Expr, text: Text) -> InvalidDefinition:
    string = called in ("listagg", "string_agg", "group_concat")
    if word == "LIMIT" and not string:
        fix = "write SLICE(SORT_ARRAY(COLLECT_LIST(x)), 1, n) for the n least values of x"
    elif string:
        fix = f"write {called.upper()}(x, ',') WITHIN GROUP (ORDER BY y)"
    else:
        fix = (
            "write TRANSFORM(SORT_ARRAY(COLLECT_LIST(STRUCT(y, x))), e -> e.x), which is in the "
            "order of y"
        )
    return InvalidDefinition(
        f"Spark has no {word} in {called.upper()}",
        where=place(node, text),
        why="Spark's lists have no order of their own",
        fix=fix,
    )


def _require_view(node: exp.Lateral, text: Text) -> None:
    name = node.this.name.lower() if isinstance(node.this, exp.Anonymous) else ""
    if node.args.get("view") and name in spark_functions.VARIANT_TABLES:
        raise InvalidDefinition(
            f"Spark has no LATERAL VIEW of {name}",
            where=place(node.this, text),
            why="Spark supports that function in FROM only",
            fix=f"write FROM t, LATERAL {name}(…) AS v(pos, key, value)",
        )


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key
