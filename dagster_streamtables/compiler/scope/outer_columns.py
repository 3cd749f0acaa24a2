"""Columns of the query around a subquery: what stars and unqualified names mean there.

The qualifier of sqlglot knows no ``t.*`` of an outer table, and leaves alone what a table function
in FROM takes, and outer columns in HAVING.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.errors import OptimizeError

from dagster_streamtables.compiler.scope.from_columns import (
    FromColumn,
    Scopes,
    holds,
    name_tables,
)
from dagster_streamtables.compiler.text.aliases import own_aliases
from dagster_streamtables.compiler.text.places import Refusal

TOO_EARLY = "is an output of SELECT, which WHERE comes before"


def expand_outer_stars(select: exp.Select, scopes: Scopes) -> None:
    """Put columns in the place of ``t.*`` if t is a table of the query around."""
    tables = {alias.lower() for alias in own_aliases(select)}
    items = list[exp.Expr]()
    for item in select.expressions:
        columns = list[FromColumn]()
        if isinstance(item, exp.Column) and item.is_star and item.table.lower() not in tables:
            columns = _of_outer_table(item, select, scopes)
        items += [each.as_output() for each in columns] or [item]
    select.set("expressions", items)


def _of_outer_table(star: exp.Column, select: exp.Select, scopes: Scopes) -> list[FromColumn]:
    around = select.parent_select
    while isinstance(around, exp.Select):
        if star.table.lower() in map(str.lower, own_aliases(around)):
            return scopes.expand(star, around)
        around = around.parent_select
    return []


def qualify_outer_columns(select: exp.Select, scopes: Scopes) -> None:
    """Name the tables of the query around, where the qualifier of sqlglot leaves columns alone.

    Args:
        select: It is changed.
        scopes: The columns of the FROM clauses around it.
    """
    relations = [select.args.get("from_"), *(select.args.get("joins") or [])]
    for relation in relations:
        if relation is not None and isinstance(relation.this, exp.Table):
            _qualify(relation.this.this.find_all(exp.Column), select, scopes)
    made = {each.alias.lower() for each in select.expressions}
    where, having = select.args.get("where"), select.args.get("having")
    if where is not None:
        outer = [each for each in _not_own(where, select, scopes) if each.name.lower() in made]
        for each in _qualify(outer, select, scopes):
            line, col = (each.this.meta.get(part) for part in ("line", "col"))
            raise OptimizeError(f"'{each.name}' {TOO_EARLY}. Line: {line}, Col: {col}")
    if having is not None and select.parent_select is not None:
        outer = [each for each in _not_own(having, select, scopes) if each.name.lower() not in made]
        _qualify(outer, select, scopes)


def _not_own(clause: exp.Expr, select: exp.Select, scopes: Scopes) -> list[exp.Column]:
    """The columns without a table in a clause that are none of the FROM clause; empty where its
    columns are not known."""
    try:
        own = scopes.columns(select)
    except (Refusal, OptimizeError):
        return []
    mentions = (each for each in clause.find_all(exp.Column) if each.parent_select is select)
    return [each for each in mentions if not each.table and not own.find(each.name)]


def _qualify(
    mentions: Iterable[exp.Column], select: exp.Select, scopes: Scopes
) -> list[exp.Column]:
    """Name the tables of columns of the query around.

    Returns:
        The others.
    """
    others = list[exp.Column]()
    for mention in list(mentions):
        found = _of_around(mention, select, scopes) if not mention.table else None
        if found is not None:
            mention.replace(found.value.copy())
        else:
            others.append(mention)
    return others


def _of_around(mention: exp.Column, select: exp.Select, scopes: Scopes) -> FromColumn | None:
    """The one column of a query around that a name means; None if it is not known."""
    inside: exp.Expr = select
    while (around := inside.parent_select) is not None:
        if not isinstance(around, exp.Select):
            return None
        name_tables(around)
        try:
            columns = scopes.columns(around)
            for step in scopes.steps(around):
                if holds(step.node, select):
                    columns = step.before
        except (Refusal, OptimizeError):
            return None
        if found := columns.find(mention.name):
            return found[0] if len(found) == 1 else None
        inside = around
    return None
