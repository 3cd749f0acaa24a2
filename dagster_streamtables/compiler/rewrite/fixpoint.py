"""Recursions, run: rounds of statements until one of them finds nothing new.

What is run is a step over rows that are at hand, so each round costs what the rows of the round
before lead to. Who runs it, and where its rows then are, is the caller's.

Spark runs a recursion by UNION ALL itself, but no deeper than its session allows, and not deep: it
holds every round in memory, and 1,000 rounds over a table of 1,000 rows are too many for a heap of
3 GB. Rounds of our own need no setting of a session, and a bound of them is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from dagster_streamtables.compiler.operators import (
    Link,
    Moment,
    Operator,
    Project,
    Recursion,
    Reference,
    Restriction,
    Scan,
    Step,
    Union,
    column,
    distinct,
    typed,
)
from dagster_streamtables.compiler.operators.closure import Closure, ClosureChange, Signed
from dagster_streamtables.compiler.operators.interning import rebuild
from dagster_streamtables.compiler.operators.net import Empty
from dagster_streamtables.compiler.operators.recursion import with_reference
from dagster_streamtables.compiler.operators.render import render
from dagster_streamtables.compiler.rewrite.simplify import simplify
from dagster_streamtables.errors import RunawayRecursion

Evaluate = Callable[[Operator, int | None], tuple[Operator, int]]
"""Runs an operator; gives a scan of its rows, or `Empty`, and their number.

