"""Where COLLATE may stand: in what is compared, and never in what is kept.

    region COLLATE UTF8_LCASE = name        TRUE, FALSE or NULL: a function of the row, like others
    ORDER BY region COLLATE UTF8_LCASE      rows that are equal by it are ordered by their columns
    MAX(region COLLATE UTF8_LCASE)          refused: one of 'North' and 'NORTH', and any of them

A collation takes strings of different bytes for equal. Rows are told apart by their bytes, and so
are the keys of groups, windows and intermediate tables. So the value of an expression may not have
a collation where it is kept: as an output, a key, the argument of an aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dagster_streamtables.compiler.analyze.ordered_aggregates import STRINGS
from dagster_streamtables.compiler.text import spark_functions

_PLAIN = "UTF8_BINARY"
"""The collation of every string that has no other: bytes."""
_COMPARING = (
    *(exp.Predicate, exp.Contains, exp.StartsWith, exp.EndsWith, exp.EqualNull),
    *(exp.Length, exp.Levenshtein, exp.StrPosition, exp.ArrayPosition),
)
"""Their results are booleans or numbers, and sqlglot's `Predicate` is not all of them."""


def escaping_collations(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node, if it gives a value a collation that this value still has where it is kept."""
    if _gives(node) and not _is_inside_comparison(node):
        yield node


def desugar_collations(tree: exp.Expr) -> None:
    """Write the name of each collation as a word: the qualifier takes other spellings for columns.

    CAST(x AS STRING COLLATE UTF8_LCASE), collate(x, 'UTF8_LCASE'), x COLLATE system.builtin.UNICODE
    """
    for type_ in tree.find_all(exp.DataType):
        if type_.args.get("collate") is not None:
            type_.set("collate", exp.Var(this=type_.args["collate"].name))
    for node in tree.find_all(exp.Collate):
        node.set("expression", exp.Var(this=node.expression.name))


def _gives(node: exp.Expr) -> bool:
    """Whether it gives a value a collation other than that of bytes."""
    if isinstance(node, exp.DataType):
        name = node.args.get("collate")
    else:
        name = node.expression if isinstance(node, exp.Collate) else None
    return name is not None and name.name.upper() != _PLAIN


def _is_inside_comparison(node: exp.Expr) -> bool:
    """Whether nothing but the result of a comparison leaves the expression around the node."""
    if isinstance(node, exp.DataType):
        if not isinstance(node.parent, exp.Cast):
            return False
        node = node.parent
    while (around := node.parent) is not None:
        if _compares(around, node):
            return True
        if not _is_of_one_row(around):
            return isinstance(around, exp.Ordered) and _orders_rows(around)
        node = around
    return False


def _orders_rows(item: exp.Ordered) -> bool:
    """Whether rows or values are put in an order by it: rows that are equal by a collation are
    then ordered by their columns, and values by their bytes. MODE() gives back what it orders."""
    of_group = item.find_ancestor(exp.WithinGroup, exp.Query)
    return not isinstance(of_group, exp.WithinGroup) or of_group.this.name.lower() in STRINGS


def _compares(around: exp.Expr, operand: exp.Expr) -> bool:
    if isinstance(around, exp.Case | exp.If):
        return operand.arg_key == "this"  # of CASE x WHEN y: x and y, but no result
    if isinstance(around, exp.Cast):
        return not around.to.args.get("collate")
    return isinstance(around, _COMPARING)


def _is_of_one_row(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in spark_functions.SCALAR
    if isinstance(node, exp.AggFunc | exp.Explode | exp.Inline):
        return False
    return isinstance(node, exp.Func | exp.Binary | exp.Paren | exp.Tuple)
