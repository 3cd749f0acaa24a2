"""Subqueries in ON of a join that pads or drops rows: each becomes a column of one side.

    L ⟕ R ON p AND q(EXISTS (… R.k …))   =   L ⟕ σ_q(R) ON p
    L ⟕ R ON p AND q(EXISTS (… L.k …))   =   π(α(L) ⟕ R ON p AND q(answer))

A row that fails the condition is padded, so the whole condition cannot move to WHERE. The answer to
a subquery depends on the row of one side alone, as Spark requires, so that side can have it as a
column. Rows of a side that the join does not keep are filtered before it instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.lower.pushdown import timed
from dagster_streamtables.compiler.lower.questions import negations_inward, questions
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.lower.subqueries import Subqueries, asks_itself
from dagster_streamtables.compiler.operators import Operator, Project, column, typed
from dagster_streamtables.compiler.operators.left_linear import conjuncts
from dagster_streamtables.compiler.text.aliases import free_tables
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.refusal import Refusal


@dataclass
class Sides:
    """The inputs of a join, to which the answers of its condition's subqueries are added."""

    left: Operator
    right: Operator
    scope: Scope
    subqueries: Subqueries

    def answered(self, condition: exp.Expr, dropped: str) -> exp.Expr:
        """The condition without subqueries.

        Args:
            condition: ON, as the author wrote it.
            dropped: The side whose rows the result lacks if they have no partner: ``left``,
                ``right``, or none.

        Raises:
            Refusal: A subquery mentions both sides.
        """
        rest: list[exp.Expr] = []
        for part in conjuncts(condition):
            if part.find(exp.Query) is None:
                rest.append(part)
            elif dropped and self._side(part) in (dropped, ""):
                side = getattr(self, dropped)
                rows = self.subqueries.where(side, part, self.scope)
                setattr(self, dropped, only(rows, side.schema))
            else:
                rest.append(self._with_answers(negations_inward(part)))
        return exp.and_(*rest) if rest else exp.true()

    def _with_answers(self, part: exp.Expr) -> exp.Expr:
        answers: dict[exp.Expr, exp.Expr] = {}
        for node in questions(part):
            side = self._side(node) or "left"
            if side == "both":
                raise _of_both(node)
            rows = getattr(self, side)
            asking = timed(rows) if asks_itself(node) else rows
            answered, [answer] = self.subqueries.ask(asking, [node], self.scope)
            setattr(self, side, only(answered, [*rows.schema, answer.name]))
            answers[node] = answer
        return part.copy().transform(lambda n: answers[n].copy() if n in answers else n)

    def _side(self, part: exp.Expr) -> str:
        """The side whose columns an expression mentions: ``left``, ``right``, ``both``, or none."""
        free = free_tables(part)
        names = {
            flat(self.scope.tables[each.table], each.name)
            for each in part.find_all(exp.Column)
            if each.table in free and each.table in self.scope.tables
        }
        found = [side for side in ("left", "right") if names & set(getattr(self, side).schema)]
        return "both" if len(found) == 2 else "".join(found)


def only(rows: Operator, names: Iterable[str]) -> Operator:
    """The rows with some of their columns."""
    kept = tuple((name, typed(column(name), rows.schema[name])) for name in names)
    return rows if len(kept) == len(rows.schema) else Project(rows, kept)


def _of_both(node: exp.Expr) -> Refusal:
    return Refusal(
        node,
        "a subquery in ON that mentions both sides of the join",
        why="Spark evaluates such a subquery on one side, before the join, in mode FULL too",
        fix="join first in a subquery, then compare with the columns of both in its WHERE",
    )
