"""Subqueries in ON of a join that pads or drops rows: each becomes a column of one side.

    L ⟕ R ON p AND q(EXISTS (… R.k …))   =   L ⟕ σ_q(R) ON p
    L ⟕ R ON p AND q(EXISTS (… L.k …))   =   π(α(L) ⟕ R ON p AND q(answer))

A row that fails the condition is padded, so the whole condition cannot move to WHERE. The answer to
a subquery depends on the row of one side alone, as Spark requires, so that side can have it as a
column. Rows of a side that the join does not keep are filtered before it instead.

IN is maintained there where NULL counts as FALSE: in NOT IN or IN … IS NULL, Spark answers it as if
there were no NULLs, for x NOT IN (…) where x is NULL, too. Such a filter of one side is maintained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.lower.pushdown import add_time_column
from dagster_streamtables.compiler.lower.questions import (
    is_subquery,
    negations_inward,
    outermost_subqueries,
)
from dagster_streamtables.compiler.lower.scope import Scope
from dagster_streamtables.compiler.lower.subqueries import Subqueries, asks_itself
from dagster_streamtables.compiler.operators import Operator, Project, column, typed
from dagster_streamtables.compiler.operators.left_linear import conjuncts
from dagster_streamtables.compiler.text.column_names import flat
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.tables import free_tables


@dataclass
class JoinSides:
    """The inputs of a join, to which the answers of its condition's subqueries are added."""

    left: Operator
    right: Operator
    scope: Scope
    subqueries: Subqueries

    def answer_subqueries(self, condition: exp.Expr, join: exp.Join) -> exp.Expr:
        """The condition without subqueries.

        Args:
            condition: ON, as the author wrote it.
            join: Its join, which is no inner one.

        Raises:
            Refusal: A subquery mentions both sides, or Spark answers it otherwise than SQL.
        """
        rest: list[exp.Expr] = []
        self.require_as_in_sql(condition, join)
        for part in conjuncts(condition):
            side = self._side(part) or next(iter(_inner_sides(join)), "")
            if part.find(exp.Query) is None:
                rest.append(part)
            elif side and side in _inner_sides(join):
                rows = getattr(self, side)
                kept = self.subqueries.where(rows, part, self.scope)
                setattr(self, side, only(kept, rows.schema))
            else:
                rest.append(self._with_answers(negations_inward(part)))
        return exp.and_(*rest) if rest else exp.true()

    def require_as_in_sql(self, condition: exp.Expr, join: exp.Join) -> None:
        """
        Raises:
            Refusal: It has an IN that Spark answers as if there were no NULLs.
        """
        for part in map(negations_inward, conjuncts(condition)):
            asked = next((each for each in part.find_all(exp.In) if _counts_null(each, part)), None)
            # Without a column of either side, Spark looks for the left one.
            if asked is not None and (self._side(part) or "left") not in _inner_sides(join):
                raise _of_nulls(asked)

    def _with_answers(self, part: exp.Expr) -> exp.Expr:
        answers: dict[exp.Expr, exp.Expr] = {}
        for node in outermost_subqueries(part):
            side = self._side(node) or "left"
            if side == "both":
                raise _of_both(node)
            rows = getattr(self, side)
            asking = add_time_column(rows) if asks_itself(node) else rows
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


def _inner_sides(join: exp.Join) -> Sequence[str]:
    """The sides whose rows the result lacks if they have no partner."""
    if join.kind == "ANTI":
        return ["right"]
    return {"LEFT": ["right"], "RIGHT": ["left"], "FULL": []}.get(join.side, ["right", "left"])


def _counts_null(asked: exp.In, part: exp.Expr) -> bool:
    """Whether it asks a subquery, and NULL is another answer to the condition than FALSE."""
    if not is_subquery(asked):
        return False
    around: exp.Expr | None = asked
    while around is not part and around is not None:
        around = around.parent
        if not isinstance(around, exp.And | exp.Or | exp.Paren):
            return True
    return False


def _of_nulls(node: exp.Expr) -> Refusal:
    return Refusal(
        node,
        "IN with a subquery in ON of this join, where NULL is not FALSE",
        why="Spark answers it there as if no value were NULL, in mode FULL too",
        fix="write NOT EXISTS (SELECT … WHERE y = x), or make IN a column of a subquery and "
        "join that",
    )


def _of_both(node: exp.Expr) -> Refusal:
    return Refusal(
        node,
        "a subquery in ON that mentions both sides of the join",
        why="Spark evaluates such a subquery on one side, before the join, in mode FULL too",
        fix="join first in a subquery, then compare with the columns of both in its WHERE",
    )
