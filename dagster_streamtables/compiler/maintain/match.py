"""Match: join what a change adds to each touched group with the group's stored row.

    partial ⟕ stored        by key; NULL equals NULL

One row per touched key. The columns of the partial are named ``p.…``, and those of the stored row
``s.…``; the latter are NULL if no row is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.maintain.regroup import null_safe
from dagster_streamtables.compiler.operators import (
    Schema,
    Step,
    as_column,
    column,
    select,
    table,
)


def partial_column(name: str) -> str:
    """The name of a column of the partial.

    >>> partial_column("key_0")
    'p.key_0'
    """
    return f"p.{name}"


def stored_column(name: str) -> str:
    """The name of a column of the stored row.

    >>> stored_column("total")
    's.total'
    """
    return f"s.{name}"


@dataclass(frozen=True)
class Match(Step):
    partial: Step
    stored: Step
    key: tuple[tuple[str, str], ...]
    """Pairs of a stored key column and the partial's."""

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        partial = {partial_column(name): type_ for name, type_ in self.partial.schema.items()}
        return partial | {stored_column(name): type_ for name, type_ in self.stored.schema.items()}

    @property
    def has_weight_column(self) -> bool:
        return False

    def select(self, *inputs: str) -> exp.Query:
        partial, stored = inputs
        match = [null_safe(column(s, "s"), column(p, "p")) for s, p in self.key]
        left, right = self.partial.schema, self.stored.schema
        return (
            select(
                *(as_column(column(name, "p"), partial_column(name)) for name in left),
                *(as_column(column(name, "s"), stored_column(name)) for name in right),
            )
            .from_(table(partial, "p"), copy=False)
            .join(
                table(stored, "s"),
                on=exp.and_(*match) if match else exp.true(),
                join_type="left",
                copy=False,
            )
        )

    def explain(self) -> str:
        return "Match: each touched group, and its stored row"
