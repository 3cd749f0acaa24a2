"""Semi join and anti join: the left rows with a partner, or those without.

    L ⋉ R,  L ▷ R        left-linear; see `left_linear` for the rule and why it holds

A row with several partners is returned once. A condition that is NULL is no match, as in EXISTS
and unlike IN.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.operators.columns import (
    all_of,
    broadcast,
    column,
    select,
    table,
)
from dagster_streamtables.compiler.operators.left_linear import ConditionalJoin
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class SemiJoin(ConditionalJoin):
    anti: bool = False

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        return self.left.schema

    @property
    def kind(self) -> str:
        return "Anti join" if self.anti else "Semi join"

    def select(self, *inputs: str) -> exp.Query:
        left, right = inputs
        names = frozenset(self.left.schema)

        def settle(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column):
                return column(node.name, "l" if node.name in names else "r")
            return node

        condition = self.condition.transform(settle)
        found = select(exp.Literal.number(1)).from_(table(right, "r"), copy=False)
        found = found.where(condition, copy=False)
        partner = exp.Exists(this=broadcast(found, "r") if self.small else found)
        rows = select(all_of("l")).from_(table(left, "l"), copy=False)
        return rows.where(exp.Not(this=partner) if self.anti else partner, copy=False)
