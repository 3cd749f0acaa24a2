"""GROUP BY as Spark resolves it: the meaning of ALL, and which expressions are a key.

    SELECT a, COUNT(*) FROM t GROUP BY ALL       GROUP BY a; a column that is called `all` comes
                                                 before, as does an output of that name
    SELECT 1 + a FROM t GROUP BY (a + 1)         the key: Spark compares canonical forms
    SELECT `o`.a FROM o GROUP BY A               likewise
    SELECT grouping__id … GROUP BY ROLLUP (a)    grouping_id(), unless a source has the column
    HAVING SUM(a) + 1, QUALIFY SUM(a) OVER w     CAST(… AS BOOLEAN); WHERE, ON, FILTER and CASE take
                                                 booleans alone, and Spark refuses the query

After this module, every expression that Spark takes for a key is equal to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from dagster_streamtables.compiler.operators import typed
from dagster_streamtables.compiler.scope.from_columns import FromColumns
from dagster_streamtables.compiler.text.aggregate_calls import calls, grouping_keys
from dagster_streamtables.compiler.text.places import Refusal

ALL = "all"
_GROUPING_ID = "grouping__id"
_BOOLEAN = exp.DataType.build("boolean")
_TRUTHS = (exp.Predicate, exp.Connector, exp.Not, exp.Exists, exp.Boolean)


def unify_group_keys(tree: exp.Expr) -> None:
    """
    Args:
        tree: Its names are resolved. It is changed.
    """
    for group in tree.find_all(exp.Group):
        if isinstance(group.parent, exp.Select):
            _write_keys_alike(group.parent)


def expand_group_by_all(select: exp.Select, columns: FromColumns) -> None:
    """Write the keys that GROUP BY ALL means.

    Args:
        select: It is changed; its outputs are resolved.
        columns: Those of its FROM clause.

    Raises:
        Refusal: `all` stands beside other keys, and no column has the name.
    """
    group = select.args.get("group")
    if group is None or not group.args.get("all"):
        return
    others = list(group.expressions)
    column = column_of_all(columns) or _output_of_all(select)
    if column is not None:
        group.set("expressions", [column, *others])
    elif others:
        raise no_column_of_all(group)
    else:
        keys = [each.unalias() for each in select.selects]
        group.set("expressions", [k.copy() for k in keys if next(calls(k), None) is None])
    group.set("all", None)


def column_of_all(columns: FromColumns) -> exp.Expr | None:
    """The column of a FROM clause that is called `all`."""
    found = columns.find(ALL)
    return found[0].value.copy() if len(found) == 1 else None


def no_column_of_all(clause: exp.Expr) -> Refusal:
    return Refusal(
        clause,
        f'column "{ALL}" does not exist',
        why="beside others it names a column",
        fix=f"write {clause.key.upper()} BY ALL without another key",
        invalid=True,
    )


def _output_of_all(select: exp.Select) -> exp.Expr | None:
    named = (each for each in select.selects if each.alias_or_name.lower() == ALL)
    return next((each.unalias().copy() for each in named), None)


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
    """The nodes that are evaluated after GROUP BY, without those of keys inside of them."""
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
    """
    Args:
        tree: As parsed.
        columns: All columns of all sources.
    """
    if _GROUPING_ID in {each.lower() for each in columns}:
        return
    for node in list(tree.find_all(exp.Column)):
        select = node.find_ancestor(exp.Query)
        if node.name.lower() != _GROUPING_ID or node.table or not isinstance(select, exp.Select):
            continue
        clause = select.args.get("group")
        if clause is not None and clause.find(exp.GroupingSets, exp.Cube, exp.Rollup):
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
