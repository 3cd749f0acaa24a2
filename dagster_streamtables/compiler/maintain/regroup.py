"""Regroup: recompute the touched groups, and replace their stored rows.

    Δ γ(R) = γ(R⁺ ⋉ K) − stored ⋉ K        K = the keys that occur in ΔR

The keyed law, but the old half is read from the table instead of computed from R⁻. Returns at most
one row per key: the stored columns, and in the weight column the action:

     1    store this row, replacing the stored row of its key if any
    -1    delete the stored row of this key; all columns except the key are NULL

Keys whose rows did not change are omitted. Keys are compared null-safely.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.operators import (
    Schema,
    Step,
    as_column,
    as_weight,
    column,
    select,
    table,
)
from dagster_streamtables.compiler.operators.comparable import comparable


@dataclass(frozen=True)
class Regroup(Step):
    """The recomputed groups, as replacements of the stored rows of the same keys."""

    groups: Step
    stored: Step
    key: tuple[tuple[str, str], ...]
    """The stored key columns, and the keys of the groups."""

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        return self.stored.schema

    @property
    def has_weight_column(self) -> bool:
        return True

    def select(self, *inputs: str) -> exp.Query:
        names = list(self.schema)
        keys = {name for name, _ in self.key}
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
            *(
                same_value(column(n, "n"), column(n, "s"), type_)
                for n, type_ in self.schema.items()
                if n not in keys
            ),
        )
        match_ = [null_safe(column(n, "n"), column(n, "s")) for n, _ in self.key]
        return (
            select(*kept, as_weight(weight))
            .from_(new, copy=False)
            .join(old, on=exp.and_(*match_) if match_ else exp.true(), join_type="full", copy=False)
            .where(exp.Not(this=exp.paren(same)), copy=False)
        )

    def explain(self) -> str:
        return "Regroup: the recomputed groups replace their stored rows"


def null_safe(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=left, expression=right)


def same_value(left: exp.Expr, right: exp.Expr, type_: exp.DataType) -> exp.Expr:
    """Whether two values of a stored column are equal, be they maps or NULL."""
    return null_safe(comparable(left, type_), comparable(right, type_))
