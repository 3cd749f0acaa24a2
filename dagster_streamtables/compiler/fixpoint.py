"""Closures, run: rounds of statements until one of them finds nothing new.

What is run is a step over rows that are at hand, so each round costs what the rows of the round
before lead to. Who runs it, and where its rows then are, is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from dagster_streamtables.compiler.operators import (
    Link,
    Moment,
    Operator,
    Project,
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
from dagster_streamtables.compiler.operators.net import Empty
from dagster_streamtables.compiler.operators.recursion import with_reference
from dagster_streamtables.compiler.share import rebuild
from dagster_streamtables.compiler.simplify import simplify

Evaluate = Callable[[Operator], Operator]
"""Runs an operator; gives a scan of its rows, or `Empty`."""


def has_closures(root: Step) -> bool:
    return isinstance(root, Closure | ClosureChange) or any(map(has_closures, root.inputs))


def closed(root: Step, evaluate: Evaluate) -> Step:
    """The plan with the rows of each closure, and of each change of one, in its place."""

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        step = simplify(step.over(*inputs), unmoved=frozenset())
        if isinstance(step, Closure):
            return _rows(step, evaluate)
        return _change(step, evaluate) if isinstance(step, ClosureChange) else step

    return simplify(rebuild(root, rule), unmoved=frozenset())


def named(root: Step) -> Step:
    """The plan with a name in the place of each closure and change of one, for a person to read."""

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        if not isinstance(step, Closure | ClosureChange):
            return step.over(*inputs)
        moment = Moment.CHANGE if step.weighted else Moment.AFTER
        return Scan(step.reference.name, tuple(step.schema.items()), moment)

    return rebuild(root, rule)


def _rows(closure: Closure, evaluate: Evaluate) -> Operator:
    rounds = _Rounds(closure.step, closure.reference, evaluate)
    return rounds.run(distinct(closure.base), ())


def _change(change: ClosureChange, evaluate: Evaluate) -> Operator:
    reference = change.reference

    def brought(rows: Operator) -> Operator:
        return change.base_change + with_reference(change.step_change, reference, rows)

    old = change.old
    touched = evaluate(distinct(Signed(brought(old), came=False)))
    if isinstance(touched, Empty):
        lost, kept = touched, old
        start = distinct(Signed(brought(old), came=True))
    else:
        before = _Rounds(change.step_before, reference, evaluate)
        lost = evaluate(_within(before.run(touched, ()), old))
        kept = _without(old, lost)
        step = with_reference(change.step_after, reference, kept)
        candidates = distinct(Union(lost, Signed(brought(kept), came=True)))
        start = _within(candidates, Union(change.base, step))
    found = _Rounds(change.step_after, reference, evaluate).run(start, (kept,))
    return _without(found, lost) - _without(lost, found)


class _Rounds:
    """A step, again and again, over what its last round found."""

    def __init__(self, step: Operator, reference: Reference, evaluate: Evaluate) -> None:
        self._step = step
        self._reference = reference
        self._evaluate = evaluate

    def run(self, start: Operator, known: tuple[Operator, ...]) -> Operator:
        """What `start` leads to, itself included, that is not known; without copies."""
        found: list[Operator] = []
        new = self._evaluate(reduce(_without, known, self._named(start)))
        while not isinstance(new, Empty):
            found.append(new)
            if len(found) == _APART:
                found = [self._evaluate(reduce(Union, found))]
            made = distinct(self._named(with_reference(self._step, self._reference, new)))
            new = self._evaluate(reduce(_without, [*known, *found], made))
        return reduce(Union, found) if found else new

    def _named(self, rows: Operator) -> Operator:
        """The rows with the columns' names of the relation itself: a step matches by position."""
        named = zip(self._reference.schema.items(), rows.schema, strict=True)
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
