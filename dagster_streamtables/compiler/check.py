"""What a query says that cannot be, looked for in the qualified and typed tree.

Spark would say most of it too, but only when the table is first filled.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text import DIALECT, Text, place
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery

_UNCOMPARABLE = (
    exp.DataType.Type.MAP,
    exp.DataType.Type.VARIANT,
    exp.DataType.Type.OBJECT,
    exp.DataType.Type.JSON,
    exp.DataType.Type.GEOMETRY,
    exp.DataType.Type.GEOGRAPHY,
)


def check(tree: exp.Query, text: Text) -> None:
    """
    Raises:
        InvalidDefinition: An aggregate where none can be, a column that is neither grouped nor
            aggregated, or an output that is NULL in every row.
        UnsupportedQuery: Rows are told apart by values that cannot be compared.
    """
    for select in tree.find_all(exp.Select):
        _check_place_of_aggregates(select, text)
        _check_groups(select, text)
        if select.args.get("distinct"):
            _check_comparable(select.selects, text)
        if select.args.get("group"):
            _check_comparable(select.args["group"].expressions, text)
    for union in tree.find_all(exp.Union):
        _check_union(union, text)
    _check_comparable(tree.selects, text)
    _check_known_type(tree, text)


def _check_place_of_aggregates(select: exp.Select, text: Text) -> None:
    joins: list[exp.Expr] = select.args.get("joins") or []
    places: list[tuple[str, exp.Expr | None]] = [
        ("WHERE", select.args.get("where")),
        ("GROUP BY", select.args.get("group")),
        *(("ON", join.args.get("on")) for join in joins),
    ]
    for clause, part in places:
        call = part.find(exp.AggFunc) if part else None
        if call:
            raise InvalidDefinition(
                f"{call.sql_name()} stands in {clause}",
                where=place(call, text),
                why="rows are chosen and paired before they are grouped",
                fix="use HAVING, or aggregate in a subquery",
            )
    for call in select.find_all(exp.AggFunc):
        inner = next((each for each in call.find_all(exp.AggFunc) if each is not call), None)
        if inner:
            raise InvalidDefinition(
                f"{inner.sql_name()} stands inside {call.sql_name()}",
                where=place(call, text),
                why="an aggregate is computed from rows, and its argument from one row",
                fix="aggregate in a subquery, and aggregate its result",
            )


def _check_groups(select: exp.Select, text: Text) -> None:
    group, having = select.args.get("group"), select.args.get("having")
    parts = [*select.selects, *([having.this] if having else [])]
    if not group and not having and not any(part.find(exp.AggFunc) for part in parts):
        return
    keys = set(group.expressions) if group else set[exp.Expr]()

    def settled(node: exp.Expr) -> bool:
        return node in keys or isinstance(node, exp.AggFunc | exp.Filter)

    for part in parts:
        for node in part.walk(prune=settled):
            if isinstance(node, exp.Column) and not settled(node):
                raise InvalidDefinition(
                    f'"{node.name}" is neither in GROUP BY nor inside an aggregate',
                    where=place(node, text),
                    why="a group has many rows, and each may have another value there",
                    fix="add it to GROUP BY, or put it into an aggregate function",
                )


def _check_union(union: exp.Union, text: Text) -> None:
    left, right = len(union.left.selects), len(union.right.selects)
    if left != right:
        raise InvalidDefinition(
            f"UNION of {left} columns with {right}",
            where=place(union.right, text),
            why="columns of a union meet by their position",
            fix="give both sides the same number of columns",
        )
    if union.args["distinct"]:
        _check_comparable([*union.left.selects, *union.right.selects], text)


def _check_comparable(values: list[exp.Expr], text: Text) -> None:
    for value in values:
        parts = value.type.find_all(exp.DataType) if value.type else ()
        for part in parts:
            if part.this in _UNCOMPARABLE:
                raise UnsupportedQuery(
                    f'"{value.alias_or_name or value.sql(DIALECT)}" holds a {part.this.value}',
                    where=place(value.unalias(), text),
                    why="rows are told apart by comparing, and such values cannot be compared",
                    fix="take out the entries you need, or turn it into a string with to_json",
                )


def _check_known_type(tree: exp.Query, text: Text) -> None:
    for output in tree.selects:
        if isinstance(output.unalias(), exp.Null) and not isinstance(tree, exp.Union):
            raise InvalidDefinition(
                f'the column "{output.alias_or_name}" is NULL in every row',
                where=place(output.unalias(), text),
                why="a column of a Delta table has a type, and NULL has none",
                fix="say which with CAST(NULL AS …)",
            )