Its second argument is a number of rows after which no more are needed; None for all.
"""


@dataclass(frozen=True)
class RecursionLimits:
    """How far a recursion may go."""

    levels: int = 1_000
    """Rounds of its step that find rows."""
    rows: int = 1_000_000
    """Rows that it makes, the beginning included."""

    def require(self, level: int, rows: int, name: str) -> None:
        """
        Args:
            level: Rounds that found rows.
            rows: Rows that were made until now.
            name: Of the recursion.

        Raises:
            RunawayRecursion: It went too far.
        """
        if level > self.levels:
            self._stop(name, f"after {self.levels:,} levels", "max_recursion_levels")
        if rows > self.rows:
            self._stop(name, f"after {self.rows:,} rows", "max_recursion_rows")

    def _stop(self, name: str, after: str, setting: str) -> None:
        raise RunawayRecursion(
            f'the recursion "{name}" has not ended {after}',
            why="by UNION ALL a circle in the rows never ends, and by UNION a column that grows, "
            "such as n + 1, never does",
            fix="bound it in the query (WHERE depth < 50), use UNION where rows form a circle, or "
            f"raise {setting} if it does end; the table stays as it was",
        )


def has_recursions(root: Step) -> bool:
    return isinstance(root, Recursion | ClosureChange) or any(map(has_recursions, root.inputs))


def closed(root: Step, evaluate: Evaluate, bound: RecursionLimits | None = None) -> Step:
    """The plan with the rows of each recursion, and of each change of one, in its place.

    Raises:
        RunawayRecursion: One of them goes further than the bound allows.
    """
    run = _Run(evaluate, bound or RecursionLimits())

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        step = simplify(step.over(*inputs), unmoved=frozenset())
        if isinstance(step, Closure):
            return run.closure(step.step, step.reference, distinct(step.base), ())
        if isinstance(step, Recursion):
            return run.recursion(step)
        return _change(step, run) if isinstance(step, ClosureChange) else step

    return simplify(rebuild(root, rule), unmoved=frozenset())


def named(root: Step) -> Step:
    """The plan with a name in the place of each closure and change of one, for a person to read."""

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        if not isinstance(step, Closure | ClosureChange):
            return step.over(*inputs)
        moment = Moment.CHANGE if step.weighted else Moment.AFTER
        return Scan(step.reference.name, tuple(step.schema.items()), moment)

    return rebuild(root, rule)


def spelled(root: Step) -> str:
    """The plan as text that tells any two plans apart.

    What `named` shows does not: two recursions of one name may have other steps.
    """
    inside: list[str] = []

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        if isinstance(step, Closure | ClosureChange):
            inside.extend(render(each, pretty=False) for each in inputs)
            return named(step)
        return step.over(*inputs)

    whole = render(rebuild(root, rule), pretty=False)
    return "\n".join([whole, *inside])


def _change(change: ClosureChange, run: _Run) -> Operator:
    reference = change.reference

    def brought(rows: Operator) -> Operator:
        return change.base_change + with_reference(change.step_change, reference, rows)

    old = change.old
    touched = run.rows(distinct(Signed(brought(old), came=False)))
    if isinstance(touched, Empty):
        lost, kept = touched, old
        start = distinct(Signed(brought(old), came=True))
    else:
        before = run.closure(change.step_before, reference, touched, ())
        lost = run.rows(_within(before, old))
        kept = _without(old, lost)
        step = with_reference(change.step_after, reference, kept)
        candidates = distinct(Union(lost, Signed(brought(kept), came=True)))
        start = _within(candidates, Union(change.base, step))
    found = run.closure(change.step_after, reference, start, (kept,))
    return _without(found, lost) - _without(lost, found)


@dataclass(frozen=True)
class _Run:
    """A step, again and again, over what its last round found."""

    evaluate: Evaluate
    bound: RecursionLimits

    def rows(self, operator: Operator) -> Operator:
        return self.evaluate(operator, None)[0]

    def recursion(self, recursion: Recursion) -> Operator:
        """What the base leads to, itself included, with all copies and the sign that each has.

        A row that came and an equal one that went are both carried on, to the end: that they
        cancel does not say that nothing is made of them on a circle.
        """
        reference = recursion.reference

        def following(new: Operator) -> Operator:
            return with_reference(recursion.step, reference, new)

        return self._rounds(reference, recursion.base, following, lambda rows, _: rows)

    def closure(
        self, step: Operator, reference: Reference, start: Operator, known: tuple[Operator, ...]
    ) -> Operator:
        """What `start` leads to, itself included, that is not known; without copies."""

        def following(new: Operator) -> Operator:
            return distinct(_named(with_reference(step, reference, new), reference))

        def unknown(rows: Operator, found: list[Operator]) -> Operator:
            return reduce(_without, [*known, *found], rows)

        return self._rounds(reference, start, following, unknown)

    def _rounds(
        self,
        reference: Reference,
        start: Operator,
        following: Callable[[Operator], Operator],
        unknown: Callable[[Operator, list[Operator]], Operator],
    ) -> Operator:
        found: list[Operator] = []
        made, total = start, 0
        for level in itertools.count():
            asked = unknown(_named(made, reference), found)
            new, count = self.evaluate(asked, self.bound.rows - total)
            if isinstance(new, Empty):
                return reduce(Union, found) if found else new
            total += count
            self.bound.require(level, total, reference.name)
            found.append(new)
            if len(found) == _APART:
                found = [self.rows(reduce(Union, found))]
            made = following(new)
        raise AssertionError("rounds are counted without an end")


def _named(rows: Operator, reference: Reference) -> Operator:
    """The rows with the columns' names of the relation itself: a step matches by position."""
    named = zip(reference.schema.items(), rows.schema, strict=True)
    return Project(rows, tuple((name, typed(column(own), t)) for (name, t), own in named))


_APART = 8
"""Rounds whose rows are kept apart: a statement names all of them."""


def _link(rows: Operator, others: Operator) -> Link:
    """Rows are equal where all columns are, by position."""
    return Link(tuple(zip(map(column, rows.schema), map(column, others.schema), strict=True)))


def _within(rows: Operator, others: Operator) -> Operator:
    """The rows that are among others."""
    if isinstance(rows, Empty) or isinstance(others, Empty):
        return Empty(tuple(rows.schema.items()), rows.weighted)
    return Restriction(rows, (others,), (_link(rows, others),))


def _without(rows: Operator, others: Operator) -> Operator:
    if isinstance(rows, Empty) or isinstance(others, Empty):
        return rows
    return Restriction(rows, (others,), (_link(rows, others),), keep=False)
