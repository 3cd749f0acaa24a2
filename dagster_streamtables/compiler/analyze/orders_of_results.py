"""First rows of a result, in an order that is more than names of its columns: one query around it.

    SELECT DISTINCT a FROM t ORDER BY LOWER(a) LIMIT 3
    SELECT * FROM (SELECT DISTINCT a FROM t) ORDER BY LOWER(a) LIMIT 3

    SELECT a, b FROM t ORDER BY ALL DESC LIMIT 3
    SELECT a, b FROM t ORDER BY a DESC, b DESC LIMIT 3

The ORDER BY of a plain SELECT sees the rows below it, too, so what orders them can be computed
beside its outputs. That of a set operation, of a query in parentheses and of DISTINCT sees the
columns of the result alone; what orders by them is computed from the result.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.analyze.groups import ALL, column_of_all, no_column_of_all
from dagster_streamtables.compiler.scope.from_columns import FromColumns
from dagster_streamtables.compiler.text.tables import own_aliases

_LAST = ("order", "limit", "offset")
"""The clauses that stand over the result."""


def desugar_orders(tree: exp.Query) -> exp.Query:
    """The tree, with a query of its own for each such order."""
    for query in list(tree.find_all(exp.Query)):
        if _needs_a_query(query):
            around = _around(query)
            tree = around if query is tree else tree
    return tree


def _needs_a_query(query: exp.Query) -> bool:
    if isinstance(query, exp.Subquery):
        return any(query.args.get(name) is not None for name in _LAST)
    alone = isinstance(query, exp.SetOperation) or query.args.get("distinct") is not None
    return alone and not all(_is_column(each, query) for each in _items(query))


def _items(query: exp.Query) -> list[exp.Expr]:
    order = query.args.get("order")
    return [each.this for each in order.expressions] if order else []


def _is_column(item: exp.Expr, query: exp.Query) -> bool:
    """Whether it is a column of the result, by its name or its number, or ALL of them."""
    if isinstance(item, exp.Column):
        own = isinstance(query, exp.Select) and item.table.lower() in _tables(query)
        return own or not item.table
    return isinstance(item, exp.Literal | exp.Var)


def _around(query: exp.Query) -> exp.Select:
    """Put a query with the last clauses around it, in its place."""
    around = exp.select("*")
    if query.parent is not None:
        query.replace(around)
    for name in ("with_", *_LAST):
        clause = query.args.get(name)
        if clause is not None:
            around.set(name, clause.pop())
    _name_columns(around, _first(query))
    result = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
    return around.from_(result, copy=False)


def _first(query: exp.Expr) -> exp.Expr:
    """The SELECT that names the columns of the result."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.left if isinstance(query, exp.SetOperation) else query.this
    return query


def _tables(first: exp.Expr) -> set[str]:
    """The tables whose columns an order may mention with the table before the name.

    A struct of the result is none: s.f is its field.
    """
    if not isinstance(first, exp.Select):
        return set()
    outputs = {each.alias_or_name.lower() for each in first.expressions}
    return {each.lower() for each in own_aliases(first)} - outputs


def _name_columns(around: exp.Select, first: exp.Expr) -> None:
    """Write t.a as a, and 2 as the second name: around the query, neither means it."""
    tables, outputs = _tables(first), first.expressions
    numbered = [] if any(each.is_star for each in outputs) else outputs
    for item in around.args["order"].expressions if around.args.get("order") else ():
        for node in list(item.find_all(exp.Column)):
            if node.table.lower() in tables and node.find_ancestor(exp.Query) is around:
                node.set("table", None)
        if isinstance(item.this, exp.Literal) and item.this.is_int:
            for named in numbered[int(item.this.name) - 1 : int(item.this.name)]:
                item.set("this", exp.column(named.alias_or_name, quoted=True))


def expand_order_by_all(query: exp.Query, columns: FromColumns) -> None:
    """Replace ORDER BY ALL by the columns of the result, unless a column is called `all`: one of
    the result, or else, below a plain SELECT, one of its tables.

    Args:
        query: It is changed; its outputs are resolved.
        columns: Those of its FROM clause.

    Raises:
        Refusal: `all` stands beside others, and no column has the name.
    """
    order = query.args.get("order")
    if order is None:
        return
    for item in order.expressions:
        if not isinstance(item.this, exp.Var):
            continue
        column = _column_of_name_all(query, columns)
        if column is not None:
            item.set("this", column)
        elif len(order.expressions) > 1:
            raise no_column_of_all(order)
        else:
            order.meta[_ALL] = True
            order.set("expressions", [_order_item_like(item, each) for each in query.selects])


def _column_of_name_all(query: exp.Query, columns: FromColumns) -> exp.Expr | None:
    names = (each.alias_or_name for each in query.selects)
    output = next((name for name in names if name.lower() == ALL), None)
    if output is not None:
        return exp.column(output, quoted=True)
    if isinstance(query, exp.Select) and not query.args.get("distinct"):
        return column_of_all(columns)
    return None


def _order_item_like(item: exp.Ordered, output: exp.Expr) -> exp.Ordered:
    new = item.copy()
    new.set("this", exp.column(output.alias_or_name, quoted=True))
    return new


def is_of_all(order: exp.Expr) -> bool:
    """Whether ORDER BY ALL was written: there is no further column that could tell rows apart."""
    return bool(order.meta.get(_ALL))


def columns_of_order(query: exp.Query) -> set[str]:
    """The columns of the result that its ORDER BY names; `query` is qualified."""
    names = {each.alias_or_name for each in query.selects}
    items = [each for each in _items(query) if isinstance(each, exp.Column) and not each.table]
    return {each.name for each in items} & names


_ALL = "order by all"
