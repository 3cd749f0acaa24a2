"""Regroup: groups as they are now, in place of the stored rows of the same keys.

    Δ γ(R) = γ(R⁺ ⋉ K) − stored ⋉ K        K = the keys that occur in ΔR

The keyed law with the old half read from the table instead of computed from R⁻. Yields at most one
row for each key: the stored columns, and in the weight column what to do with them:

     1    store this row, in place of the stored row of its key if there is one
    -1    delete the stored row of this key; the columns beside the key are NULL

A key whose row is as it was yields nothing. Keys are compared null-safely.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.maintain.strategy import Root
from dagster_streamtables.compiler.operators import (
    Schema,
    Step,
    as_column,
    as_weight,
    column,
    select,
    table,
)


@dataclass(frozen=True)
class Regroup(Step):
    """Groups as they are now in place of the stored rows of the same keys."""

    groups: Step
    stored: Step
    root: Root

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        return self.stored.schema

    @property
    def weighted(self) -> bool:
        return True

    def select(self, *inputs: str) -> exp.Query:
        names = list(self.schema)
        keys = {name for name, _ in self.root.key}
        is_new, is_old = column("is new", "n"), column("is old", "s")
        kept = [
            as_column(exp.Coalesce(this=column(n, "n"), expressions=[column(n, "s")]), n)
            if n in keys
            else as_column(column(n, "n"), n)
            for n in names
        ]
        gone = exp.Is(this=is_new, expression=exp.null())
        weight = exp.Case().when(gone, exp.Literal.number(-1)).else_(exp.Literal.number(1))
        new, old = (
            select(exp.Star(), exp.alias_(exp.Literal.number(1), mark, quoted=True))
            .from_(table(name), copy=False)
            .subquery(alias, copy=False)
            for name, mark, alias in zip(inputs, ("is new", "is old"), "ns", strict=True)
        )
        same = exp.and_(
            exp.Not(this=gone.copy()),
            exp.Not(this=exp.Is(this=is_old, expression=exp.null())),
            *(null_safe(column(n, "n"), column(n, "s")) for n in names if n not in keys),
        )
        match_ = [null_safe(column(n, "n"), column(n, "s")) for n, _ in self.root.key]
        return (
            select(*kept, as_weight(weight))
            .from_(new, copy=False)
            .join(old, on=exp.and_(*match_) if match_ else exp.true(), join_type="full", copy=False)
            .where(exp.Not(this=exp.paren(same)), copy=False)
        )

    def explain(self) -> str:
        return "Regroup: the groups as they are now in place of the stored rows"


def null_safe(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=left, expression=right)
