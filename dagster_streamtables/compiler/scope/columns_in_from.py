"""The columns of each relation in FROM, by the text alone: before anything is qualified, so that an
error or a note can name what an author may have meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from dagster_streamtables.compiler.text.aliases import is_group
from dagster_streamtables.compiler.text.query_text import table_name

Columns = Mapping[str, str]
"""Column → type."""


def columns_in_from(
    select: exp.Select, sources: Mapping[str, Columns]
) -> list[tuple[str, list[str]]]:
    """The alias of each relation in FROM, and its columns; none where only Spark knows them."""
    return [(each.alias_or_name, _columns(each, sources)) for each in _relations(select)]


def selects_around(node: exp.Expr) -> Iterator[exp.Select]:
    """The SELECT that contains a node, and those around it, innermost first."""
    select = node.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def _relations(select: exp.Select) -> Iterator[exp.Expr]:
    clause = select.args.get("from_")
    if clause is not None:
        yield from _within(clause.this)
    for join in select.args.get("joins") or []:
        yield from _within(join.this)


def _within(relation: exp.Expr) -> Iterator[exp.Expr]:
    if is_group(relation):
        yield from _within(relation.this)
    else:
        yield relation
    for join in relation.args.get("joins") or []:
        yield from _within(join.this)


def _columns(relation: exp.Expr, sources: Mapping[str, Columns]) -> list[str]:
    if relation.alias_column_names:
        return relation.alias_column_names
    if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Query):
        return relation.this.named_selects
    if not isinstance(relation, exp.Table):
        return []
    name = table_name(relation).lower()
    for cte in relation.root().find_all(exp.CTE):
        if cte.alias.lower() == name:
            return cte.alias_column_names or cte.this.named_selects
    return next((list(columns) for each, columns in sources.items() if each.lower() == name), [])
