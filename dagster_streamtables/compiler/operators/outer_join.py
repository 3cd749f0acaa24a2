"""Left outer join: pair the rows, and keep the left rows that find no partner.

    L ⟕ R        left-linear; see `left_linear` for the rule and why it holds

The rule joins each touched left row with the right side after and before. That inserts the padded
row of one that loses its last partner, and deletes it when the first partner arrives.

``lower`` writes ``RIGHT`` as this with the sides swapped, and ``FULL`` as this plus the padded rows
of the anti `SemiJoin` in the other direction.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.operators.columns import (
    broadcast,
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.left_linear import ConditionalJoin
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class OuterJoin(ConditionalJoin):
    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, **self.right.schema}

    @property
    def kind(self) -> str:
        return "Left outer join"

    def select(self, *inputs: str) -> exp.Query:
        left, right = inputs
        columns = [column(name) for name in self.schema]
        if self.has_weight_column:
            columns = [*columns, weight_column("l")]
        query = select(*(columns or [exp.Literal.number(1)])).from_(table(left, "l"), copy=False)
        on = self.condition.copy()
        query = query.join(table(right, "r"), on=on, join_type="left", copy=False)
        return broadcast(query, "r") if self.small else query
