"""GROUP BY and the last ORDER BY as Spark resolves them: the meaning of ALL, and keys.

    SELECT a, COUNT(*) FROM t GROUP BY ALL       GROUP BY a; a column that is called `all` comes
                                                 before, as does an output of that name
    SELECT 1 + a FROM t GROUP BY (a + 1)         the key: Spark compares canonical forms
    SELECT `o`.a FROM o GROUP BY A               likewise
    SELECT grouping__id … GROUP BY ROLLUP (a)    grouping_id(), unless a source has the column
    HAVING SUM(a) + 1, QUALIFY SUM(a) OVER w     CAST(… AS BOOLEAN); WHERE, ON, FILTER and CASE take
                                                 booleans alone, and Spark refuses the query

After `unify_group_keys`, every expression that Spark takes for a key is equal to it.

The first rows of a result may be chosen by more than names of its columns:

    SELECT DISTINCT a FROM t ORDER BY LOWER(a) LIMIT 3
    SELECT * FROM (SELECT DISTINCT a FROM t) ORDER BY LOWER(a) LIMIT 3

    SELECT a, b FROM t ORDER BY ALL DESC LIMIT 3
    SELECT a, b FROM t ORDER BY a DESC, b DESC LIMIT 3

The ORDER BY of a plain SELECT also sees the rows below it, so its keys can be computed next to the
outputs. That of a set operation, of a query in parentheses and of DISTINCT sees only the columns of
the result, from which its keys are computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from dagster_streamtables.compiler.operators.sql_builders import typed
from dagster_streamtables.compiler.scope.from_columns import FromColumns
from dagster_streamtables.compiler.text.group_by import (
    calls,
    grouping_keys,
    has_sets,
    windows_by_name,
)
from dagster_streamtables.compiler.text.places import Mistake, Refusal
from dagster_streamtables.compiler.text.table_mentions import first_select, own_aliases

ALL = "all"
_GROUPING_ID = "grouping__id"
_BOOLEAN = exp.DataType.build("boolean")
_TRUTHS = (exp.Predicate, exp.Connector, exp.Not, exp.Exists, exp.Boolean)


def unify_group_keys(tree: exp.Expr) -> None:
    """Write the expressions of a resolved tree that Spark takes for a group key as that key."""
    for group in tree.find_all(exp.Group):
        if isinstance(group.parent, exp.Select):
            _write_keys_alike(group.parent)


def expand_group_by_all(select: exp.Select, columns: FromColumns) -> None:
    """Write the keys that GROUP BY ALL means in a SELECT whose outputs are resolved.

    Raises:
        Refusal: `all` stands beside other keys, and no column has the name.
    """
    group = select.args.get("group")
    if group is None or not group.args.get("all"):
        return
    others = list(group.expressions)
    named = (each for each in select.selects if each.alias_or_name.lower() == ALL)
    output = next((each.unalias().copy() for each in named), None)
    column = _column_of_all(columns) or output
    if column is not None:
        group.set("expressions", [column, *others])
    elif others:
        raise _no_column_of_all(group)
    else:
        keys = [each.unalias() for each in select.selects]
        group.set("expressions", [each.copy() for each in keys if not _has_calls(each, select)])
    group.set("all", None)


def _has_calls(output: exp.Expr, select: exp.Select) -> bool:
    """Whether an output has an aggregate call, also in the WINDOW clause that it names."""
    windows = windows_by_name(select)
    names = (each.text("alias").lower() for each in output.find_all(exp.Window))
    parts = [output, *(windows[name] for name in names if name in windows)]
    return any(next(calls(each), None) is not None for each in parts)


def _column_of_all(columns: FromColumns) -> exp.Expr | None:
    """The column of a FROM clause that is called `all`."""
    found = columns.find(ALL)
    return found[0].value.copy() if len(found) == 1 else None


def _no_column_of_all(clause: exp.Expr) -> Refusal:
    return Mistake(
        clause,
        f'column "{ALL}" does not exist',
        why="beside others it names a column",
        fix=f"write {clause.key.upper()} BY ALL without another key",
    )


def _write_keys_alike(select: exp.Select) -> None:
    """Replace each expression that Spark takes for a key by that key."""
    group = select.args["group"]
    keys: dict[str, exp.Expr] = {}
    for key in grouping_keys(group):
        keys.setdefault(_form(key), key.copy())
    if all(isinstance(key, exp.Column) for key in keys.values()):
        return
    clauses = (select.args.get(name) for name in ("group", "having", "qualify", "order"))
    parts = [*select.expressions, *(select.args.get("windows") or [])]
    for part in [*parts, *(each for each in clauses if each is not None)]:
        inside = {id(call) for call in calls(part)}
        for node in list(_outside(part, inside)):
            key = keys.get(_form(node)) if node is not part else None
            if key is not None and node != key:
                node.replace(key.copy())


def _outside(part: exp.Expr, inside: set[int]) -> Iterator[exp.Expr]:
    """The nodes that are evaluated after GROUP BY, without the arguments of aggregates."""
    if id(part) in inside:
        return
    yield part
    if not isinstance(part, exp.Query):
        for each in part.iter_expressions():
            yield from _outside(each, inside)


_IN_ANY_ORDER = (exp.Add, exp.Mul, exp.And, exp.Or, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_TURNED = {exp.GT: exp.LT, exp.GTE: exp.LTE}


def _form(node: exp.Expr) -> str:
    """A text that two expressions share if they have the same canonical form in Spark."""
    match node:
        case exp.Paren():
            return _form(node.this)
        case exp.Column():
            return ".".join(part.name.lower() for part in node.parts)
        case exp.Query():
            return node.sql()
        case _ if isinstance(node, _IN_ANY_ORDER):
            return _list(node.key, sorted(map(_form, _chain(node, type(node)))))
        case exp.EQ() | exp.NullSafeEQ():
            return _list(node.key, sorted((_form(node.this), _form(node.expression))))
        case exp.GT() | exp.GTE():
            return _list(_TURNED[type(node)].key, [_form(node.expression), _form(node.this)])
        case exp.LT() | exp.LTE():
            return _list(node.key, [_form(node.this), _form(node.expression)])
        case exp.In() | exp.Greatest() | exp.Least() if not node.args.get("query"):
            return _list(f"{node.key} {_form(node.this)}", sorted(map(_form, node.expressions)))
    named = node.name.lower() if isinstance(node, exp.Anonymous | exp.Identifier) else ""
    return _list(f"{node.key} {named}", _arguments(node, by_name=not named))


def _arguments(node: exp.Expr, *, by_name: bool) -> Iterator[str]:
    for key, value in sorted(node.args.items()):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield f"{key}={_form(each)}"
            elif by_name and each is not None and each is not False:
                yield f"{key}={each!r}"


def _chain(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    node = node.unnest()
    if type(node) is kind:
        yield from _chain(node.this, kind)
        yield from _chain(node.expression, kind)
    else:
        yield node


def _list(name: str, parts: Iterator[str] | list[str]) -> str:
    return f"{name}({', '.join(parts)})"


def desugar_grouping_ids(tree: exp.Query, columns: Collection[str]) -> None:
    """Write grouping__id as a call, unless a column of a source is called so."""
    if _GROUPING_ID in {each.lower() for each in columns}:
        return
    for node in list(tree.find_all(exp.Column)):
        select = node.find_ancestor(exp.Query)
        if node.name.lower() != _GROUPING_ID or node.table or not isinstance(select, exp.Select):
            continue
        clause = select.args.get("group")
        if clause is not None and has_sets(clause):
            call = exp.Anonymous(this="grouping_id")
            is_output = node.parent is select and node.arg_key == "expressions"
            node.replace(exp.alias_(call, node.name, quoted=True) if is_output else call)


def cast_conditions(tree: exp.Expr) -> None:
    """Cast the conditions of a typed tree that may be no booleans."""
    for clause in tree.find_all(exp.Having, exp.Qualify):
        condition = clause.this
        known = isinstance(condition.unnest(), _TRUTHS)
        known = known or (condition.type is not None and condition.type.is_type("boolean"))
        if not known:
            clause.set("this", typed(exp.cast(condition.copy(), _BOOLEAN), _BOOLEAN))


_LAST = ("order", "limit", "offset")
"""The clauses that stand over the result."""


def desugar_orders(tree: exp.Query) -> exp.Query:
    """The tree, with an outer query for each ORDER BY that sees only the result."""
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
    _name_columns(around, first_select(query))
    result = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
    return around.from_(result, copy=False)


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
            raise _no_column_of_all(order)
        else:
            order.meta[_ALL] = True
            order.set("expressions", [_order_item_like(item, each) for each in query.selects])


def _column_of_name_all(query: exp.Query, columns: FromColumns) -> exp.Expr | None:
    names = (each.alias_or_name for each in query.selects)
    output = next((name for name in names if name.lower() == ALL), None)
    if output is not None:
        return exp.column(output, quoted=True)
    if isinstance(query, exp.Select) and not query.args.get("distinct"):
        return _column_of_all(columns)
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
