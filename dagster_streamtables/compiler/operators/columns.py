"""Columns and weights as a step says them in SQL: names are always quoted, the weight has one."""

from __future__ import annotations

from sqlglot import exp

WEIGHT = "__weight"


def column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def weight_column(table: str | None = None) -> exp.Column:
    return exp.column(WEIGHT, table=table)


def as_weight(expression: exp.Expr) -> exp.Expr:
    return exp.alias_(expression, WEIGHT)


def as_column(expression: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(expression.copy(), name, quoted=True)


def within(expression: exp.Expr, table: str) -> exp.Expr:
    """`expression` with every column read from `table`."""

    def settle(node: exp.Expr) -> exp.Expr:
        return column(node.name, table) if isinstance(node, exp.Column) else node

    return expression.transform(settle)


def type_of(expression: exp.Expr) -> exp.DataType:
    """The type `parse` gave the expression; UNKNOWN where it could not tell."""
    return expression.type or exp.DataType.build("UNKNOWN")


def typed(expression: exp.Expr, type_: exp.DataType) -> exp.Expr:
    expression.type = type_
    return expression
