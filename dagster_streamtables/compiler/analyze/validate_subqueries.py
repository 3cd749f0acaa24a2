"""Subqueries that stand where one value is wanted, or are compared with a row."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text.places import place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import InvalidDefinition

_RELATIONS = (exp.From, exp.Join, exp.Lateral, exp.CTE, exp.SetOperation, exp.Subquery, exp.Exists)


def check_subqueries(tree: exp.Query, text: Text) -> None:
    """
    Raises:
        InvalidDefinition: IN compares another number of columns than its subquery has, or a
            subquery that is a value has more than one.
    """
    for node in tree.find_all(exp.In):
        query = node.args.get("query")
        if query is not None:
            wanted = len(node.this.expressions) if isinstance(node.this, exp.Tuple) else 1
            _check_count(query.unnest(), wanted, "IN", text)
    for node in tree.find_all(exp.Subquery):
        if not isinstance(node.parent, (*_RELATIONS, exp.In)) and isinstance(node.this, exp.Query):
            _check_count(node.this, 1, "a subquery that is a value", text)


def _check_count(query: exp.Expr, wanted: int, called: str, text: Text) -> None:
    assert isinstance(query, exp.Query)
    if len(query.selects) != wanted:
        raise InvalidDefinition(
            f"{called}: {len(query.selects)} columns instead of {wanted}",
            where=place(query, text),
            why="values meet columns one by one",
            fix="select as many columns as there are values",
        )
