"""Joins by USING and NATURAL, written with ON, and what their FROM clause means for the rest.

    SELECT *, k FROM a FULL JOIN b USING (k) LEFT JOIN d USING (k) GROUP BY k
    SELECT COALESCE(a.k, b.k) AS k, a.x AS x, b.y AS y, d.z AS z, COALESCE(a.k, b.k) AS k
        FROM a FULL JOIN b ON a.k = b.k LEFT JOIN d ON COALESCE(a.k, b.k) = d.k
        GROUP BY COALESCE(a.k, b.k)

The qualifier of sqlglot takes the first table that has a merged column for all of them. So in a
SELECT with such a join, each star and each unqualified column is resolved here, by `Scopes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import suppress

from sqlglot import exp

from dagster_streamtables.compiler.analyze.stars import (
    replace_star,
    stars_in_expressions,
)
from dagster_streamtables.compiler.scope.from_columns import (
    HALF,
    FromColumn,
    FromColumns,
    Scopes,
    Step,
    holds,
    is_by_name,
    name_tables,
)
from dagster_streamtables.compiler.text.aliases import own_aliases
from dagster_streamtables.compiler.text.places import Refusal

_BY_OUTPUTS = ("order", "sort", "qualify")
"""Clauses in which a name means an output before it means a column of FROM."""
_BY_COLUMNS = ("expressions", "distinct", "where", "group", "windows", "distribute", "cluster")


def resolve_joins_by_name(select: exp.Select, scopes: Scopes) -> None:
    """Write such joins with ON, and resolve what the SELECT reads of them.

    Args:
        select: It is changed. What it reads is resolved: no relation has two columns of one name.
        scopes: The columns of the FROM clauses in the query around it.

    Raises:
        Refusal: The columns of a relation are not known.
        OptimizeError: USING names a column that one side does not have.
    """
    name_tables(select)
    columns = scopes.columns(select)
    for step in scopes.steps(select):
        _resolve_step(step, select, scopes)
    _expand_stars(select, scopes)
    names = {each.alias_or_name.lower() for each in select.expressions}
    for clause in _BY_COLUMNS:
        _resolve(select.args.get(clause), columns, select, scopes)
    keys = _keys(select)
    for clause in _BY_OUTPUTS:
        _resolve(select.args.get(clause), columns, select, scopes, left=names)
    grouped = {each.name.lower() for each in columns.visible if each.value in keys}
    _resolve(select.args.get("having"), columns, select, scopes, left=names - grouped)


def resolve_half_joins(select: exp.Select, scopes: Scopes) -> None:
    """Resolve what subqueries in ON of SEMI and ANTI joins read of its right side.

    The qualifier of sqlglot shows them only the left one.

    Args:
        select: It is changed.
        scopes: The columns of the FROM clauses in the query around it.
    """
    joins: list[exp.Join] = select.args.get("joins") or []
    halves = [each for each in joins if each.kind in HALF and _asks(each.args.get("on"))]
    if not halves:
        return
    name_tables(select)
    with suppress(Refusal):
        for step in scopes.steps(select):
            if any(step.node is each for each in halves):
                seen = step.before.beside(step.added)
                _resolve(step.node.args["on"], seen, select, scopes)


def _asks(condition: exp.Expr | None) -> bool:
    return condition is not None and condition.find(exp.Query) is not None


def _resolve_step(step: Step, select: exp.Select, scopes: Scopes) -> None:
    node = step.node
    if isinstance(node, exp.Lateral):
        _resolve(node.this, step.before, select, scopes)
        return
    if isinstance(node.this, exp.Lateral):
        _resolve(node.this.this, step.before, select, scopes)
    _resolve(node.args.get("on"), step.before.beside(step.added), select, scopes)
    if is_by_name(node):
        same = [exp.EQ(this=a.value.copy(), expression=b.value.copy()) for a, b in step.merged]
        node.set("on", exp.and_(*same, copy=False) if same else exp.true())
        node.set("using", None)
        node.set("method", None)


def _expand_stars(select: exp.Select, scopes: Scopes) -> None:
    tables = {alias.lower() for alias in own_aliases(select)}
    for star in stars_in_expressions(select):
        if not isinstance(star, exp.Column) or star.table.lower() in tables:
            replace_star(star, [_item(each, star) for each in scopes.expand(star, select)])
    items = list[exp.Expr]()
    for item in select.expressions:
        if item.is_star and (isinstance(item, exp.Star) or item.text("table").lower() in tables):
            items += [_item(each, item) for each in scopes.expand(item, select)]
        else:
            items.append(item)
    select.set("expressions", items)


def _item(column: FromColumn, star: exp.Expr) -> exp.Expr:
    output = column.as_output()
    _at(star, output.this)
    return output


def _resolve(
    clause: exp.Expr | list[exp.Expr] | None,
    columns: FromColumns,
    select: exp.Select,
    scopes: Scopes,
    *,
    left: Set[str] = frozenset(),
) -> None:
    """Write what each unqualified column in a clause means.

    Args:
        clause: It is changed.
        columns: What the clause sees.
        select: The SELECT that it belongs to.
        scopes: The columns of the FROM clauses in it.
        left: Names that are left as they are, in lower case.
    """
    parts = clause if isinstance(clause, list) else [clause] if clause is not None else []
    mentions = [each for part in parts for each in part.find_all(exp.Column)]
    for mention in mentions:
        path = [part.name for part in mention.parts]
        if isinstance(mention.this, exp.Star) or path[0].lower() in left:
            continue
        found = columns.find(path[0])
        if len(found) != 1 or _is_qualified(mention, select):
            continue
        if any(_has(inside, mention, scopes) for inside in _inside(mention, select)):
            continue
        value = _at(mention, found[0].value.copy())
        for field in mention.parts[1:]:
            value = exp.Dot(this=value, expression=field.copy())
        named = mention.parent is select and mention.arg_key == "expressions"
        mention.replace(exp.alias_(value, path[-1], quoted=True) if named else value)


def _is_qualified(mention: exp.Column, select: exp.Select) -> bool:
    """Whether its first part names a table, of this SELECT or of one around or inside of it."""
    here: exp.Expr | None = mention.find_ancestor(exp.Select)
    first = mention.parts[0].name.lower()
    while len(mention.parts) > 1 and isinstance(here, exp.Select):
        if first in map(str.lower, own_aliases(here)):
            return True
        here = None if here is select else here.find_ancestor(exp.Select)
    return False


def _inside(mention: exp.Column, select: exp.Select) -> Iterator[exp.Select]:
    """The SELECTs around a mention that are in a subquery of this one."""
    here = mention.find_ancestor(exp.Select)
    while here is not None and here is not select:
        yield here
        here = here.find_ancestor(exp.Select)


def _has(inside: exp.Select, mention: exp.Column, scopes: Scopes) -> bool:
    """Whether a name means a column, or an output, of a SELECT in a subquery."""
    name = mention.parts[0].name.lower()
    try:
        if scopes.columns(inside).find(name):
            return True
    except Refusal:  # of a table function whose columns only the qualifier tells
        return True
    made = [each for each in inside.expressions if isinstance(each, exp.Alias)]
    return any(each.alias.lower() == name for each in made if not holds(each, mention))


def _keys(select: exp.Select) -> list[exp.Expr]:
    group = select.args.get("group")
    return list(group.find_all(exp.Column, exp.Coalesce)) if group is not None else []


def _at(place: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value with the position of the author's words for it."""
    word = place.this if isinstance(place, exp.Column) else place
    meta = next((each.meta for each in (word, *place.find_all(exp.Identifier)) if each.meta), {})
    for name in value.find_all(exp.Identifier):
        name.meta.update(meta)
    return value
