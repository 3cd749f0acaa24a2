"""Joins in parentheses whose columns are matched by name: the parentheses become a subquery.

    a LEFT JOIN (b JOIN c USING (k)) USING (id)
    a LEFT JOIN (SELECT *, b.x AS `b.x` FROM b JOIN c USING (k)) AS st_joined_b USING (id)

USING and NATURAL look for a name in the columns of a side, and merge two into one: in a chain
without parentheses they would look in all tables before them. A column that the query qualifies by
a table inside gets a column of its own in the subquery, whose ``*`` has it without its table only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from dagster_streamtables.compiler.analyze.stars import definitions
from dagster_streamtables.compiler.text.aliases import is_group, own_aliases
from dagster_streamtables.compiler.text.column_names import JOINED, flat
from dagster_streamtables.compiler.text.refusal import Refusal
from dagster_streamtables.compiler.text.spark import DIALECT

_BY_NAME = "by name"
"""Of a join: whether its condition has come from USING or NATURAL."""


def close_joins(select: exp.Select) -> None:
    """Write such joins in one FROM as subqueries."""
    for join in list(_joins(select)):
        if _is_closed(join):
            _close(select, join)


def spell_out_stars(tree: exp.Query, columns_of: Callable[[str], Sequence[str]]) -> None:
    """Write `t.*` as the columns of `t`, for each table in such parentheses.

    Args:
        tree: It is changed.
        columns_of: The columns of a query; nothing where they are not known.
    """
    stars = [each for each in tree.find_all(exp.Column) if isinstance(each.this, exp.Star)]
    for star in stars:
        select = _brought_by(star)
        group = _matched(select, star.table.lower()) if isinstance(select, exp.Select) else None
        if group is None or not isinstance(select, exp.Select):
            continue
        names = columns_of(_alone(star, group, select).sql(DIALECT))
        left_out = {each.name.lower() for each in star.this.args.get("except_") or []}
        changed = star.this.args.get("replace") or star.this.args.get("rename")
        around, key, at = star.parent, star.arg_key, star.index
        if names and around is not None and key is not None and at is not None and not changed:
            kept = [name for name in names if name.lower() not in left_out]
            items = around.args[key]
            items[at : at + 1] = [_of_table(star, name) for name in kept]
            around.set(key, items)


def settle_joins(tree: exp.Expr) -> None:
    """Leave out the columns of such subqueries that share a name, once all columns are known.

    USING and NATURAL match the first of them, as Spark does.

    Raises:
        Refusal: The query mentions one of them.
    """
    for joined in list(tree.find_all(exp.Subquery)):
        select = joined.this
        if not joined.alias.startswith(JOINED) or not isinstance(select, exp.Select):
            continue
        count = Counter(each.alias_or_name for each in select.selects)
        twice = {name for name, n in count.items() if n > 1}
        matched = {id(each): each.name for each in _matching(joined)}
        for column in tree.find_all(exp.Column):
            if column.table == joined.alias and column.name in twice and id(column) not in matched:
                raise _of_two(column)
        first: dict[str, exp.Expr] = {}
        for each in select.selects:
            first.setdefault(each.alias_or_name, each)
        left_out = twice - set(matched.values())
        select.set("expressions", [each for name, each in first.items() if name not in left_out])


def _close(select: exp.Select, join: exp.Join) -> None:
    group = join.this
    inner = exp.select(exp.Star())
    aliases = _aliases(group)
    name = f"{JOINED}{aliases[0].lower()}"
    join.meta[_BY_NAME] = _by_name(join)
    inside = {id(node) for node in group.walk()}
    owned = {alias.lower() for alias in aliases}
    made: dict[str, exp.Expr] = {}
    for mention in list(_mentions(select, owned)):
        if id(mention) not in inside:
            _rename(mention, name, made)
    group.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(name))))
    inner.set("from_", exp.From(this=group))
    inner.set("expressions", [exp.Star(), *made.values()])
    for star in (each for each in select.expressions if isinstance(each, exp.Star)):
        hidden = [exp.column(each, quoted=True) for each in made]
        star.set("except_", [*(star.args.get("except_") or []), *hidden])
    close_joins(inner)


def _matching(joined: exp.Subquery) -> Iterator[exp.Column]:
    """The columns of such a subquery in what USING or NATURAL has become."""
    join = joined.parent
    condition = join.args.get("on") if join is not None and join.meta.get(_BY_NAME) else None
    for column in condition.find_all(exp.Column) if condition is not None else ():
        if column.table == joined.alias:
            yield column


def _matched(select: exp.Select, alias: str) -> exp.Expr | None:
    """The parentheses with the table of this alias, if they are closed."""
    closed = (join.this for join in _joins(select) if _is_closed(join))
    return next((group for group in closed if alias in map(str.lower, _aliases(group))), None)


def _aliases(group: exp.Expr) -> list[str]:
    return own_aliases(exp.Select(from_=exp.From(this=group.copy())))


def _alone(star: exp.Column, group: exp.Expr, select: exp.Select) -> exp.Select:
    """All columns of a table in parentheses, with what WITH defines for them."""
    every = exp.Column(this=exp.Star(), table=star.args["table"].copy())
    alone = exp.select(every).from_(group.copy(), copy=False)
    alone.set("with_", definitions(select))
    return alone


def _of_table(star: exp.Column, name: str) -> exp.Column:
    column = exp.column(exp.to_identifier(name, quoted=True), table=star.args["table"].copy())
    column.this.meta.update(star.args["table"].meta)
    return column


def _rename(mention: exp.Column, joined: str, made: dict[str, exp.Expr]) -> None:
    """Let a column of a table inside the parentheses mean that of the subquery."""
    if isinstance(mention.this, exp.Star):
        raise Refusal(
            mention,
            "t.* of a join in parentheses that matches columns by name is not supported yet",
            why="its columns are not known where the parentheses become a subquery",
            fix="list its columns, or choose mode FULL",
        )
    hidden = flat(mention.table.lower(), mention.name.lower())
    made[hidden] = exp.alias_(mention.copy(), hidden, quoted=True)
    column = exp.column(exp.to_identifier(hidden, quoted=True), table=joined)
    column.this.meta.update(mention.this.meta)
    is_output = isinstance(mention.parent, exp.Select) and mention.arg_key == "expressions"
    mention.replace(exp.alias_(column, mention.this.copy()) if is_output else column)


def _mentions(select: exp.Select, tables: set[str]) -> Iterator[exp.Column]:
    """The columns that are qualified by a table of this FROM, including those in subqueries."""
    for column in select.find_all(exp.Column):
        if column.table.lower() in tables and _brought_by(column) is select:
            yield column


def _brought_by(mention: exp.Column) -> exp.Expr | None:
    here = mention.find_ancestor(exp.Select)
    while here is not None and mention.table.lower() not in map(str.lower, own_aliases(here)):
        here = here.find_ancestor(exp.Select)
    return here


def _joins(select: exp.Select) -> Iterator[exp.Join]:
    """The joins of a FROM clause that are in no other subquery, the outer ones first."""
    clause = select.args.get("from_")
    yield from _joins_within(clause) if clause is not None else ()
    for join in list(select.args.get("joins") or []):
        yield join
        yield from _joins_within(join.this)


def _joins_within(relation: exp.Expr) -> Iterator[exp.Join]:
    for node in relation.walk(prune=lambda each: isinstance(each, exp.Select)):
        if isinstance(node, exp.Join):
            yield node


def _is_closed(join: exp.Join) -> bool:
    """Whether its parentheses become a subquery: it, or a join in them, matches by names."""
    return is_group(join.this) and any(map(_by_name, (join, *_joins_within(join.this))))


def _by_name(join: exp.Join) -> bool:
    return bool(join.args.get("using") or join.method)


def _of_two(column: exp.Column) -> Refusal:
    return Refusal(
        column,
        f"{column.name} of two tables in a join in parentheses",
        why="each of them has a column of this name, and the join does not merge them",
        fix="qualify it by its table, and list columns in place of *",
    )
