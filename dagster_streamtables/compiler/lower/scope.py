"""What names mean at one place of a query.

Below `lower` a column is a plain name, unique wherever it can be seen: ``orders AS o`` enters the
tree with the columns ``o.id``, ``o.customer``, and so on. A subquery sees its own tables and those
of the queries around it, which may bear the same names; its own get a mark for each query around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dagster_streamtables.compiler.analyze.bind import Columns
from dagster_streamtables.compiler.operators import Operator, column, type_of, typed
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.current_time import NOW, is_now

_TIME = exp.DataType.build("timestamp")


@dataclass(frozen=True)
class Scope:
    sources: Mapping[str, tuple[str, Columns]]
    """Name in the tree → the source's own name, and its columns."""
    shared: Mapping[str, Operator] = field(default_factory=dict[str, Operator])
    """The common table expressions in reach."""
    tables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Alias of a table that can be seen here → its name in the tree."""
    held: Mapping[str, str] = field(default_factory=dict[str, str])
    """Columns of the queries around that are known by another name since they were grouped."""
    depth: int = 0
    """The number of queries around this one whose rows it can see."""

    def inside(self) -> Scope:
        """The scope of a subquery that sees these tables."""
        return replace(self, depth=self.depth + 1)

    def apart(self) -> Scope:
        """The scope of a subquery that sees none of them."""
        return replace(self, tables={}, held={})

    def own(self, alias: str) -> str:
        return alias + "'" * self.depth

    def seeing(self, aliases: list[str]) -> Scope:
        """The same with tables of its own, which hide those around that bear their names."""
        tables = {**self.tables, **{alias: self.own(alias) for alias in aliases}}
        return replace(self, tables=tables)

    def marked(self, name: str) -> str:
        """A name for something made here, that no query around has made."""
        return name + "'" * self.depth

    def flat(self, expression: exp.Expr) -> exp.Expr:
        """Turn each ``table.column`` into the one name it has in the tree."""

        def settle(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table:
                name = flat(self.tables.get(node.table, node.table), node.name)
                return typed(column(self.held.get(name, name)), type_of(node))
            return typed(column(NOW), _TIME) if is_now(node) else node

        return rewritten(expression, settle)


def rewritten(expression: exp.Expr, rule: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """`expression` with each node exchanged by the rule; subqueries stay as they are."""

    def settle(node: exp.Expr) -> exp.Expr:
        # A copy is another node, and below another node nothing is exchanged.
        return node.copy() if isinstance(node, exp.Query) else rule(node)

    return expression.copy().transform(settle, copy=False)
