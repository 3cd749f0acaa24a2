"""What ORDER BY and DISTINCT ON mean in Postgres and DuckDB, written so that Spark reads the same.

ORDER BY 2, ORDER BY n          an output, by its number or its name, as in Spark
ORDER BY n + 1                  a column of the tables below; in Spark an output comes first
DISTINCT ON (1) … ORDER BY 1    likewise; in a window, where they are written, 1 is a constant
ROW_NUMBER() OVER ()            any order; Spark requires one
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.origins import Columns
from dagster_streamtables.compiler.dialect.rules.rule import Query
from dagster_streamtables.compiler.text.table_mentions import table_name

_NUMBERING = (
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile),
    *(exp.Lag, exp.Lead),
)
"""Window functions that Spark takes with an order alone."""


def normalize_orders(tree: exp.Query, columns: Columns) -> None:
    """
    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT DISTINCT ON (1) -a AS a FROM t ORDER BY 1", read="duckdb")
    >>> normalize_orders(tree, {})
    >>> tree.sql("duckdb")
    'SELECT DISTINCT ON (-a) -a AS a FROM t ORDER BY -t.a'
    """
    for select in list(tree.find_all(exp.Select)):
        for window in select.find_all(exp.Window):
            if window.find_ancestor(exp.Select) is select:
                _order_any(window, select)
        for item in _in_window(select):
            _name_number(item, select, columns)
        keys = first_of(select)
        for key in keys:
            key.replace(resolve_output(key, select))
        for item in order_items(select):
            if keys and not has_outer_order(select):
                item.set("this", resolve_output(item.this, select))
            elif select.args.get("distinct") and not keys:
                _number(item, select)
            for column in ambiguous_columns(item, select):
                column.set("table", _owner(column.name, select, columns))


def first_of(select: exp.Select) -> list[exp.Expr]:
    """The keys of DISTINCT ON."""
    distinct = select.args.get("distinct")
    on = distinct.args.get("on") if distinct is not None else None
    return [] if on is None else list(on.expressions)


def has_outer_order(select: exp.Select) -> bool:
    """Whether the order stays an ORDER BY after a window has taken it."""
    limited = select.args.get("limit") or select.args.get("offset")
    return bool(limited) or any(each.is_star for each in select.expressions)


def resolve_output(item: exp.Expr, select: exp.Select) -> exp.Expr:
    """The output that an item names or numbers, as an expression; else the item."""
    found = output_of(item, select)
    return item if found is None or found.find(exp.Window) else found.copy()


def output_of(item: exp.Expr, select: exp.Select) -> exp.Expr | None:
    """The expression of the output that an item names or numbers."""
    inner = item.unnest()
    outputs = select.expressions
    found: list[exp.Expr] = []
    if _is_number(inner):
        before = outputs[: int(inner.name)]
        found = [] if any(each.is_star for each in before) else before[int(inner.name) - 1 :]
    elif isinstance(inner, exp.Column) and not inner.table:
        named = [each for each in outputs if isinstance(each, exp.Alias)]
        found = [each for each in named if each.alias.lower() == inner.name.lower()]
    return found[0].unalias() if found else None


def require_clear_orders(select: exp.Select, query: Query) -> None:
    """Refuse a number that stands for a column of a star, and a column of an unknown table."""
    for item in _in_window(select):
        if _is_number(item) and resolve_output(item, select) is item:
            raise query.refusal(
                item, "in a window, as which Spark has it, it is a constant", "name the column"
            )
    for item in order_items(select) if has_outer_order(select) else ():
        for column in ambiguous_columns(item, select):
            raise query.refusal(column,
                                "in an expression, Spark takes it for the output of that name",
                                "write the name of its table before it")  # fmt: skip


def order_items(query: exp.Expr) -> list[exp.Ordered]:
    """The items of its ORDER BY."""
    order = query.args.get("order")
    return [] if order is None else list(order.expressions)


def _in_window(select: exp.Select) -> list[exp.Expr]:
    """What Spark has in a window: the keys and the order of DISTINCT ON, the order of WITH TIES."""
    keys = first_of(select)
    return [*keys, *(e.this for e in order_items(select))] if keys or has_ties(select) else []


def _is_number(item: exp.Expr) -> bool:
    inner = item.unnest()
    return isinstance(inner, exp.Literal) and inner.is_int


def _name_number(item: exp.Expr, select: exp.Select, columns: Columns) -> None:
    """Replace the number of a column of ``*`` by its name, if only one table has columns there."""
    star = isinstance(select.expressions[0], exp.Star) and not select.args.get("joins")
    table = select.args["from_"].this if star and select.args.get("from_") else None
    names = list(columns.get(table_name(table), ())) if isinstance(table, exp.Table) else []
    if _is_number(item):
        for name in names[int(item.unnest().name) - 1 : int(item.unnest().name)]:
            item.replace(exp.column(name, quoted=True))


def has_ties(select: exp.Select) -> bool:
    """Whether it ends with FETCH FIRST … WITH TIES."""
    limit = select.args.get("limit")
    options = limit.args.get("limit_options") if limit is not None else None
    return options is not None and bool(options.args.get("with_ties"))


def ambiguous_columns(item: exp.Expr, select: exp.Select) -> Iterator[exp.Column]:
    """The columns in an expression that Spark would take for outputs of the same name."""
    if isinstance(item.this.unnest(), exp.Column):
        return
    outputs = {each.alias.lower(): each.this for each in select.expressions if each.alias}
    for column in item.find_all(exp.Column):
        name = column.name.lower()
        output = outputs.get(name)
        own = column.find_ancestor(exp.Select) is select and not column.table
        same = isinstance(output, exp.Column) and output.name.lower() == name
        if own and output is not None and not same:
            yield column


def _owner(name: str, select: exp.Select, columns: Columns) -> exp.Identifier | None:
    """The table that has a column; None if it is not known."""
    joined = [each.this for each in select.args.get("joins") or []]
    tables = [select.args["from_"].this, *joined] if select.args.get("from_") else []
    known = [
        table
        for table in tables
        if isinstance(table, exp.Table)
        and name.lower() in map(str.lower, columns.get(table_name(table), {}))
    ]
    found = tables if len(tables) == 1 else known if len(known) == 1 else []
    return exp.to_identifier(found[0].alias_or_name) if found else None


def _number(item: exp.Expr, select: exp.Select) -> None:
    """Write an expression that DISTINCT returns as its number: Spark finds no columns there."""
    for number, output in enumerate(select.expressions, start=1):
        if output.unalias() == item.this and not isinstance(item.this, exp.Column):
            item.set("this", exp.Literal.number(number))
            return


def _order_any(window: exp.Expr, select: exp.Select) -> None:
    function = window.this.this if isinstance(window.this, exp.IgnoreNulls) else window.this
    if not isinstance(function, _NUMBERING) or window.args.get("order"):
        return
    named = [each for each in select.args.get("windows") or [] if each.name == window.alias]
    if window.alias and (not named or named[0].args.get("order")):
        return
    if named:
        window.set("partition_by", [e.copy() for e in named[0].args.get("partition_by") or []])
        window.set("alias", None)
    window.set("order", exp.Order(expressions=[exp.Ordered(this=exp.null())]))
