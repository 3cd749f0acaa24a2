"""Columns of one name in a query inside of another: each gets a name that nothing mentions.

    FROM (SELECT * FROM a JOIN b ON …) AS x
    FROM (SELECT a.id AS st_same_0_id, a.n AS n, b.id AS st_same_2_id FROM a JOIN b ON …) AS x

To mention such a column is ambiguous, to have it is not: Spark goes by position, and operators by
name. The output of the whole query is left as it is.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp
from sqlglot.schema import Schema

from dagster_streamtables.compiler.analyze.joins_by_name import (
    resolve_half_joins,
    resolve_joins_by_name,
)
from dagster_streamtables.compiler.analyze.joins_in_parentheses import open_joins
from dagster_streamtables.compiler.analyze.stars import (
    from_inside,
    outputs_alone,
    require_spelled_out,
    spell_out_inner_stars,
)
from dagster_streamtables.compiler.scope.from_columns import (
    Scopes,
    joins_by_name,
    name_tables,
)
from dagster_streamtables.compiler.scope.outer_columns import (
    expand_outer_stars,
    qualify_outer_columns,
)
from dagster_streamtables.compiler.text.column_names import SAME
from dagster_streamtables.compiler.text.places import Refusal


def settle_columns(tree: exp.Query, schema: Schema, scopes: Scopes) -> None:
    """Tell columns of one name apart, resolve joins by names, and spell out stars in expressions.

    Args:
        tree: It is changed.
        schema: The columns of the tables in it.
        scopes: The columns of its FROM clauses.
    """
    outermost: exp.Expr = tree
    while isinstance(outermost, exp.SetOperation | exp.Subquery):
        outermost = outermost.this
    for select in from_inside(tree):
        if joins_by_name(select):
            resolve_joins_by_name(select, scopes)
            open_joins(select)
        else:
            resolve_half_joins(select, scopes)
        qualify_outer_columns(select, scopes)
        expand_outer_stars(select, scopes)
        spell_out_inner_stars(select, schema, scopes)
        if select is not outermost:
            _tell_apart(select, schema, scopes)
    require_spelled_out(tree)


def _tell_apart(select: exp.Select, schema: Schema, scopes: Scopes) -> None:
    items = _items(select, schema, scopes)
    count = Counter(each.alias_or_name.lower() for each in items if each.alias_or_name)
    if all(n == 1 for n in count.values()):
        return
    for number, item in enumerate(items):
        name = item.alias_or_name.lower()
        if count[name] > 1:
            other = f"{SAME}{number}_{name}"
            items[number] = exp.alias_(item.unalias().copy(), other, quoted=True)
    select.set("expressions", items)


def _items(select: exp.Select, schema: Schema, scopes: Scopes) -> list[exp.Expr]:
    """The outputs, with columns in the place of a star that may repeat a name."""
    outputs = select.expressions
    alone = len(outputs) == 1 and not (select.args.get("joins") or select.args.get("laterals"))
    if alone or not any(each.is_star for each in outputs):
        return list(outputs)
    name_tables(select)
    found = outputs_alone(select, outputs, schema)
    if found is not None:
        return found
    try:  # the FROM clause mentions a row of the query around
        parts = [_columns(each, select, scopes) for each in outputs]
    except Refusal:  # which is told elsewhere
        return []
    return [column for part in parts for column in part]


def _columns(item: exp.Expr, select: exp.Select, scopes: Scopes) -> list[exp.Expr]:
    is_star = item.is_star and isinstance(item, exp.Star | exp.Column)
    return [c.as_output() for c in scopes.expand(item, select)] if is_star else [item]
