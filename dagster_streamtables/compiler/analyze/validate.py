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
    has_sets,
    name_of_function,
    own_calls,
    windows_by_name,
)
from dagster_streamtables.compiler.text.places import Mistake, Refusal, span
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.compiler.text.table_mentions import own_aliases


def check(tree: exp.Query) -> None:
    """
    Raises:
        Mistake: A misplaced aggregate, a column that is neither grouped nor aggregated, or an
            output that is NULL in every row or whose type cannot be stored.
        Refusal: Rows would be distinguished by values that cannot be compared.
    """
    _check_fields(tree)
    _check_conditions(tree)
    for select in tree.find_all(exp.Select):
        _check_place_of_aggregates(select)
        _check_groups(select)
        _check_windows(select)
        _check_sort_keys(select)
        _check_aggregate_arguments(select)
        if select.args.get("distinct"):
            _check_group_keys(select.selects)
            _check_distinct(select.selects, "DISTINCT")
        if select.args.get("group"):
            _check_group_keys(grouping_keys(select.args["group"]))
            _check_grouped_maps(select.args["group"])
    _check_subqueries(tree)
    for union in tree.find_all(exp.SetOperation):
        _check_union(union)
    _check_outputs(tree)


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


def _check_fields(tree: exp.Query) -> None:
    for node in tree.find_all(exp.Dot, exp.Bracket):
        value = node.this
        if isinstance(value, exp.Column) and value.type is not None and value.type.this in _PLAIN:
            part = "fields" if isinstance(node, exp.Dot) else "entries"
            raise Mistake(
                node,
                f'"{value.name}" has no {part}',
                why=f"it is a column of the type {value.type.sql(DIALECT)}",
                fix="write the name of a table before the dot, or the column alone",
            )


def _check_conditions(tree: exp.Query) -> None:
    conditions = [node.this for node in tree.find_all(exp.Where, exp.Having, exp.Not)]
    conditions += [
        side for node in tree.find_all(exp.And, exp.Or) for side in node.iter_expressions()
    ]
    conditions += [on for join in tree.find_all(exp.Join) if (on := join.args.get("on"))]
    for each in conditions:
        if isinstance(each, exp.Column) and each.type and each.type.this in _NO_CONDITION:
            raise Mistake(
                each,
                f'"{each.name}" is not a condition',
                why=f"it is a column of the type {each.type.sql(DIALECT)}, not true or false",
                fix="compare it, for example with <> 0 or IS NOT NULL",
            )


def _check_place_of_aggregates(select: exp.Select) -> None:
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
            raise Mistake(
                call,
                f"{_function_name(call)} is not allowed in {clause}",
                why="rows are filtered and joined before they are grouped",
                fix="aggregate in a subquery, or "
                + ("write CASE WHEN as the argument" if clause == "FILTER" else "use HAVING"),
            )
    for call in own_calls(select):
        below = list(function_of(call).iter_expressions())
        inner = next((found for each in below for found in calls(each)), None)
        if inner:
            raise Mistake(
                call,
                f"{_function_name(inner)} is not allowed inside {_function_name(call)}",
                why="an aggregate combines rows, but its argument is computed from one row",
                fix="aggregate in a subquery, and aggregate its result",
            )


def _check_windows(select: exp.Select) -> None:
    for clause in ("where", "group", "having"):
        part = select.args.get(clause)
        for node in part.walk(prune=lambda each: isinstance(each, exp.Query)) if part else ():
            if isinstance(node, exp.Window):
                raise Mistake(
                    node,
                    f"a window function is not allowed in {clause.upper()}",
                    why="windows are computed after this clause",
                    fix="use QUALIFY, or compute it in a subquery",
                )
    named = windows_by_name(select)
    for node in select.find_all(exp.Window):
        if node.find_ancestor(exp.Window):
            raise Mistake(
                node,
                "a window function is not allowed inside another",
                why="a window combines rows, but its argument is computed from one row",
                fix="compute the inner one in a subquery",
            )
        own = node.find_ancestor(exp.Select) is select
        if own and node.alias and node.alias.lower() not in named:
            raise Mistake(
                node,
                f'there is no window "{node.alias}"',
                why="OVER names a window of the WINDOW clause",
                fix=f"add WINDOW {node.alias} AS (…)",
            )


def _function_name(call: exp.Expr) -> str:
    return name_of_function(call).upper()


def _check_groups(select: exp.Select) -> None:
    if not has_groups(select):
        return
    group, having = select.args.get("group"), select.args.get("having")
    parts = [*select.selects, *([having.this] if having else [])]
    keys = set(grouping_keys(group)) if group is not None else set()
    _check_grouping(select, group)
    own = {"", *own_aliases(select)}

    for part in parts:
        inside = {id(call) for call in calls(part)}

        def is_group_value(node: exp.Expr, inside: set[int] = inside) -> bool:
            return node in keys or id(node) in inside or isinstance(node, exp.Query)

        for node in part.walk(prune=is_group_value):
            if isinstance(node, exp.Column) and node.table in own and not is_group_value(node):
                only_having = group is None and not any(True for each in parts for _ in calls(each))
                raise Mistake(
                    node,
                    f'"{node.name}" is neither in GROUP BY nor inside an aggregate',
                    why="a group has many rows, which may differ in this column",
                    fix="write the condition in WHERE"
                    if only_having
                    else "add it to GROUP BY, or put it into an aggregate function",
                )


