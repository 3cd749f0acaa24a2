"""A condition on the columns of one row, which is given alone and not as part of a query."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler.analyze.refuse import refuse
from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.current_time import asks_for_time, with_clock
from dagster_streamtables.compiler.text.query_text import Text, read
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.errors import InvalidDefinition

_OF_MANY_ROWS = (
    spark_functions.AGGREGATES
    | spark_functions.MAINTAINED
    | spark_functions.WINDOW
    | spark_functions.TABLE_VALUED
)


def flaw_of(condition: str) -> str:
    """Why a text cannot be a condition on one row, with one answer whenever it is asked; empty if
    it can. What its columns are, and whether it is a boolean, is not known here.

    >>> flaw_of("amount > 5 AND region = 'EU'")
    ''
    >>> flaw_of("amount > rand()")
    'rand() cannot be maintained'
    >>> flaw_of("id IN (SELECT id FROM customers)")
    'it has a subquery'
    """
    try:
        trees = sqlglot.parse(condition, dialect=DIALECT)
    except (SqlglotError, RecursionError):
        return "it is not an expression of Spark SQL"
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or isinstance(tree, exp.Query | exp.Alias | exp.Star | exp.Command):
        return "it is not one expression of Spark SQL"
    return _flaw_in(tree) or _refusal(condition)


def _flaw_in(tree: exp.Expr) -> str:
    for node in tree.walk():
        if isinstance(node, exp.Query):
            return "it has a subquery"
        named = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        many = isinstance(node, exp.AggFunc | exp.Window | exp.UDTF) or named in _OF_MANY_ROWS
        if many or isinstance(node, exp.Explode | exp.Inline):
            return "it looks at other rows, or makes some"
    return ""


def _refusal(condition: str) -> str:
    try:
        text: Text = with_clock(read(f"SELECT 1 AS one FROM t WHERE (\n{condition}\n)"))
        refuse(text)
    except InvalidDefinition as error:
        return error.what
    return "it asks for the time" if asks_for_time(text) else ""
