"""Find values that are compared, and have a type whose values cannot be.

Spark itself neither groups nor sorts by a VARIANT, and has no equality of two. Rows that only hold
one are told apart by another form of it, see `comparable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from dagster_streamtables.compiler.analyze.ordered_aggregates import orders, reordered
from dagster_streamtables.compiler.analyze.storable_types import UNCOMPARABLE, UNGROUPED, held
from dagster_streamtables.compiler.text.aggregate_calls import calls, function_of
from dagster_streamtables.compiler.text.places import place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import UnsupportedQuery

_TOLD_APART = "rows are distinguished by comparing, and such values cannot be compared"
_ORDERED = (
    "it is grouped or sorted by here, and Spark has no order of such values, in mode FULL either"
)
_FIX = "extract the entries you need, or turn it into a string with to_json"


def check_stored_rows(tree: exp.Query, text: Text) -> None:
    """Require that the rows of the result can be told apart."""
    for value in tree.selects:
        _require(value, UNCOMPARABLE, _TOLD_APART, text)


def check_grouped(values: Iterable[exp.Expr], text: Text) -> None:
    """Require that rows can be grouped by values, as GROUP BY, DISTINCT and UNION do."""
    for each in values:
        _require(each, UNGROUPED, _ORDERED, text)


def check_sorted(select: exp.Select, text: Text) -> None:
    """Require that rows can be sorted by the keys of an ORDER BY or of a window."""
    for value in (*_sorted_by(select.args.get("order")), *_of_windows(select)):
        _require(value, UNGROUPED, _ORDERED, text)


def check_aggregated(select: exp.Select, text: Text) -> None:
    """Require that the values that aggregates compare can be compared."""
    for call in (call for each in select.iter_expressions() for call in calls(each)):
        function = function_of(call)
        kinds = UNCOMPARABLE if reordered(call) else UNGROUPED
        given = [*zip(orders(call), (kinds, UNGROUPED), strict=False), *_compared(function)]
        kind = next((k for each, kinds in given if (k := held(each.type, kinds))), None)
        if kind:
            raise UnsupportedQuery(
                f"{_called(function)}{_distinct(function)} of a {kind}",
                where=place(function, text),
                why="a group's values are ordered by comparing them, and such values cannot be "
                "compared",
                fix="extract the entries you need before, or turn each into a string with to_json",
            )


def _require(value: exp.Expr, kinds: tuple[exp.DType, ...], why: str, text: Text) -> None:
    kind = held(value.unalias().type, kinds)
    if kind:
        where = place(value.unalias(), text)
        raise UnsupportedQuery(f"{_named(value)} holds a {kind}", where=where, why=why, fix=_FIX)


def _of_windows(select: exp.Select) -> Iterator[exp.Expr]:
    """The keys by which the windows of a SELECT split and sort its rows."""
    windows = (*select.find_all(exp.Window), *(select.args.get("windows") or []))
    for window in windows:
        yield from window.args.get("partition_by") or []
        yield from _sorted_by(window.args.get("order"))


def _sorted_by(order: exp.Expr | None) -> Iterator[exp.Expr]:
    for each in order.expressions if order is not None else []:
        yield each.this if isinstance(each, exp.Ordered) else each


def _compared(function: exp.Expr) -> Iterator[tuple[exp.Expr, tuple[exp.DType, ...]]]:
    """What Spark itself compares: the values of MIN, MAX, MODE, and those after DISTINCT."""
    for argument in function.iter_expressions():
        if isinstance(argument, exp.Distinct):
            yield from ((each, UNGROUPED) for each in argument.expressions)
        elif isinstance(function, exp.Min | exp.Max) or _called(function) == "MODE":
            yield argument, UNGROUPED


def _distinct(function: exp.Expr) -> str:
    return "(DISTINCT …)" if isinstance(function.this, exp.Distinct) else ""


def _called(function: exp.Expr) -> str:
    assert isinstance(function, exp.Func)
    return function.name.upper() if isinstance(function, exp.Anonymous) else function.sql_name()


def _named(value: exp.Expr) -> str:
    named = isinstance(value, exp.Alias | exp.Column)
    return f'"{value.alias_or_name}"' if named else "a compared value"
