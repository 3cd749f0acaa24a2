"""SQL for columns, whose names are always quoted, for tables, weights, hints and typed values."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

WEIGHT = "__weight"
_OURS = frozenset((WEIGHT, "__goes", "__row", "__side", "__n", "__close"))


def is_reserved_name(name: str) -> bool:
    """Whether a column of this name would meet one that is added while a change is computed,
    written or compared, or one that a stream table hides."""
    return name.lower().startswith("__st_") or name.lower() in _OURS


def column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def column_names(*expressions: exp.Expr) -> set[str]:
    return {each.name for part in expressions for each in part.find_all(exp.Column)}


def weight_column(table: str | None = None) -> exp.Column:
    return exp.column(WEIGHT, table=table)


def table(name: str, alias: str | None = None) -> exp.Table:
    this = exp.TableAlias(this=exp.to_identifier(alias)) if alias is not None else None
    return exp.Table(this=exp.to_identifier(name), alias=this)


def all_of(alias: str) -> exp.Column:
    return exp.Column(this=exp.Star(), table=exp.to_identifier(alias))


def select(*items: exp.Expr) -> exp.Select:
    """SELECT without copying the items, which must belong to no other statement.

    By default, sqlglot copies at every call and parses strings. The statement of a change has
    about a hundred steps, and both would take most of the compile time.
    """
    return exp.select(*items, copy=False)


def broadcast(query: exp.Select, alias: str) -> exp.Select:
    """Hint that Spark should broadcast one table of the query.

    https://spark.apache.org/docs/latest/sql-ref-syntax-qry-select-hints.html
    """
    hint = exp.Anonymous(this="BROADCAST", expressions=[exp.to_identifier(alias)])
    query.set("hint", exp.Hint(expressions=[hint]))
    return query


def as_weight(expression: exp.Expr) -> exp.Expr:
    return exp.alias_(expression, WEIGHT)


def as_column(expression: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(expression.copy(), name, quoted=True, copy=False)


def is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.null())


def within(expression: exp.Expr, table: str) -> exp.Expr:
    """`expression` with every column read from `table`."""
    return map_columns(expression, lambda each: column(each.name, table))


def map_columns(expression: exp.Expr, new: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """A copy of the expression with `new` of each of its columns instead."""

    def settle(node: exp.Expr) -> exp.Expr:
        return new(node) if isinstance(node, exp.Column) else node

    return expression.transform(settle)


def type_of(expression: exp.Expr) -> exp.DataType:
    """The type that `bind` gave the expression; UNKNOWN if it could not tell."""
    return expression.type or exp.DataType.build("UNKNOWN")


def typed(expression: exp.Expr, type_: exp.DataType) -> exp.Expr:
    expression.type = type_
    return expression
