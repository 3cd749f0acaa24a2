"""Spark expressions from templates, with operands of the query put in."""

from __future__ import annotations

import functools

import sqlglot
from sqlglot import exp

from dagster_streamtables.compiler.text.spark import DIALECT

_APART = (exp.Func, exp.Paren, exp.Column, exp.Literal, exp.Cast, exp.Subquery, exp.Null,
          exp.Window, exp.Filter, exp.Case)  # fmt: skip


@functools.cache
def _parse_template(template: str) -> exp.Expr:
    return sqlglot.parse_one(template, dialect=DIALECT)


def from_template(template: str, **operands: exp.Expr) -> exp.Expr:
    """An expression of Spark.

    Args:
        template: In Spark SQL; an operand is named like a column, with an underscore before it.
        operands: What is put in their place.

    >>> from_template("_a DIV (_b + 1)", a=exp.column("x") + 1, b=exp.Literal.number(2)).sql("spark")
    '((x + 1) DIV (2 + 1))'
    """
    tree = exp.paren(_parse_template(template), copy=True)
    for node in list(tree.find_all(exp.Column)):
        operand = operands.get(node.name[1:]) if node.name.startswith("_") else None
        if operand is not None and not node.table:
            alone = isinstance(operand, _APART) or isinstance(node.parent, exp.Func)
            node.replace(operand.copy() if alone else exp.paren(operand))
    return tree.this if isinstance(tree.this, _APART) else tree


def number(value: int) -> exp.Expr:
    """A literal of a whole number."""
    return exp.Literal.number(value)


def string(value: str) -> exp.Expr:
    """A literal of a string."""
    return exp.Literal.string(value)
