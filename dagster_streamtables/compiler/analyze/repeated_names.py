"""Columns of one name in a query inside of another: each gets a name that nothing mentions.

    FROM (SELECT * FROM a JOIN b ON …) AS x
    FROM (SELECT a.id AS st_same_0_id, a.n AS n, b.id AS st_same_2_id FROM a JOIN b ON …) AS x

To mention such a column is ambiguous, to have it is not: Spark goes by position, and operators by
name. The output of the whole query is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import Schema

from dagster_streamtables.compiler.text.column_names import JOINED, SAME
from dagster_streamtables.compiler.text.spark import DIALECT


def tell_apart(tree: exp.Query, schema: Schema) -> None:
    """
    Args:
        tree: It is changed.
        schema: The columns of the tables in it.
    """
    outermost: exp.Expr = tree
    while isinstance(outermost, exp.SetOperation | exp.Subquery):
        outermost = outermost.this
    for select in _from_inside(tree):
        if select is not outermost and not _is_settled_later(select):
            _tell_apart(select, schema)


def _from_inside(node: exp.Expr) -> Iterator[exp.Select]:
    """What a SELECT reads comes before it."""
    clause = node.args.get("with_")
    if isinstance(clause, exp.Expr):
        yield from _from_inside(clause)
    for each in list(node.iter_expressions()):
        if each is not clause:
            yield from _from_inside(each)
    if isinstance(node, exp.Select):
        yield node


def _is_settled_later(select: exp.Select) -> bool:
    """Whether it stands for joins in parentheses, see `joins_by_name`."""
    return isinstance(select.parent, exp.Subquery) and select.parent.alias.startswith(JOINED)


def _tell_apart(select: exp.Select, schema: Schema) -> None:
    items = _items(select, schema)
    count = Counter(each.alias_or_name.lower() for each in items if each.alias_or_name)
    if all(n == 1 for n in count.values()):
        return
    for number, item in enumerate(items):
        name = item.alias_or_name.lower()
        if count[name] > 1:
            other = f"{SAME}{number}_{name}"
            items[number] = exp.alias_(item.unalias().copy(), other, quoted=True)
    select.set("expressions", items)


def _items(select: exp.Select, schema: Schema) -> list[exp.Expr]:
    """The outputs, with columns in the place of a star that may repeat a name."""
    outputs = select.expressions
    alone = len(outputs) == 1 and not (select.args.get("joins") or select.args.get("laterals"))
    if alone or not any(each.is_star for each in outputs):
        return list(outputs)
    apart = select.copy()
    apart.set("with_", _definitions(select))
    try:
        qualify(apart, schema=schema, dialect=DIALECT, quote_identifiers=False)
    except SqlglotError:
        # It mentions a row of the query around it, or there is an error, which is told there.
        return []
    return list(apart.selects)


def _definitions(select: exp.Select) -> exp.With | None:
    """What WITH defines for it, in its own query and in those around it."""
    found = dict[str, exp.CTE]()
    around: exp.Expr | None = select
    inside: exp.Expr | None = None
    while around is not None:
        clause = around.args.get("with_")
        if isinstance(clause, exp.With):
            before = list[exp.CTE]()
            for cte in clause.expressions:
                if cte is inside:
                    break
                before.append(cte)
            found = {each.alias.lower(): each.copy() for each in before} | found
        inside = around if isinstance(around, exp.CTE) else inside
        around = around.parent
    return exp.With(expressions=list(found.values())) if found else None
