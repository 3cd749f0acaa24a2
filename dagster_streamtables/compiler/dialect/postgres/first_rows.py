"""First rows of Postgres: FETCH FIRST n ROWS WITH TIES, and DISTINCT ON with a star or a LIMIT.

    SELECT a FROM t ORDER BY b FETCH FIRST 2 ROWS WITH TIES
    SELECT a FROM t QUALIFY RANK() OVER (ORDER BY b) <= 2

In a QUALIFY over groups, Spark finds no aggregates; there, what is counted and what is ordered by
are columns of a subquery.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.postgres.json import compared as json_compared
from dagster_streamtables.compiler.dialect.rules import orders
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON
from dagster_streamtables.compiler.dialect.rules.query import Query, literal_int
from dagster_streamtables.compiler.text.aggregate_calls import has_groups

_NUMBER = "st_number"


def takes_ties(node: exp.Select) -> bool:
    """Whether WITH TIES can be rewritten: other forms are refused."""
    fetch = node.args.get("limit")
    plain = node.args.get("order") and not node.args.get("offset") and not node.args.get("distinct")
    known = isinstance(fetch, exp.Fetch) and literal_int(_count(fetch)) is not None
    return bool(orders.has_ties(node) and plain and known)


def _count(fetch: exp.Expr) -> exp.Expr:
    """FETCH FIRST ROW is one row."""
    return fetch.args.get("count") or exp.Literal.number(1)


def with_ties(node: exp.Select) -> exp.Select:
    """The rows whose rank is at most n."""
    count = _count(node.args["limit"]).copy()
    ranked = exp.Window(this=exp.Rank(), order=_window_order(node))
    node = node.copy()
    node.set("limit", None)
    return _filter_by_number(node, ranked, exp.LTE, count)


def of_each(node: exp.Select) -> exp.Select:
    """DISTINCT ON: a star stays, and a LIMIT applies after it."""
    keys = orders.first_of(node)
    by = exp.Order(expressions=[exp.Ordered(this=key.copy()) for key in keys])
    number = exp.Window(this=exp.RowNumber(), partition_by=[key.copy() for key in keys],
                        order=_window_order(node) if node.args.get("order") else by)  # fmt: skip
    node = node.copy()
    node.set("distinct", None)
    return _filter_by_number(node, number, exp.EQ, exp.Literal.number(1))


def rewrite_limit(node: exp.Expr, query: Query) -> exp.Expr | None:
    """LIMIT and FETCH, unless the SELECT around them rewrites WITH TIES."""
    if isinstance(node.parent, exp.Select) and takes_ties(node.parent):
        return None
    return COMMON.mended[type(node)](node, query)


def rewrite_order_item(node: exp.Expr, query: Query) -> exp.Expr | None:
    """An item of an ORDER BY: not by arrays or JSON, which Spark orders differently."""
    value = _value(node)
    if query.kind(value) is Kind.ARRAY:
        raise query.refusal(node, "Spark orders NULLs inside of arrays first",
                            "order by an element of it")  # fmt: skip
    if query.kind(value) is Kind.JSON:
        raise json_compared.order_error(node, query)
    return COMMON.mended[exp.Ordered](node, query)


def _value(item: exp.Expr) -> exp.Expr:
    """What an item orders by; of an order that does not matter, what is written."""
    around = item.parent.parent if item.parent is not None else None
    clauses = around.args if isinstance(around, exp.Query) else {}
    limited = clauses.get("limit") or clauses.get("offset")
    while isinstance(around, exp.SetOperation):
        around = around.left
    if not isinstance(around, exp.Select) or not (limited or orders.first_of(around)):
        return item.this
    output = orders.output_of(item.this, around)
    return item.this if output is None else output


def _window_order(node: exp.Select) -> exp.Order:
    """The order of a SELECT, for a window: by expressions in place of outputs."""
    order: exp.Order = node.args["order"].copy()
    for item in order.expressions:
        item.set("this", orders.resolve_output(item.this, node))
    return order


def _filter_by_number(
    node: exp.Select, number: exp.Window, compare: type[exp.Binary], other: exp.Expr
) -> exp.Select:
    """The rows whose number compares so."""
    if not has_groups(node):
        node.set("qualify", exp.Qualify(this=compare(this=number, expression=other)))
        return node
    hidden = {_NUMBER: number}
    around = exp.select("*").where(compare(this=exp.column(_NUMBER), expression=other))
    order = _window_order(node) if node.args.get("order") else exp.Order(expressions=[])
    for place, item in enumerate(order.expressions):
        hidden[f"{_NUMBER}_{place}"] = item.this.copy()
        item.set("this", exp.column(f"{_NUMBER}_{place}"))
    for name in ("order", "limit", "offset", "with_"):
        clause = node.args.get(name)
        if clause is not None:
            around.set(name, order if name == "order" else clause.pop())
            node.set(name, None)
    for name, value in hidden.items():
        node.select(exp.alias_(value, name), copy=False)
    around.selects[0].set("except_", [exp.column(name) for name in hidden])
    return around.from_(
        exp.Subquery(this=node, alias=exp.TableAlias(this=exp.to_identifier("st_t")))
    )
