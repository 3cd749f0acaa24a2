"""The tables, aliases and definitions of WITH that a syntax tree names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sqlglot import exp

from dagster_streamtables.compiler.text.table_mentions import spell_table_name


def own_aliases(query: exp.Select) -> list[str]:
    """The names of the tables and subqueries in a SELECT's own FROM clause."""
    relations = (each for each in relations_in(query) if not is_group(each))
    return [each.alias_or_name for each in relations if each.alias_or_name]


def relations_in(query: exp.Select) -> list[exp.Expr]:
    """The relations of a FROM clause, in order; after one in parentheses, those in it."""
    clause = query.args.get("from_")
    todo: list[exp.Expr] = [clause.this] if clause is not None else []
    todo += [*(query.args.get("joins") or []), *(query.args.get("laterals") or [])]
    found = list[exp.Expr]()
    while todo:
        relation = todo.pop(0)
        if isinstance(relation, exp.Join):
            relation = relation.this
        found.append(relation)
        inside = [relation.this] if is_group(relation) else []
        after = (relation.args.get(each) or [] for each in ("joins", "laterals"))
        todo[:0] = [*inside, *chain(*after)]
    return found


def is_group(relation: exp.Expr) -> bool:
    """Whether it is a table or join in parentheses, whose aliases stay visible outside."""
    inner = relation.this if isinstance(relation, exp.Subquery) else None
    derived = isinstance(inner, exp.Subquery) and bool(inner.alias or inner.args.get("joins"))
    return derived or isinstance(inner, exp.Table)


def free_tables(node: exp.Expr) -> set[str]:
    """The tables that an expression or query mentions but does not define."""
    found: set[str] = set()
    todo = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, exp.Column):
            found |= {here.table} - {""}
        if isinstance(here, exp.Select):
            inside = {table for each in here.iter_expressions() for table in free_tables(each)}
            found |= inside - set(own_aliases(here))
        else:
            todo += here.iter_expressions()
    return found


def own_columns(query: exp.Select) -> Iterator[exp.Column]:
    """Every mention of a column of the SELECT's own tables, including mentions in subqueries."""
    own = set(own_aliases(query))
    for each in query.find_all(exp.Column):
        if each.table in own and _brought_by(each) is query:
            yield each


def _brought_by(mention: exp.Column) -> exp.Expr | None:
    """The innermost enclosing SELECT that defines the column's table."""
    here = mention.find_ancestor(exp.Select)
    while here is not None and mention.table not in own_aliases(here):
        here = here.find_ancestor(exp.Select)
    return here


def tables_before_pivot(tree: exp.Expr) -> frozenset[str]:
    """The tables that a PIVOT or UNPIVOT without an alias follows, in lower case.

    They qualify none of the columns that it makes.
    """
    relations = tree.find_all(exp.Table, exp.Subquery)
    pivots = ((each, each.args.get("pivots") or []) for each in relations)
    named = (each for each, found in pivots if found and not found[-1].alias)
    return frozenset(each.alias_or_name.lower() for each in named)


def tables_in(tree: exp.Query) -> list[exp.Table]:
    """Every mention of a table in a tree, in order; those of definitions and functions excluded."""
    mentions = tree.find_all(exp.Table, bfs=False)
    named = (each for each in mentions if isinstance(each.this, exp.Identifier))
    return [each for each in named if definition_of(each) is None]


def table_name(table: exp.Table) -> str:
    """The name of a table as a query spells it; a path in backticks."""
    return spell_table_name([part.name for part in table.parts])


def definition_of(table: exp.Table) -> exp.CTE | None:
    """What WITH defines for the name of a table: in its own query, or in one around it.

    A definition sees those before it in its WITH; after RECURSIVE, itself, too.
    """
    within: exp.CTE | None = None
    around: exp.Expr | None = table.parent if not table.db else None
    while around is not None:
        within = around if isinstance(around, exp.CTE) else within
        clause = around.args.get("with_")
        if isinstance(clause, exp.With):
            seen = list[exp.CTE](clause.expressions)
            if within is not None and within.parent is clause:
                seen = seen[: (within.index or 0) + bool(clause.recursive)]
            for cte in reversed(seen):
                if cte.alias.lower() == table.name.lower():
                    return cte
        around = around.parent
    return None


def aliases_in(tree: exp.Expr) -> frozenset[str]:
    """The names that can qualify a column, in lower case."""
    relations = tree.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral)
    return frozenset(each.alias_or_name.lower() for each in relations)
