"""The names of the relations in FROM: each has an alias that no other has where both are seen.

FROM (SELECT …)                            FROM (SELECT …) AS _0
FROM a SEMI JOIN b ON … JOIN c AS b        FROM a SEMI JOIN b AS st_0_b ON … JOIN c AS b
FROM (SELECT a, b …) AS t (x, y)           FROM (SELECT a AS x, b AS y …) AS t
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from itertools import count

from sqlglot import exp

from dagster_streamtables.compiler.scope.from_columns import rename
from dagster_streamtables.compiler.scope.scopes import HALF
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.tables import is_group, own_aliases, relations_in


def name_relations(selects: Iterable[exp.Select]) -> None:
    """Give each relation an alias: its name, or ``_0`` and so on.

    Args:
        selects: Those of a tree, from the inside out. They are changed.
    """
    unnamed = count()
    for select in selects:
        for relation in relations_in(select):
            alias = relation.args.get("alias") or exp.TableAlias()
            if not alias.this and not is_group(relation):
                name = relation.name if isinstance(relation, exp.Table) else ""
                alias.set("this", exp.to_identifier(name or f"_{next(unnamed)}"))
                if isinstance(relation.this, exp.Identifier):
                    alias.this.meta.update(relation.this.meta)
                relation.set("alias", alias)


def require_distinct_aliases(select: exp.Select) -> None:
    """Require that no two tables have one alias where both are seen."""
    seen = set[str]()
    for relation in relations_in(select):
        name = relation.alias_or_name.lower()
        if name in seen:
            raise Refusal(
                relation.args["alias"].this,
                f'two tables are called "{name}"',
                why="a column is told from others by the alias of its table",
                fix="give one of them another alias",
            )
        if name and not _is_semi_join_side(relation, select):
            seen.add(name)


def _is_semi_join_side(relation: exp.Expr, select: exp.Select) -> bool:
    """Whether it is the right side of a SEMI or ANTI JOIN, which nothing after its ON sees."""
    here: exp.Expr | None = relation
    while here is not select and here is not None:
        if isinstance(here, exp.Join) and here.kind in HALF:
            return True
        here = here.parent
    return False


def rename_semi_join_sides(select: exp.Select) -> None:
    """Give the right side of such a join an alias that no table after it has."""
    aliases = Counter(map(str.lower, own_aliases(select)))
    for number, join in enumerate(select.args.get("joins") or []):
        alias = join.this.alias_or_name.lower()
        if join.kind in HALF and aliases[alias] > 1:
            name = exp.to_identifier(f"st_{number}_{alias}", quoted=True)
            join.this.args["alias"].set("this", name)
            for column in join.args["on"].find_all(exp.Column):
                if column.table.lower() == alias and not _is_of_inner(column, alias, select):
                    column.set("table", name.copy())


def _is_of_inner(column: exp.Column, alias: str, select: exp.Select) -> bool:
    """Whether a query inside of a SELECT has a table of an alias, and the column."""
    here = column.find_ancestor(exp.Select)
    while here is not None and here is not select:
        if alias in map(str.lower, own_aliases(here)):
            return True
        here = here.find_ancestor(exp.Select)
    return False


def rename_outputs(relation: exp.Expr) -> None:
    """Give the outputs of ``(SELECT …) AS t (a, b)`` the names after the alias."""
    selects = [relation.this]
    names = relation.args["alias"].columns
    while selects:
        query = selects.pop()
        if isinstance(query, exp.SetOperation):
            selects += [query.left, query.right]
        elif isinstance(query, exp.Subquery):
            selects.append(query.this)
        elif isinstance(query, exp.Select):
            require_as_many(relation, names, query.expressions)
            for item, name in zip(query.expressions, names, strict=True):
                rename(item, name)
    if not (isinstance(relation.parent, exp.With) and relation.parent.recursive):
        relation.args["alias"].set("columns", None)


def require_as_many(relation: exp.Expr, names: Sequence[object], columns: Sized) -> None:
    """
    Raises:
        Refusal: The names after an alias are more, or fewer, than the columns that they rename.
    """
    if len(columns) != len(names):
        raise Refusal(
            relation.args["alias"].this,
            f'"{relation.alias}" names {len(names)} of {len(columns)} columns',
            why="an alias with columns renames all of them",
            fix=f"name {len(columns)} columns, or none",
            invalid=True,
        )
