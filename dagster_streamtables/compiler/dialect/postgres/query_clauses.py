"""Clauses of Postgres: first rows, windows, rows of values, IN as a value, and groups.

FETCH FIRST n ROWS WITH TIES, and DISTINCT ON with a star or a LIMIT, become a QUALIFY:

    SELECT a FROM t ORDER BY b FETCH FIRST 2 ROWS WITH TIES
    SELECT a FROM t QUALIFY RANK() OVER (ORDER BY b) <= 2

In a QUALIFY over groups, Spark finds no aggregates; there, the number and the keys of the order are
columns of a subquery.

A window that adds to a named one, ``OVER (w ROWS 1 PRECEDING)``, is written whole.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.postgres import time_differences
from dagster_streamtables.compiler.dialect.postgres.json import json_text as json_compared
from dagster_streamtables.compiler.dialect.rules import instants, orders
from dagster_streamtables.compiler.dialect.rules.dialect import COMMON, Rules, row
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    from_template,
    literal_int,
    outer_node,
)
from dagster_streamtables.compiler.text.group_by import has_groups

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
    return COMMON.rewrites[type(node)](node, query)


def rewrite_order_item(node: exp.Expr, query: Query) -> exp.Expr | None:
    """An item of an ORDER BY: not by arrays or JSON, which Spark orders differently."""
    value = _value(node)
    if query.kind(value) is Kind.ARRAY:
        raise query.refusal(node, "Spark orders NULLs inside of arrays first",
                            "order by an element of it")  # fmt: skip
    if query.kind(value) is Kind.JSON:
        raise json_compared.order_error(node, query)
    return COMMON.rewrites[exp.Ordered](node, query)


def _value(item: exp.Expr) -> exp.Expr:
    """The expression that an item orders by; as written if the order does not matter."""
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
    """The order of a SELECT, for a window: by expressions instead of outputs."""
    order: exp.Order = node.args["order"].copy()
    for item in order.expressions:
        item.set("this", orders.resolve_output(item.this, node))
    return order


def _filter_by_number(
    node: exp.Select, number: exp.Window, compare: type[exp.Binary], other: exp.Expr
) -> exp.Select:
    """The rows whose number passes the comparison."""
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


_OWN = ("partition_by", "order", "spec")


def complete_windows(tree: exp.Query) -> None:
    """Write each window whole that adds to another. A name alone stays: Spark also has it.

    >>> import sqlglot
    >>> text = "SELECT SUM(x) OVER (w ROWS 1 PRECEDING) FROM t WINDOW w AS (ORDER BY y)"
    >>> tree = sqlglot.parse_one(text, dialect="postgres")
    >>> complete_windows(tree)
    >>> tree.selects[0].sql("postgres")
    'SUM(x) OVER (ORDER BY y ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)'
    """
    for select in tree.find_all(exp.Select):
        named: dict[str, exp.Expr] = {}
        for each in select.args.get("windows") or []:
            _complete(each, named)  # also WINDOW v AS (w), to which others may add
            named[each.name.lower()] = each
        for each in select.find_all(exp.Window):
            adds = any(each.args.get(part) for part in _OWN)
            if adds and each.find_ancestor(exp.Select) is select:
                _complete(each, named)


def _complete(window: exp.Expr, named: dict[str, exp.Expr]) -> None:
    base = named.get(window.alias.lower())
    if base is None:
        return
    for part in ("partition_by", "order"):
        found = base.args.get(part)
        if found and not window.args.get(part):
            copies = [each.copy() for each in found] if isinstance(found, list) else found.copy()
            window.set(part, copies)
    window.set("alias", None)


def frame(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The frame of a window; over instants not of 24 hours or more, which Spark takes for days."""
    terms = orders.order_items(node.parent) if node.parent is not None else []
    kinds = {query.kind(term.this) for term in terms}
    for end in (node.args.get("start"), node.args.get("end")):
        if Kind.INSTANT in kinds and isinstance(end, exp.Expr) and instants.is_long(end):
            raise query.refusal(end, instants.DAYS, "count days, or hours below 24")
    return COMMON.rewrites[exp.WindowSpec](node, query)


