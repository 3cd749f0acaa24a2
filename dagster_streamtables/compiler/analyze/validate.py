"""Find invalid uses of SQL in the qualified and typed tree.

Among them are subqueries with a wrong number of columns, and comparisons of values whose type has
none. Spark would refuse most of them too, but only at the first refresh.

Spark itself neither groups nor sorts by a VARIANT, and has no equality of two. Rows that only hold
one are told apart by another form of it, see `comparable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from dagster_streamtables.compiler.analyze.ordered_aggregates import is_extreme_value, orders
from dagster_streamtables.compiler.analyze.storable_types import (
    UNCOMPARABLE,
    UNGROUPED,
    UNSTORED,
    first_kind,
)
from dagster_streamtables.compiler.operators.comparable import has_maps, value_without_null
from dagster_streamtables.compiler.text.group_by import (
    calls,
    function_of,
    grouping_keys,
    has_groups,
    name_of_function,
    own_calls,
    windows_by_name,
)
from dagster_streamtables.compiler.text.places import place, span
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.compiler.text.table_mentions import own_aliases
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery


def check(tree: exp.Query, text: Text) -> None:
    """
    Raises:
        InvalidDefinition: A misplaced aggregate, a column that is neither grouped nor aggregated,
            or an output that is NULL in every row or whose type cannot be stored.
        UnsupportedQuery: Rows would be distinguished by values that cannot be compared.
    """
    _check_fields(tree, text)
    _check_conditions(tree, text)
    for select in tree.find_all(exp.Select):
        _check_place_of_aggregates(select, text)
        _check_groups(select, text)
        _check_windows(select, text)
        _check_sort_keys(select, text)
        _check_aggregate_arguments(select, text)
        if select.args.get("distinct"):
            _check_group_keys(select.selects, text)
            _check_distinct(select.selects, "DISTINCT", text)
        if select.args.get("group"):
            _check_group_keys(select.args["group"].expressions, text)
            _check_grouped_maps(select.args["group"], text)
    _check_subqueries(tree, text)
    for union in tree.find_all(exp.SetOperation):
        _check_union(union, text)
    _check_storable(tree, text)
    _check_stored_rows(tree, text)
    _check_known_type(tree, text)


_PLAIN = {
    *exp.DataType.NUMERIC_TYPES,
    *exp.DataType.TEMPORAL_TYPES,
    *exp.DataType.TEXT_TYPES,
    exp.DType.BOOLEAN,
    exp.DType.BINARY,
}
"""Types without fields and entries."""
_NO_CONDITION = _PLAIN - {*exp.DataType.TEXT_TYPES, exp.DType.BOOLEAN}
"""Types that Spark never takes for a boolean."""


def _check_fields(tree: exp.Query, text: Text) -> None:
    for node in tree.find_all(exp.Dot, exp.Bracket):
        value = node.this
        if isinstance(value, exp.Column) and value.type is not None and value.type.this in _PLAIN:
            part = "fields" if isinstance(node, exp.Dot) else "entries"
            raise InvalidDefinition(
                f'"{value.name}" has no {part}',
                where=place(node, text),
                why=f"it is a column of the type {value.type.sql(DIALECT)}",
                fix="write the name of a table before the dot, or the column alone",
            )


def _check_conditions(tree: exp.Query, text: Text) -> None:
    conditions = [node.this for node in tree.find_all(exp.Where, exp.Having, exp.Not)]
    conditions += [
        side for node in tree.find_all(exp.And, exp.Or) for side in node.iter_expressions()
    ]
    conditions += [on for join in tree.find_all(exp.Join) if (on := join.args.get("on"))]
    for each in conditions:
        if isinstance(each, exp.Column) and each.type and each.type.this in _NO_CONDITION:
            raise InvalidDefinition(
                f'"{each.name}" is no condition',
                where=place(each, text),
                why=f"it is a column of the type {each.type.sql(DIALECT)}, not true or false",
                fix="compare it, for example with <> 0 or IS NOT NULL",
            )


def _check_place_of_aggregates(select: exp.Select, text: Text) -> None:
    joins: list[exp.Expr] = select.args.get("joins") or []
    chosen = select.find_all(exp.Filter)
    places: list[tuple[str, exp.Expr | None]] = [
        ("WHERE", select.args.get("where")),
        ("GROUP BY", select.args.get("group")),
        *(("ON", join.args.get("on")) for join in joins),
        *(("FILTER", each.expression) for each in chosen),
    ]
    for clause, part in places:
        call = next(calls(part), None) if part else None
        if call:
            raise InvalidDefinition(
                f"{_function_name(call)} is not allowed in {clause}",
                where=place(call, text),
                why="rows are filtered and joined before they are grouped",
                fix="aggregate in a subquery, or "
                + ("write CASE WHEN as the argument" if clause == "FILTER" else "use HAVING"),
            )
    for call in own_calls(select):
        below = list(function_of(call).iter_expressions())
        inner = next((found for each in below for found in calls(each)), None)
        if inner:
            raise InvalidDefinition(
                f"{_function_name(inner)} is not allowed inside {_function_name(call)}",
                where=place(call, text),
                why="an aggregate combines rows, but its argument is computed from one row",
                fix="aggregate in a subquery, and aggregate its result",
            )


def _check_windows(select: exp.Select, text: Text) -> None:
    for clause in ("where", "group", "having"):
        part = select.args.get(clause)
        for node in part.walk(prune=lambda each: isinstance(each, exp.Query)) if part else ():
            if isinstance(node, exp.Window):
                raise InvalidDefinition(
                    f"a window function is not allowed in {clause.upper()}",
                    where=place(node, text),
                    why="windows are computed after this clause",
                    fix="use QUALIFY, or compute it in a subquery",
                )
    named = windows_by_name(select)
    for node in select.find_all(exp.Window):
        if node.find_ancestor(exp.Window):
            raise InvalidDefinition(
                "a window function is not allowed inside another",
                where=place(node, text),
                why="a window combines rows, but its argument is computed from one row",
                fix="compute the inner one in a subquery",
            )
        own = node.find_ancestor(exp.Select) is select
        if own and node.alias and node.alias.lower() not in named:
            raise InvalidDefinition(
                f'there is no window "{node.alias}"',
                where=place(node, text),
                why="OVER names a window of the WINDOW clause",
                fix=f"add WINDOW {node.alias} AS (…)",
            )


def _function_name(call: exp.Expr) -> str:
    return name_of_function(call).upper()


def _check_groups(select: exp.Select, text: Text) -> None:
    if not has_groups(select):
        return
    group, having = select.args.get("group"), select.args.get("having")
    parts = [*select.selects, *([having.this] if having else [])]
    keys = _keys(group)
    _check_grouping(select, group, text)
    own = {"", *own_aliases(select)}

    for part in parts:
        inside = {id(call) for call in calls(part)}

        def is_group_value(node: exp.Expr, inside: set[int] = inside) -> bool:
            return node in keys or id(node) in inside or isinstance(node, exp.Query)

        for node in part.walk(prune=is_group_value):
            if isinstance(node, exp.Column) and node.table in own and not is_group_value(node):
                only_having = group is None and not any(True for each in parts for _ in calls(each))
                raise InvalidDefinition(
                    f'"{node.name}" is neither in GROUP BY nor inside an aggregate',
                    where=place(node, text),
                    why="a group has many rows, which may differ in this column",
                    fix="write the condition in WHERE"
                    if only_having
                    else "add it to GROUP BY, or put it into an aggregate function",
                )


def _check_grouping(select: exp.Select, group: exp.Expr | None, text: Text) -> None:
    found = [c for c in own_calls(select) if _function_name(c) in ("GROUPING", "GROUPING_ID")]
    if group is None or not group.find(exp.GroupingSets, exp.Cube, exp.Rollup):
        for call in found:
            raise InvalidDefinition(
                f"{_function_name(call)} without grouping sets",
                where=place(call, text),
                why="it distinguishes the sets of GROUPING SETS, CUBE and ROLLUP",
                fix="leave it out, or group by sets",
            )
        return
    keys, outputs = set(grouping_keys(group)), {e.alias: e.unalias() for e in select.selects}

    def resolve_output(node: exp.Expr) -> exp.Expr:
        # ORDER BY names outputs.
        named = isinstance(node, exp.Column) and not node.table
        return outputs[node.name].copy() if named and node.name in outputs else node

    for call in found:
        if any(
            each.unnest().copy().transform(resolve_output) not in keys for each in call.expressions
        ):
            raise InvalidDefinition(
                f"{_function_name(call)} of an expression that is not in GROUP BY",
                where=place(call, text),
                why="it tells whether a key of GROUP BY belongs to the grouping set of a row",
                fix="write a key of GROUP BY as it stands there",
            )


def _keys(group: exp.Expr | None) -> set[exp.Expr]:
    """The keys that rows are grouped by, in any grouping set."""
    return set(grouping_keys(group)) if group is not None else set()


def _check_union(union: exp.SetOperation, text: Text) -> None:
    left, right = len(union.left.selects), len(union.right.selects)
    if left != right:
        raise InvalidDefinition(
            f"{union.key.upper()} of {left} columns with {right}",
            where=place(union.right, text),
            why="columns are matched by position",
            fix="give both sides the same number of columns",
        )
    if union.args["distinct"] or not isinstance(union, exp.Union):
        _check_group_keys([*union.left.selects, *union.right.selects], text)
        _check_distinct([*union.left.selects, *union.right.selects], union.key.upper(), text)


def _check_grouped_maps(group: exp.Expr, text: Text) -> None:
    """Refuse keys in which Spark 4.2, where it compiles a query, takes NULL for 0."""
    for key in sorted(_keys(group), key=lambda each: span(each) or (0, 0)):
        kind = value_without_null(key.type)
        if kind is not None:
            raise UnsupportedQuery(
                f"GROUP BY of a MAP with values of type {kind}",
                where=place(key, text),
                why="Spark takes a NULL among such values for 0, in mode FULL too",
                fix="write sort_array(map_entries(…)) here, and map_from_entries of it in SELECT",
            )


def _check_distinct(values: list[exp.Expr], operation: str, text: Text) -> None:
    for value in values:
        if has_maps(value.unalias().type):
            raise UnsupportedQuery(
                f"{operation} over a MAP",
                where=place(value.unalias(), text),
                why="Spark does not tell maps apart there, in mode FULL either",
                fix="turn it into a list with array_sort(map_entries(…))",
            )


def _check_storable(tree: exp.Query, text: Text) -> None:
    for output in tree.selects:
        kind = first_kind(output.unalias().type, UNSTORED)
        if kind:
            raise InvalidDefinition(
                f'the column "{output.alias_or_name}" holds an {kind}',
                where=place(output.unalias(), text),
                why="no column of a Delta table can have this type",
                fix="store a number, such as unix_seconds(a) - unix_seconds(b) or "
                "datediff(a, b), or CAST(… AS STRING)",
            )


def _check_known_type(tree: exp.Query, text: Text) -> None:
    for output in tree.selects:
        if isinstance(output.unalias(), exp.Null) and not isinstance(tree, exp.Union):
            raise InvalidDefinition(
                f'the column "{output.alias_or_name}" is NULL in every row',
                where=place(output.unalias(), text),
                why="a column of a Delta table needs a type, and NULL has none",
                fix="choose one with CAST(NULL AS …)",
            )


_RELATIONS = (exp.From, exp.Join, exp.Lateral, exp.CTE, exp.SetOperation, exp.Subquery, exp.Exists)


def _check_subqueries(tree: exp.Query, text: Text) -> None:
    """
    Raises:
        InvalidDefinition: The sides of IN differ in their numbers of columns, or a scalar subquery
            has more than one column.
    """
    for node in tree.find_all(exp.In):
        query = node.args.get("query")
        if query is not None:
            wanted = len(node.this.expressions) if isinstance(node.this, exp.Tuple) else 1
            _check_count(query.unnest(), wanted, "IN", text)
    for node in tree.find_all(exp.Subquery):
        if not isinstance(node.parent, (*_RELATIONS, exp.In)) and isinstance(node.this, exp.Query):
            _check_count(node.this, 1, "a scalar subquery", text)


def _check_count(query: exp.Expr, wanted: int, called: str, text: Text) -> None:
    assert isinstance(query, exp.Query)
    if len(query.selects) != wanted:
        raise InvalidDefinition(
            f"{called}: {len(query.selects)} columns instead of {wanted}",
            where=place(query, text),
            why="values and columns are matched one to one",
            fix="select as many columns as there are values",
        )


_TOLD_APART = "rows are distinguished by comparing, and such values cannot be compared"
_ORDERED = (
    "it is grouped or sorted by here, and Spark has no order of such values, in mode FULL either"
)
_FIX = "extract the entries you need, or turn it into a string with to_json"


def _check_stored_rows(tree: exp.Query, text: Text) -> None:
    """Require that the rows of the result can be told apart."""
    for value in tree.selects:
        _require(value, UNCOMPARABLE, _TOLD_APART, text)


def _check_group_keys(values: Iterable[exp.Expr], text: Text) -> None:
    """Require that rows can be grouped by values, as GROUP BY, DISTINCT and UNION do."""
    for each in values:
        _require(each, UNGROUPED, _ORDERED, text)


def _check_sort_keys(select: exp.Select, text: Text) -> None:
    """Require that rows can be sorted by the keys of an ORDER BY or of a window."""
    for value in (*_sort_keys(select.args.get("order")), *_of_windows(select)):
        _require(value, UNGROUPED, _ORDERED, text)


def _check_aggregate_arguments(select: exp.Select, text: Text) -> None:
    """Require that the values that aggregates compare can be compared."""
    for call in own_calls(select):
        function = function_of(call)
        kinds = UNCOMPARABLE if is_extreme_value(call) else UNGROUPED
        given = [
            *zip(orders(call), (kinds, UNGROUPED), strict=False),
            *_comparison_operands(function),
        ]
        kind = next((k for each, kinds in given if (k := first_kind(each.type, kinds))), None)
        if kind:
            raise UnsupportedQuery(
                f"{_function_name(function)}{_distinct(function)} of a {kind}",
                where=place(function, text),
                why="a group's values are ordered by comparing them, and such values cannot be "
                "compared",
                fix="extract the entries you need before, or turn each into a string with to_json",
            )


def _require(value: exp.Expr, kinds: tuple[exp.DType, ...], why: str, text: Text) -> None:
    kind = first_kind(value.unalias().type, kinds)
    if kind:
        where = place(value.unalias(), text)
        raise UnsupportedQuery(f"{_describe(value)} holds a {kind}", where=where, why=why, fix=_FIX)


def _of_windows(select: exp.Select) -> Iterator[exp.Expr]:
    """The keys by which the windows of a SELECT split and sort its rows."""
    windows = (*select.find_all(exp.Window), *(select.args.get("windows") or []))
    for window in windows:
        yield from window.args.get("partition_by") or []
        yield from _sort_keys(window.args.get("order"))


def _sort_keys(order: exp.Expr | None) -> Iterator[exp.Expr]:
    for each in order.expressions if order is not None else []:
        yield each.this if isinstance(each, exp.Ordered) else each


def _comparison_operands(function: exp.Expr) -> Iterator[tuple[exp.Expr, tuple[exp.DType, ...]]]:
    """What Spark itself compares: the values of MIN, MAX, MODE, and those after DISTINCT."""
    for argument in function.iter_expressions():
        if isinstance(argument, exp.Distinct):
            yield from ((each, UNGROUPED) for each in argument.expressions)
        elif isinstance(function, exp.Min | exp.Max) or _function_name(function) == "MODE":
            yield argument, UNGROUPED


def _distinct(function: exp.Expr) -> str:
    return "(DISTINCT …)" if isinstance(function.this, exp.Distinct) else ""


def _describe(value: exp.Expr) -> str:
    named = isinstance(value, exp.Alias | exp.Column)
    return f'"{value.alias_or_name}"' if named else "a compared value"
