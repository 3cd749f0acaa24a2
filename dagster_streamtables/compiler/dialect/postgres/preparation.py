"""Preparation of a query of Postgres: parts that are written otherwise before they are translated.

Constant texts next to numbers get the type of the number, as in Postgres: Spark turns both sides
into floats, and ``x / '2'`` has no known type. In ``row_to_json(t)`` and ``jsonb_agg(t)``, the name
of a relation stands for all of its columns. Arrays of a query's rows, and aggregates over ordered
rows, get the order of the rows:

    ARRAY(SELECT x FROM u ORDER BY y)                      an aggregate with an order
    ARRAY(SELECT x FROM u ORDER BY y LIMIT 2)              the same over a derived table
    json_agg(q) FROM (SELECT x FROM u ORDER BY y) AS q     in the order of the derived table
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.kinds.kind_inference import Kinds
from dagster_streamtables.compiler.dialect.kinds.origins import Columns
from dagster_streamtables.compiler.dialect.rules.orders import order_items
from dagster_streamtables.compiler.dialect.rules.rule import sides_of
from dagster_streamtables.compiler.scope.from_columns import POSTGRES
from dagster_streamtables.compiler.scope.scopes import Scopes
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.table_mentions import own_aliases, table_name

_WITH_TEXT = (
    exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.In, exp.Between,
)  # fmt: skip
_FORMS = {
    Kind.INT: r"\d{1,9}", Kind.BIGINT: r"\d{1,18}", Kind.DECIMAL: r"\d{1,20}(\.\d{1,18})?",
    Kind.FLOAT: r"\d+(\.\d*)?(e[+-]?\d+)?", Kind.DOUBLE: r"\d+(\.\d*)?(e[+-]?\d+)?",
}  # fmt: skip
_FLOATS = {Kind.FLOAT: "REAL", Kind.DOUBLE: "DOUBLE PRECISION"}


def type_texts(tree: exp.Query, columns: Columns) -> None:
    """Give constant texts next to a number its type.

    >>> from dagster_streamtables.compiler.text.query_text import read
    >>> tree = read("SELECT x + '-5', '0.10' < n FROM t", "postgres").tree
    >>> type_texts(tree, {"t": {"x": "int", "n": "decimal(10,2)"}})
    >>> tree.sql("postgres")
    'SELECT x + -5, 0.10 < n FROM t'
    """
    found = [node for node in tree.find_all(*_WITH_TEXT) if any(map(_is_text, sides_of(node)))]
    if not found:
        return
    kinds = Kinds(tree, columns, "postgres")
    for node in found:
        texts = [each for each in sides_of(node) if _is_text(each)]
        others = {kinds[each] for each in sides_of(node) if not _is_text(each)}
        if len(others) == 1 and (kind := others.pop()) in _FORMS:
            for text in texts:
                if re.fullmatch(f"[+-]?{_FORMS[kind]}", text.name):
                    text.replace(_number_literal(text, kind))


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _number_literal(text: exp.Expr, kind: Kind) -> exp.Expr:
    if kind in _FLOATS:
        return exp.Cast(this=text.copy(), to=exp.DataType.build(_FLOATS[kind], dialect="postgres"))
    number = exp.Literal.number(text.name.lstrip("+-"))
    number.meta.update(text.meta)
    return exp.Neg(this=number) if text.name.startswith("-") else number


_BUILT = {
    "row_to_json": "json_build_object", "to_json": "json_build_object",
    "json_agg": "json_build_object", "to_jsonb": "jsonb_build_object",
    "jsonb_agg": "jsonb_build_object",
}  # fmt: skip
_AGGREGATES = ("json_agg", "jsonb_agg")


def expand_row_references(tree: exp.Query, columns: Columns) -> None:
    """Name each column of a relation that becomes JSON as a whole.

    A relation whose rows an outer join may fill with NULLs stays as it is: there the row itself is
    NULL in Postgres.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT row_to_json(t) AS r FROM t", dialect="postgres")
    >>> expand_row_references(tree, {"t": {"id": "int", "s": "string"}})
    >>> tree.sql("postgres")
    "SELECT JSON_BUILD_OBJECT('id', t.id, 's', t.s) AS r FROM t"
    """
    scopes = Scopes(lambda table: list(columns.get(table_name(table), ())), POSTGRES)
    for node in list(tree.find_all(exp.Anonymous)):
        select = node.find_ancestor(exp.Select)
        if node.name.lower() in _BUILT and len(node.expressions) == 1 and select is not None:
            _spell(node, select, scopes)


def _spell(node: exp.Anonymous, select: exp.Select, scopes: Scopes) -> None:
    name, argument = node.name.lower(), node.expressions[0]
    row = argument.this if isinstance(argument, exp.Order) else argument
    if not isinstance(row, exp.Column) or row.table or row.name not in own_aliases(select):
        return
    names = _names(row.name, select, scopes)
    may_be_null = any(join.side for join in select.args.get("joins") or [])
    if not names or row.name.lower() in names or may_be_null:
        return
    pairs = [part for each in names
             for part in (exp.Literal.string(each), exp.column(each, table=row.name))]  # fmt: skip
    built = exp.Anonymous(this=_BUILT[name], expressions=pairs)
    if name in _AGGREGATES:
        row.replace(built)
    else:
        node.replace(built)


def _names(alias: str, select: exp.Select, scopes: Scopes) -> list[str]:
    """The columns of a relation; none if they are not known."""
    try:
        return [each.name for each in scopes.columns(select).star(alias, POSTGRES)]
    except Refusal:
        return []


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
    >>> from dagster_streamtables.compiler.text.sqlglot_dialects import parser_of
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
    keys = [each.this for each in order_items(inner)]
    named = inner.selects[0].alias
    of_output = any(key.is_int or (named and key == exp.column(named)) for key in keys)
    return not of_output and not any(inner.args.get(each) for each in _NOT_OF_ROWS)


def _of_rows(inner: exp.Query) -> exp.Query:
    value = inner.selects[0].unalias().copy()
    value = exp.Distinct(expressions=[value]) if inner.args.get("distinct") else value
    order = [each.copy() for each in order_items(inner)]
    value = exp.Order(this=value, expressions=order) if order else value
    one = inner.copy()
    one.set("order", None)
    one.set("distinct", None)
    one.set("expressions", [_array_of(value)])
    return one


def _of_query(inner: exp.Query) -> exp.Query | None:
    """An aggregate over the query; None if a LIMIT leaves out rows in no order."""
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
    """The order of a query, as an order of its rows under an alias; a key that is no output becomes
    one. None if there is no such order: in several directions, or of a set operation."""
    ordered = order_items(below)
    held = [_output_of(each.this, below) for each in ordered]
    distinct = below.args.get("distinct") if isinstance(below, exp.Select) else None
    if distinct is not None and distinct.args.get("on"):
        return None
    may_add = isinstance(below, exp.Select) and distinct is None
    if len({bool(each.args.get("desc")) for each in ordered}) > 1 or (None in held and not may_add):
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