def select(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A SELECT: its outputs get the names that they have in Postgres."""
    assert isinstance(node, exp.Select)
    time_differences.show_differences(node, query)
    orders.require_clear_orders(node, query)
    if takes_ties(node):
        return with_ties(node)
    if orders.first_of(node) and orders.has_outer_order(node):
        return of_each(node)
    return COMMON.rewrites[exp.Select](node, query)


def compare_rows(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``(a, b) < (c, d)``: the first columns that differ decide."""
    left, right = node.this.unnest(), node.args["expression"].unnest()
    if not isinstance(left, exp.Tuple) or not isinstance(right, exp.Tuple):
        return None
    strict = exp.LT if isinstance(node, exp.LT | exp.LTE) else exp.GT
    pairs = list(zip(left.expressions, right.expressions, strict=True))
    a, b = pairs[-1]
    found: exp.Expr = type(node)(this=a.copy(), expression=b.copy())
    for a, b in reversed(pairs[:-1]):
        first = strict(this=a.copy(), expression=b.copy())
        equal = exp.EQ(this=a.copy(), expression=b.copy())
        found = exp.or_(first, exp.and_(equal, exp.paren(found)))
    return exp.paren(found)


def rewrite_row(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A row of values in a comparison with another is rewritten by the comparison; one that is
    counted is a struct, in which NULLs are equal, as in Postgres."""
    if isinstance(node.parent, exp.Distinct) and isinstance(node.parent.parent, exp.Count):
        named = [part for place, each in enumerate(node.expressions)
                 for part in (exp.Literal.string(f"c{place}"), each.copy())]  # fmt: skip
        return exp.Anonymous(this="NAMED_STRUCT", expressions=named)
    around = outer_node(node)
    if isinstance(around, exp.Overlaps):
        return None
    if not isinstance(around, exp.LT | exp.LTE | exp.GT | exp.GTE) or not all(
        isinstance(around.args[name].unnest(), exp.Tuple) for name in ("this", "expression")
    ):
        row(node, query)
    return None


def name_functions(tree: exp.Query) -> None:
    """A function in FROM without an alias has its own name as one."""
    for node in tree.find_all(exp.Table, exp.Lateral):
        function = node.this
        if isinstance(function, exp.Anonymous) and not node.args.get("alias"):
            node.set("alias", exp.TableAlias(this=exp.to_identifier(function.name.lower())))


def between(node: exp.Expr, query: Query) -> exp.Expr | None:
    """SYMMETRIC: the ends may come in either order."""
    if not node.args.get("symmetric"):
        return None
    ends = {"x": node.this, "a": node.args["low"], "b": node.args["high"]}
    return from_template("(_x BETWEEN _a AND _b OR _x BETWEEN _b AND _a)", **ends)


def rewrite_in(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``x IN (SELECT …)`` as a value: NULL if the result is not known, and FALSE in Spark."""
    subquery = node.args.get("query")
    if subquery is None or _is_condition(node):
        return COMMON.rewrites[exp.In](node, query)
    return _as_value(node, subquery.unnest(), query)


def any_of(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``x = ANY (SELECT …)`` and ``x <> ALL (SELECT …)`` as values."""
    right = node.args["expression"]
    inner = right.this.unnest() if isinstance(right, exp.Any | exp.All) else None
    same = isinstance(node, exp.EQ) == isinstance(right, exp.Any)
    if not isinstance(inner, exp.Query) or not same or _is_condition(node):
        return None
    found = _as_value(node, inner, query)
    return exp.Not(this=exp.paren(found)) if isinstance(node, exp.NEQ) else found


def _as_value(node: exp.Expr, inner: exp.Expr, query: Query) -> exp.Expr:
    simple = isinstance(inner, exp.Select) and not any(
        inner.args.get(each) for each in ("group", "having", "limit", "offset", "with_", "qualify")
    )
    if isinstance(node.this.unnest(), exp.Tuple) or not simple or inner.find(exp.AggFunc):
        raise query.refusal(node, "as a value, NULL for what is not known is FALSE in Spark",
                            "write it in WHERE, or as EXISTS with a condition")  # fmt: skip
    assert isinstance(inner, exp.Select)
    is_null = exp.Is(this=inner.selects[0].unalias().copy(), expression=exp.null())
    within = exp.In(this=node.this.copy(), query=exp.Subquery(this=inner.copy()))
    parts = {"x": node.this, "i": within, "e": exp.Exists(this=inner.copy()),
             "u": exp.Exists(this=inner.copy().where(is_null))}  # fmt: skip
    template = (
        "CASE WHEN _i THEN TRUE WHEN _x IS NULL AND _e OR _x IS NOT NULL AND _u THEN NULL "
        "ELSE FALSE END"
    )
    return from_template(template, **parts)


def _is_condition(node: exp.Expr) -> bool:
    """Whether only TRUE counts, so that FALSE and NULL mean the same."""
    around = node
    while around.parent is not None and not isinstance(around.parent, exp.Query):
        around = around.parent
        if isinstance(around, exp.Where | exp.Having | exp.Qualify | exp.Join):
            return True
    return False


def rewrite_group(node: exp.Expr, query: Query) -> exp.Expr | None:
    """GROUP BY (): one group, as without it if there are aggregates."""
    if node.args.get("all") is False:
        raise query.refusal(node, "Spark keeps equal grouping sets", "list the sets, each once",
                            called="GROUP BY DISTINCT")  # fmt: skip
    keys = [e for e in node.expressions if not isinstance(e, exp.Tuple) or e.expressions]
    select_ = node.parent
    counted = isinstance(select_, exp.Select) and any(
        each.find(exp.AggFunc) for each in select_.selects
    )
    if keys or len(keys) == len(node.expressions) or not counted:
        return COMMON.rewrites[exp.Group](node, query)
    node.parent.set("group", None)  # type: ignore[union-attr]
    return None


def grouping(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``grouping(a, b)``: a bit for each, the last one lowest."""
    if len(node.expressions) < 2:
        return None
    bits = [exp.Grouping(expressions=[each.copy()]) for each in node.expressions]
    found: exp.Expr = exp.cast(bits[0], "INT")
    for bit in bits[1:]:
        found = from_template("_a * 2 + _b", a=found, b=exp.cast(bit, "INT"))
    return found


RULES: Rules = {
    exp.Select: select, exp.Fetch: rewrite_limit, exp.Limit: rewrite_limit,
    exp.Group: rewrite_group, exp.Grouping: grouping, exp.Tuple: rewrite_row,
}  # fmt: skip
