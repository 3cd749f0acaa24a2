"""Check the number of columns of subqueries that are values, or are compared with a row."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text.places import place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import InvalidDefinition

_RELATIONS = (exp.From, exp.Join, exp.Lateral, exp.CTE, exp.SetOperation, exp.Subquery, exp.Exists)


def check_subqueries(tree: exp.Query, text: Text) -> None:
    """
    Raises:
        InvalidDefinition: The sides of IN differ in their numbers of columns, or a scalar subquery
            has more than one column.
    """
    for node in tree.find_all(exp.In):
        query = node.args.get("query")
        if query is not None:
            wanted = len(node.this.expressions) if isinstance(node.this, exp.Tuple) else 1
            _check_count(query.unnest(), wanted, "IN", text)
    for node in tree.find_all(exp.Subquery):
        if not isinstance(node.parent, (*_RELATIONS, exp.In)) and isinstance(node.this, exp.Query):
            _check_count(node.this, 1, "a scalar subquery", text)


def _check_count(query: exp.Expr, wanted: int, called: str, text: Text) -> None:
    assert isinstance(query, exp.Query)
    if len(query.selects) != wanted:
        raise InvalidDefinition(
            f"{called}: {len(query.selects)} columns instead of {wanted}",
            where=place(query, text),
            why="values and columns are matched one to one",
            fix="select as many columns as there are values",
        )
