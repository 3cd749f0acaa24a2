"""Rounds: a recursion whose step combines the rows of the last round.

    T = R₀ + R₁ + R₂ + …    R₀ = B,   Rᵢ₊₁ = S(Rᵢ)        R JOIN R, DISTINCT, IN (SELECT … FROM R)

    Δ T = T⁺ − T⁻           if anything that B or S reads has changed

Every reference of such a step has the rows of the last round, as in Spark. What a row derives
depends on other rows of its round, and of two rows that were in one round before, each may be in
another now. So no change can be carried on by itself: the rounds run over all rows, before and
after. At the root of a query, T⁻ is what the table holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dagster_streamtables.compiler.operators.algebra import Operator, Restriction
from dagster_streamtables.compiler.operators.recursion import Recursion
from dagster_streamtables.compiler.operators.scan import scans_of
from dagster_streamtables.compiler.operators.step import Link, Step
from dagster_streamtables.compiler.operators.timed import Timed, TimedFilter


@dataclass(frozen=True)
class Rounds(Recursion):
    __hash__ = Step.__hash__
    law: ClassVar[str] = "fixpoint"
    cost: ClassVar[str] = "all rows, before and after"

    def delta(self) -> Operator:
        if _reads_time(self):
            return self.after - self.before
        # Each change by itself, since a row that came and another that went are two.
        changes = tuple(dict.fromkeys(scan.change for scan in scans_of(self)))
        links = (Link(),) * len(changes)
        now, then = (Restriction(rows, changes, links) for rows in (self.after, self.before))
        return now - then

    def explain(self) -> str:
        return f"Rounds {self.reference.name} ({', '.join(self.schema)})"


def _reads_time(step: Step) -> bool:
    return isinstance(step, Timed | TimedFilter) or any(map(_reads_time, step.inputs))
