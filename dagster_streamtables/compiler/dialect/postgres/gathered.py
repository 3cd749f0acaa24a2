"""Arrays of a query's rows in their order: ARRAY(SELECT …), and aggregates over ordered rows.

ARRAY(SELECT x FROM u ORDER BY y)                      an aggregate with an order
ARRAY(SELECT x FROM u ORDER BY y LIMIT 2)              the same over a derived table
json_agg(q) FROM (SELECT x FROM u ORDER BY y) AS q     in the order of the derived table
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

_NOT_OF_ROWS = ("limit", "offset", "group", "having", "qualify", "with_", "windows")
_LISTS = ("array_agg", "json_agg", "jsonb_agg")


def aggregate_subqueries(tree: exp.Query) -> None:
    """Make an aggregate of each ARRAY(SELECT …) that has one column.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT ARRAY(SELECT x FROM u ORDER BY y)", dialect="postgres")
    >>> aggregate_subqueries(tree)
    >>> tree.sql("postgres")
    'SELECT COALESCE((SELECT ARRAY_AGG(x ORDER BY y) FROM u), ARRAY[])'
    """
    for node in list(tree.find_all(exp.Array)):
        inner = node.expressions[0].unnest() if len(node.expressions) == 1 else None
        if not isinstance(inner, exp.Query) or len(inner.selects) != 1:
            continue
        one = _of_rows(inner) if _is_of_rows(inner) else _of_query(inner)
        if one is not None:
            node.replace(exp.Coalesce(this=exp.Subquery(this=one), expressions=[exp.Array()]))


def keep_order(tree: exp.Query) -> None:
    """Give aggregates over a derived table alone its order, in which Postgres reads its rows.

    >>> import sqlglot
    >>> from dagster_streamtables.compiler.text.postgres import parser_of
    >>> query = "SELECT json_agg(q.x) FROM (SELECT x FROM u ORDER BY x LIMIT 2) AS q"
    >>> tree = sqlglot.parse_one(query, dialect=parser_of("postgres"))
    >>> keep_order(tree)
    >>> tree.sql("postgres")
    'SELECT JSON_AGG(q.x ORDER BY q.x) FROM (SELECT x FROM u ORDER BY x LIMIT 2) AS q'
    """
    for select in list(tree.find_all(exp.Select)):
        clause = select.args.get("from_")
        derived = clause.this if clause is not None else None
        if not isinstance(derived, exp.Subquery) or not derived.alias:
            continue
        more = ("joins", "laterals", "group")
        if derived.alias_column_names or any(select.args.get(each) for each in more):
            continue
        lists = list(_list_aggregates(select))
        keys = _keys_of(derived.this, derived.alias) if lists else None
        for each in lists if keys else ():
            copies = [key.copy() for key in keys or ()]
            each.set("expressions", [exp.Order(this=each.expressions[0], expressions=copies)])


def _list_aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    for output in select.selects:
        for node in output.walk(prune=lambda each: isinstance(each, exp.Query | exp.Window)):
            is_list = isinstance(node, exp.Anonymous) and node.name.lower() in _LISTS
            if is_list and not isinstance(node.expressions[0], exp.Order | exp.Distinct):
                yield node


def _is_of_rows(inner: exp.Query) -> bool:
    """Whether each row of FROM is an element, in an order of columns of FROM."""
    if not isinstance(inner, exp.Select) or inner.find(exp.AggFunc):
        return False
    order = inner.args.get("order")
    keys = [each.this for each in order.expressions] if order is not None else []
    named = inner.selects[0].alias
    of_output = any(key.is_int or (named and key == exp.column(named)) for key in keys)
    return not of_output and not any(inner.args.get(each) for each in _NOT_OF_ROWS)


def _of_rows(inner: exp.Query) -> exp.Query:
    value = inner.selects[0].unalias().copy()
    value = exp.Distinct(expressions=[value]) if inner.args.get("distinct") else value
    order = inner.args.get("order")
    if order is not None:
        value = exp.Order(this=value, expressions=[each.copy() for each in order.expressions])
    one = inner.copy()
    one.set("order", None)
    one.set("distinct", None)
    one.set("expressions", [_array_of(value)])
    return one


def _of_query(inner: exp.Query) -> exp.Query | None:
    """An aggregate over the query; None where the query leaves out rows in no order."""
    below = inner.copy()
    cut = inner.args.get("limit") or inner.args.get("offset")
    [output] = below.selects
    name = output.alias_or_name or "st_value"
    output.replace(exp.alias_(output.unalias().copy(), name))
    keys = _keys_of(below, "st_rows")
    if keys is None or (cut and not keys):
        return None
    if not cut:
        below.set("order", None)
    value: exp.Expr = exp.column(name, table="st_rows")
    value = exp.Order(this=value, expressions=keys) if keys else value
    return exp.select(_array_of(value)).from_(below.subquery("st_rows"))


def _keys_of(below: exp.Query, alias: str) -> list[exp.Expr] | None:
    """The order of a query, as one of its rows under an alias; what no output has is put beside
    the outputs. None if it cannot be: in several directions, or of a set operation."""
    order = below.args.get("order")
    ordered = list(order.expressions) if order is not None else []
    held = [_output_of(each.this, below) for each in ordered]
    distinct = below.args.get("distinct") if isinstance(below, exp.Select) else None
    if distinct is not None and distinct.args.get("on"):
        return None
    beside = isinstance(below, exp.Select) and distinct is None
    if len({bool(each.args.get("desc")) for each in ordered}) > 1 or (None in held and not beside):
        return None
    keys: list[exp.Expr] = []
    for at, (each, name) in enumerate(zip(ordered, held, strict=True)):
        if name is None:
            name = f"st_key_{at}"
            below.append("expressions", exp.alias_(each.this.copy(), name))
        elif distinct is not None:  # Spark orders distinct rows by their outputs alone
            each.set("this", exp.column(name))
        key = each.copy()
        key.set("this", exp.column(name, table=alias))
        keys.append(key)
    return keys


def _output_of(key: exp.Expr, below: exp.Query) -> str | None:
    """The output that a key of ORDER BY is: its number, its name, or the same expression."""
    outputs = {each.alias_or_name: each.unalias() for each in below.selects if each.alias_or_name}
    if key.is_int:
        place = int(key.name) - 1
        named = below.selects[place].alias_or_name if place < len(below.selects) else ""
        return named or None
    if isinstance(key, exp.Column) and not key.table and key.name in outputs:
        return key.name
    return next((name for name, each in outputs.items() if each == key), None)


def _array_of(value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="array_agg", expressions=[value])