def _check_grouping(select: exp.Select, group: exp.Expr | None) -> None:
    found = [c for c in own_calls(select) if _function_name(c) in ("GROUPING", "GROUPING_ID")]
    if group is None or not has_sets(group):
        for call in found:
            raise Mistake(
                call,
                f"{_function_name(call)} without grouping sets",
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
            raise Mistake(
                call,
                f"{_function_name(call)} of an expression that is not in GROUP BY",
                why="it tells whether a key of GROUP BY belongs to the grouping set of a row",
                fix="write a key of GROUP BY as it stands there",
            )


def _check_union(union: exp.SetOperation) -> None:
    left, right = len(union.left.selects), len(union.right.selects)
    if left != right:
        raise Mistake(
            union.right,
            f"{union.key.upper()} of {left} columns with {right}",
            why="columns are matched by position",
            fix="give both sides the same number of columns",
        )
    if union.args["distinct"] or not isinstance(union, exp.Union):
        _check_group_keys([*union.left.selects, *union.right.selects])
        _check_distinct([*union.left.selects, *union.right.selects], union.key.upper())


def _check_grouped_maps(group: exp.Expr) -> None:
    """Refuse keys in which Spark 4.2, where it compiles a query, takes NULL for 0."""
    for key in sorted({*grouping_keys(group)}, key=lambda each: span(each) or (0, 0)):
        kind = value_without_null(key.type)
        if kind is not None:
            raise Refusal(
                key,
                f"GROUP BY of a MAP with values of type {kind}",
                why="Spark takes a NULL among such values for 0, in mode FULL too",
                fix="write sort_array(map_entries(…)) here, and map_from_entries of it in SELECT",
            )


def _check_distinct(values: list[exp.Expr], operation: str) -> None:
    for value in values:
        if has_maps(value.unalias().type):
            raise Refusal(
                value.unalias(),
                f"{operation} over a MAP",
                why="Spark does not tell maps apart there, in mode FULL either",
                fix="turn it into a list with array_sort(map_entries(…))",
            )


def _check_outputs(tree: exp.Query) -> None:
    """Require types that a Delta table can store, and by which its rows can be told apart."""
    for output in tree.selects:
        value = output.unalias()
        if kind := first_kind(value.type, UNSTORED):
            raise Mistake(
                value,
                f'the column "{output.alias_or_name}" holds an {kind}',
                why="no column of a Delta table can have this type",
                fix="store a number, such as unix_seconds(a) - unix_seconds(b) or "
                "datediff(a, b), or CAST(… AS STRING)",
            )
        _require(output, UNCOMPARABLE, _TOLD_APART)
        if isinstance(value, exp.Null) and not isinstance(tree, exp.Union):
            raise Mistake(
                value,
                f'the column "{output.alias_or_name}" is NULL in every row',
                why="a column of a Delta table needs a type, and NULL has none",
                fix="choose one with CAST(NULL AS …)",
            )


_RELATIONS = (exp.From, exp.Join, exp.Lateral, exp.CTE, exp.SetOperation, exp.Subquery, exp.Exists)


def _check_subqueries(tree: exp.Query) -> None:
    """Require as many columns of IN as values, and one of a scalar subquery."""
    for node in tree.find_all(exp.In):
        query = node.args.get("query")
        if query is not None:
            wanted = len(node.this.expressions) if isinstance(node.this, exp.Tuple) else 1
            _check_count(query.unnest(), wanted, "IN")
    for node in tree.find_all(exp.Subquery):
        if not isinstance(node.parent, (*_RELATIONS, exp.In)) and isinstance(node.this, exp.Query):
            _check_count(node.this, 1, "a scalar subquery")


def _check_count(query: exp.Expr, wanted: int, called: str) -> None:
    assert isinstance(query, exp.Query)
    if len(query.selects) != wanted:
        raise Mistake(
            query,
            f"{called}: {len(query.selects)} columns instead of {wanted}",
            why="values and columns are matched one to one",
            fix="select as many columns as there are values",
        )


_TOLD_APART = "rows are distinguished by comparing, and such values cannot be compared"
_ORDERED = (
    "it is grouped or sorted by here, and Spark has no order of such values, in mode FULL either"
)
_FIX = "extract the entries you need, or turn it into a string with to_json"


def _check_group_keys(values: Iterable[exp.Expr]) -> None:
    """Require that rows can be grouped by values, as GROUP BY, DISTINCT and UNION do."""
    for each in values:
        _require(each, UNGROUPED, _ORDERED)


def _check_sort_keys(select: exp.Select) -> None:
    """Require that rows can be sorted by the keys of an ORDER BY or of a window."""
    for value in (*_sort_keys(select.args.get("order")), *_of_windows(select)):
        _require(value, UNGROUPED, _ORDERED)


def _check_aggregate_arguments(select: exp.Select) -> None:
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
            distinct = "(DISTINCT …)" if isinstance(function.this, exp.Distinct) else ""
            raise Refusal(
                function,
                f"{_function_name(function)}{distinct} of a {kind}",
                why="a group's values are ordered by comparing them, and such values cannot be "
                "compared",
                fix="extract the entries you need before, or turn each into a string with to_json",
            )


def _require(value: exp.Expr, kinds: tuple[exp.DType, ...], why: str) -> None:
    if kind := first_kind(value.unalias().type, kinds):
        named = isinstance(value, exp.Alias | exp.Column)
        called = f'"{value.alias_or_name}"' if named else "a compared value"
        raise Refusal(value.unalias(), f"{called} holds a {kind}", why=why, fix=_FIX)


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
