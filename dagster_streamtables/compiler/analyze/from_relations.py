"""The relations of a FROM clause: joins in parentheses as one chain, and distinct aliases.

    FROM a JOIN (b JOIN c ON q) ON p           FROM a JOIN b ON true JOIN c ON q WHERE p
    FROM (SELECT …)                            FROM (SELECT …) AS _0
    FROM a SEMI JOIN b ON … JOIN c AS b        FROM a SEMI JOIN b AS st_0_b ON … JOIN c AS b
    FROM (SELECT a, b …) AS t (x, y)           FROM (SELECT a AS x, b AS y …) AS t

Inner joins are associative, so their parentheses come off. A join of another kind notes the number
of joins after it that belong to its right side:

    a LEFT JOIN b ON p JOIN c ON q        with 1 after LEFT JOIN: a LEFT JOIN (b JOIN c ON q) ON p
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from itertools import count

from sqlglot import exp

from dagster_streamtables.compiler.scope.from_columns import rename
from dagster_streamtables.compiler.scope.scopes import HALF
from dagster_streamtables.compiler.text.places import Mistake, Refusal
from dagster_streamtables.compiler.text.table_mentions import is_group, own_aliases, relations_in

_INSIDE = "st_joins_inside"


def joins_inside(join: exp.Join) -> int:
    """The number of joins after this one that belong to its right side."""
    return int(join.meta.get(_INSIDE, 0))


def desugar_parentheses(tree: exp.Query) -> None:
    """Write parentheses that have a name of their own as a subquery, and superfluous ones once.

    (a JOIN b ON p) AS t       (SELECT * FROM a JOIN b ON p) AS t
    ((SELECT …))               (SELECT …)
    a, LATERAL (SELECT …)      a, LATERAL (SELECT …) AS st_lateral_0
    FROM LATERAL (SELECT …)    FROM (SELECT …)
    """
    laterals = [each for each in tree.find_all(exp.Lateral) if isinstance(each.this, exp.Subquery)]
    for number, lateral in enumerate(laterals):
        if isinstance(lateral.parent, exp.From):
            after = {each: lateral.args.get(each) for each in ("alias", "joins", "laterals")}
            lateral.replace(exp.Subquery(this=lateral.this.this, **after))
        elif not lateral.alias:
            alias = lateral.args.get("alias") or exp.TableAlias()
            alias.set("this", exp.to_identifier(f"st_lateral_{number}", quoted=True))
            lateral.set("alias", alias)
    for relation in reversed(list(tree.find_all(exp.Subquery))):
        inner, around = relation.this, relation.parent
        while isinstance(around, exp.Subquery):
            around = around.parent
        is_relation = isinstance(around, exp.From | exp.Join | exp.Lateral)
        if not is_relation or not isinstance(inner, exp.Table | exp.Subquery):
            continue
        if relation.alias:
            select = exp.select("*").from_(inner, copy=False)
            select.set("joins", _detach_joins(inner))
            relation.set("this", select)
        elif isinstance(inner, exp.Subquery) and not (inner.alias or relation.args.get("joins")):
            relation.replace(inner)


def flatten_joins(select: exp.Select) -> None:
    """Write the joins in parentheses of one FROM as one chain."""
    clause = select.args.get("from_")
    joins: list[exp.Join] = list(select.args.get("joins") or [])
    while clause is not None and is_group(clause.this):
        inner = clause.this.this
        joins = [*_detach_joins(inner), *_detach_joins(clause.this), *joins]
        clause.set("this", inner)
    if clause is not None:
        # Of FROM t JOIN u SELECT …, which sqlglot puts into the first table.
        joins = [*_detach_joins(clause.this), *joins]
        laterals = clause.this.args.get("laterals")
        clause.this.set("laterals", None)
        select.set("laterals", [*(laterals or []), *(select.args.get("laterals") or [])])
    chained = [each for join in joins for each in _flatten_join(join)]
    if not any(each.side or each.kind in HALF for each in chained):
        # The parentheses say nothing; a condition holds once all their tables are joined.
        for join in filter(joins_inside, chained):
            del join.meta[_INSIDE]
            condition = join.args.get("on")
            join.set("on", exp.true())
            if condition is not None:
                select.where(condition, copy=False)
    if chained:
        select.set("joins", chained)


def _detach_joins(relation: exp.Expr) -> list[exp.Join]:
    """The joins of a relation, taken from it."""
    joins = list(relation.args.get("joins") or [])
    relation.set("joins", None)
    return joins


def _flatten_join(join: exp.Join) -> list[exp.Join]:
    """A join, and those in its parentheses after it."""
    if not is_group(join.this):
        return [join]
    inner = join.this.this
    inside = [
        each
        for one in (*_detach_joins(inner), *_detach_joins(join.this))
        for each in _flatten_join(one)
    ]
    join.set("this", inner)
    join.meta[_INSIDE] = len(inside)
    return [join, *inside]


def name_relations(selects: Iterable[exp.Select]) -> None:
    """Give each relation of SELECTs, from the inside out, an alias: its name, or ``_0`` and so
    on."""
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
    """Whether a column belongs to a query inside a SELECT that has a table of its alias."""
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
        raise Mistake(
            relation.args["alias"].this,
            f'"{relation.alias}" names {len(names)} of {len(columns)} columns',
            why="an alias with columns renames all of them",
            fix=f"name {len(columns)} columns, or none",
        )
