"""Find the aggregate calls in an expression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from sqlglot import exp

from dagster_streamtables.compiler.text import spark_functions

_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""The clauses that wrap a call and belong to it."""


def function_of(node: exp.Expr) -> exp.Expr:
    """The function itself, without FILTER, WITHIN GROUP, or IGNORE NULLS."""
    while isinstance(node, _AROUND):
        node = node.this
    return node


def is_call(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, including its FILTER, WITHIN GROUP and the like."""
    function = function_of(node)
    if isinstance(function, exp.Anonymous):
        return function.name.lower() in spark_functions.AGGREGATES
    return isinstance(function, exp.AggFunc)


def calls(part: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregate calls of an expression, outermost first, without those of its subqueries.

    A window function is not an aggregate call, but its arguments may contain one: in
    ``SUM(SUM(x)) OVER ()`` only the inner sum counts.
    """
    if isinstance(part, exp.Query):
        return
    if isinstance(part, exp.Window):
        below = [each for key, each in _children(part) if key != "this"]
        function = part.this
        while isinstance(function, _AROUND):
            below += [each for key, each in _children(function) if key != "this"]
            function = function.this
        below += function.iter_expressions()
    elif is_call(part):
        yield part
        return
    else:
        below = list(part.iter_expressions())
    for each in below:
        yield from calls(each)


def is_of_window(node: exp.Expr) -> bool:
    """Whether a node is the function of a window, with or without its IGNORE NULLS and the like."""
    while isinstance(node.parent, _AROUND) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _children(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for key, value in node.args.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield key, each


def has_groups(query: exp.Select) -> bool:
    """Whether a SELECT returns one row per group."""
    if query.args.get("group") or query.args.get("having"):
        return True
    parts = [*query.expressions, *(query.args.get(k) for k in ("qualify", "order"))]
    return any(next(calls(part), None) is not None for part in parts if part is not None)


_SETS = (exp.GroupingSets, exp.Cube, exp.Rollup)
_OF_SETS = (*_SETS, exp.Tuple)


def grouping_keys(clause: exp.Expr) -> Iterator[exp.Expr]:
    """The keys of a GROUP BY clause, those of its grouping sets included, without parentheses."""
    for each in clause.iter_expressions():
        of_set = isinstance(each, exp.Tuple) and isinstance(clause, _OF_SETS)
        if of_set or isinstance(each, _SETS):
            yield from grouping_keys(each)
        else:
            yield each.unnest() if isinstance(each, exp.Paren) else each


def sets_of(node: exp.Expr) -> list[list[exp.Expr]]:
    """The grouping sets of GROUPING SETS, CUBE or ROLLUP, or of one element of them.

    >>> rollup = exp.Rollup(expressions=[exp.column("a"), exp.column("b")])
    >>> [[key.name for key in keys] for keys in sets_of(rollup)]
    [['a', 'b'], ['a'], []]
    """
    if isinstance(node, exp.GroupingSets):
        return [each for part in node.expressions for each in sets_of(part)]
    if isinstance(node, exp.Cube | exp.Rollup):
        return sets_over(node, [_together(part) for part in node.expressions])
    return [_together(node)]


def sets_over(node: exp.Expr, parts: Sequence[list[exp.Expr]]) -> list[list[exp.Expr]]:
    """The grouping sets of CUBE or ROLLUP over some keys, of which several may go together."""
    sizes = range(len(parts), -1, -1)
    if isinstance(node, exp.Rollup):
        return [list(chain.from_iterable(parts[:size])) for size in sizes]
    some = chain.from_iterable(combinations(parts, size) for size in sizes)
    return [list(chain.from_iterable(each)) for each in some]


def _together(node: exp.Expr) -> list[exp.Expr]:
    inner = node.expressions if isinstance(node, exp.Tuple) else [node]
    return [each.unnest() for each in inner]
