"""The syntax of subqueries: find those of an expression, and bring them to a normal form."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dagster_streamtables.compiler.analyze.from_relations import joins_inside
from dagster_streamtables.compiler.lower.scope import Scope, rewrite_expression
from dagster_streamtables.compiler.operators.joins import conjuncts
from dagster_streamtables.compiler.operators.sql_builders import map_columns, type_of, typed
from dagster_streamtables.compiler.text.current_time import is_now
from dagster_streamtables.compiler.text.group_by import has_groups
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.table_mentions import free_tables, own_aliases


def is_subquery(node: exp.Expr) -> bool:
    if isinstance(node, exp.Not):
        # One subquery, as in Spark: NULLs matter to NOT x IN (…) even if x IN (…) ignores them.
        return isinstance(node.this.unnest(), exp.In) and is_subquery(node.this.unnest())
    if isinstance(node, exp.In):
        return bool(node.args.get("query"))
    if isinstance(node, exp.Exists):
        return isinstance(node.this, exp.Query)
    return isinstance(node, exp.Subquery)


def negations_inward(expression: exp.Expr) -> exp.Expr:
    """Move NOT inward to single subqueries, as Spark's optimizer does."""

    def settle(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Not) or not node.find(exp.Query):
            return node
        inner = node.this.unnest()
        if isinstance(inner, exp.Not):
            return settle(inner.this.unnest().copy())
        if isinstance(inner, exp.And | exp.Or):
            other = exp.or_ if isinstance(inner, exp.And) else exp.and_
            sides = (settle(exp.Not(this=side.copy())) for side in (inner.left, inner.right))
            return exp.paren(other(*sides))
        return node

    return rewrite_expression(expression, settle)


def outermost_subqueries(expression: exp.Expr) -> Iterator[exp.Expr]:
    if is_subquery(expression):
        yield expression
        return
    for each in expression.iter_expressions():
        yield from outermost_subqueries(each)


def type_of_result(node: exp.Expr) -> exp.DataType:
    if isinstance(node, exp.Subquery):
        return type_of(node.this.selects[0]) if node.this.selects else type_of(node)
    return exp.DataType.build("boolean")


def unwrap_subquery(query: exp.Expr) -> exp.Expr:
    while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        query = query.this
    return query


def without_order(query: exp.Expr) -> exp.Expr:
    query = unwrap_subquery(query).copy()
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if not offset and (not limit or (limit.expression.is_int and int(limit.expression.name) > 0)):
        query.set("order", None)
        query.set("limit", None)
    return query


def without_list(query: exp.Expr) -> exp.Expr:
    """The query of EXISTS with a constant in its SELECT list, whose values EXISTS ignores.

    A SELECT that returns one row for all its rows still does.
    """
    if not isinstance(query, exp.Select) or any(map(query.args.get, _OF_LIST)):
        return query
    if query.args.get("distinct") and query.args.get("offset"):
        return query
    query = query.copy()
    is_one_row = has_groups(query) and not query.args.get("group")
    one = exp.Count(this=exp.Star()) if is_one_row else exp.Literal.number(1)
    type_ = exp.DataType.build("bigint" if is_one_row else "int")
    query.set("expressions", [exp.alias_(typed(one, type_), "one", quoted=True)])
    query.set("distinct", None)
    return query


_OF_LIST = ("order", "qualify")
"""Clauses that may name columns of the SELECT list."""


def is_of_row(query: exp.Expr) -> bool:
    """Whether a correlated subquery reads nothing but the row: its FROM is a table function."""
    reads = (isinstance(each.this, exp.Identifier) for each in query.find_all(exp.Table))
    others = (isinstance(each, exp.Lateral) or is_now(each) for each in query.walk())
    return not any(reads) and not any(others)


def require_no_values(query: exp.Expr) -> None:
    """Refuse VALUES that mention a column of a query around."""
    for values in query.find_all(exp.Values):
        mentioned = values.find(exp.Column)
        if mentioned is not None:
            raise Refusal(
                mentioned,
                "VALUES with a column of an outer query",
                why="Spark computes the rows of VALUES before all others, in mode FULL too",
                fix="unfold an array of the values: FROM explode(array(t.a, t.b)) AS v(x)",
            )


def flatten_row_columns(query: exp.Expr, scope: Scope) -> exp.Query:
    """A subquery for which `is_of_row`, with flat names for the columns of the row."""
    require_no_values(query)
    own = {alias for each in query.find_all(exp.Select) for alias in own_aliases(each)}
    around = set(scope.tables) - own
    new = map_columns(query, lambda each: scope.flat(each) if each.table in around else each)
    assert isinstance(new, exp.Query)
    return new


def flat_clauses(shell: exp.Select, scope: Scope) -> exp.Select:
    """The clauses of a SELECT after FROM and WHERE, with flat names."""
    for key, value in list(shell.args.items()):
        if isinstance(value, exp.Expr):
            shell.set(key, scope.flat(value))
        elif isinstance(value, list):
            shell.set(key, [scope.flat(v) if isinstance(v, exp.Expr) else v for v in value])
    return shell


def conditions_in_where(query: exp.Select, around: set[str]) -> exp.Select:
    """The query with the conditions of its inner joins that mention the outer row in WHERE."""
    query = query.copy()
    if any(join.side or joins_inside(join) for join in joins_of(query)):
        return query
    for join in joins_of(query):
        parts = conjuncts(join.args["on"]) if join.args.get("on") else []
        moved = [part for part in parts if free_tables(part) & around]
        if moved and join.kind in ("", "INNER"):
            kept = [part for part in parts if part not in moved]
            join.set("on", exp.and_(*kept) if kept else exp.true())
            query = query.where(*moved)
    return query


def mentions_row(query: exp.Select, around: set[str]) -> bool:
    """Whether a derived table, a table function or ON mentions a table around."""
    clause = query.args.get("from_")
    relations = [clause.this] if clause else []
    relations += [join.this for join in joins_of(query)]
    conditions = [join.args["on"] for join in joins_of(query) if join.args.get("on")]
    derived = (each for each in relations if not isinstance(each, exp.Lateral))
    return any(free_tables(each) & around for each in (*derived, *conditions))


def joins_of(query: exp.Select) -> list[exp.Join]:
    return list(query.args.get("joins") or [])
