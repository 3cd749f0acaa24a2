"""Left-linear operators: for each left row, something computed from the right.

    Δ f(L, R) = f(ΔL, R⁺) + f(L⁻ ⋉ K, R⁺) − f(L⁻ ⋉ K, R⁻)        K = the keys that occur in ΔR

Each left row is answered on its own, so f is linear in L, and

    f(L⁺, R⁺) − f(L⁻, R⁻)  =  f(ΔL, R⁺) + [ f(L⁻, R⁺) − f(L⁻, R⁻) ]

The bracket is the same left rows asked twice, and a row whose key does not occur in ΔR gets the
same answer both times, so the bracket may be restricted to K. Changes on both sides in one window
are exact because L⁻ and R⁻ are the real old tables.

The key is what the condition's equalities compare. It is asked of rows that other parts of the
condition would have kept from it, so an expression that can fail (a division, a cast) is no key.
A condition without a key has none, and then every left row is asked again as soon as anything came
to the right or went from it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    Operator,
    Pair,
    Step,
)


@dataclass(frozen=True)
class LeftLinear(Operator):
    left: Operator
    right: Operator
    condition: exp.Expr

    __hash__ = Step.__hash__
    law: ClassVar[str] = "left-linear"

    @property
    def weighted(self) -> bool:
        return self.left.weighted

    def empty_if(self, *inputs: bool) -> bool:
        return inputs[0]

    @property
    def keys(self) -> tuple[Pair, ...]:
        """What the condition compares for equality: (left expression, right expression)."""
        return equalities(self.condition, frozenset(self.left.schema), frozenset(self.right.schema))

    def delta(self) -> Operator:
        left, right = self.left, self.right
        asked_again = left.before.only(right.change, self.keys)
        return (
            self.over(left.change, right.after)
            + self.over(asked_again, right.after)
            - self.over(asked_again, right.before)
        )

    @property
    @abstractmethod
    def kind(self) -> str: ...

    def explain(self) -> str:
        return f"{self.kind} on {self.condition.sql('spark')}"


def equalities(
    condition: exp.Expr, left: frozenset[str], right: frozenset[str]
) -> tuple[Pair, ...]:
    """The conjuncts of `condition` that compare an expression of one side with one of the other."""
    pairs: list[Pair] = []
    for conjunct in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        conjunct = conjunct.unnest()
        if not isinstance(conjunct, exp.EQ | exp.NullSafeEQ):
            continue
        a, b = conjunct.this, conjunct.expression
        if _is_key(a, left) and _is_key(b, right):
            pairs.append((a, b))
        elif _is_key(b, left) and _is_key(a, right):
            pairs.append((b, a))
    return tuple(pairs)


# What cannot raise an error, whatever the row.
_SAFE = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren),
    *(exp.Coalesce, exp.Lower, exp.Upper, exp.Trim, exp.Concat, exp.DPipe, exp.Nullif),
)


def _is_key(expression: exp.Expr, side: frozenset[str]) -> bool:
    names = {each.name for each in expression.find_all(exp.Column)}
    safe = all(isinstance(node, _SAFE) for node in expression.walk())
    return safe and bool(names) and names <= side
