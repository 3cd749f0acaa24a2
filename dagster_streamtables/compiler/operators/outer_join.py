"""Left outer join: pair the rows, and keep the left rows that find no partner.

    L ⟕ R        left-linear; see `left_linear` for the rule and why it holds

The padded row of a left row that loses its last partner, and the one that a first partner takes
away, both come out of asking the left row twice: against the right side after, and before.

``RIGHT`` is this with the sides exchanged, and ``FULL`` is this plus the padded rows of the
anti `SemiJoin` in the other direction; `lower` writes both so.
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
        if self.weighted:
            columns = [*columns, weight_column("l")]
        query = select(*(columns or [exp.Literal.number(1)])).from_(table(left, "l"), copy=False)
        on = self.condition.copy()
        query = query.join(table(right, "r"), on=on, join_type="left", copy=False)
        return broadcast(query, "r") if self.small else query
