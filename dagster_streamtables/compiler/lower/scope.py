"""Name resolution within one query.

In the operator tree a column is a flat name, unique within its scope: ``orders AS o`` becomes the
columns ``o.id``, ``o.customer``, and so on. A subquery sees its own tables and those of the outer
queries, which may have the same names; its own get one mark per outer query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dagster_streamtables.compiler.analyze.bind import Columns
from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.sql_builders import column, type_of, typed
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.current_time import NOW, is_now

_TIME = exp.DataType.build("timestamp")


@dataclass(frozen=True)
class Scope:
    sources: Mapping[str, tuple[str, Columns]]
    """Name in the tree → the source's own name, and its columns."""
    shared: Mapping[str, Operator] = field(default_factory=dict[str, Operator])
    """The visible common table expressions."""
    tables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Alias of a visible table → its name in the tree."""
    held: Mapping[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])
    """Column of an outer query → its value since that query was grouped."""
    depth: int = 0
    """The number of outer queries whose rows are visible."""

    def inside(self) -> Scope:
        """The scope of a correlated subquery."""
        return replace(self, depth=self.depth + 1)

    def apart(self) -> Scope:
        """The scope of an uncorrelated subquery."""
        return replace(self, tables={}, held={})

    def seeing(self, aliases: list[str]) -> Scope:
        """The scope with its own tables, which hide outer ones of the same names."""
        tables = {**self.tables, **{alias: self.unique_name(alias) for alias in aliases}}
        return replace(self, tables=tables)

    def unique_name(self, name: str) -> str:
        """An alias or a generated name, with a mark for each outer query, none of which uses it."""
        return name + "'" * self.depth

    def flat(self, expression: exp.Expr) -> exp.Expr:
        """Replace each ``table.column`` by its flat name in the tree."""

        def settle(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table:
                name = flat(self.tables.get(node.table, node.table), node.name)
                held = self.held.get(name)
                return typed(column(name) if held is None else held.copy(), type_of(node))
            return typed(column(NOW), _TIME) if is_now(node) else node

        return rewrite_expression(expression, settle)


def rewrite_expression(expression: exp.Expr, rule: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """`expression` with the rule applied to each node outside of subqueries, and to each subquery
    as a whole."""

    def settle(node: exp.Expr) -> exp.Expr:
        new = rule(node)
        # `transform` does not descend into a node that was replaced, such as this copy.
        return node.copy() if new is node and isinstance(node, exp.Query) else new

    return expression.copy().transform(settle, copy=False)
