"""Run recursions: rounds of statements until one finds nothing new.

Each round runs the step over the rows of the previous round. The caller runs the statements and
decides where to keep the rows.

Spark can run a recursion by UNION ALL, but only to the depth that the session allows, and it keeps
every round in memory: 1,000 rounds over a table of 1,000 rows exceed a heap of 3 GB. Our own rounds
need no session setting, and their bound is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from dagster_streamtables.compiler.operators.algebra import (
    Link,
    Moment,
    Operator,
    Restriction,
    Step,
    Union,
    walk,
)
from dagster_streamtables.compiler.operators.comparable import comparable
from dagster_streamtables.compiler.operators.keyed import distinct
from dagster_streamtables.compiler.operators.leaves import Empty, Scan
from dagster_streamtables.compiler.operators.linear import Project
from dagster_streamtables.compiler.operators.recursion import (
    Closure,
    ClosureChange,
    Recursion,
    Reference,
    SignFilter,
    with_reference,
)
from dagster_streamtables.compiler.operators.sql_builders import column, typed
from dagster_streamtables.compiler.operators.step_trees import rebuild, render
from dagster_streamtables.compiler.rewrite.simplify import simplify
from dagster_streamtables.errors import RunawayRecursion

Evaluate = Callable[[Operator, int | None], tuple[Operator, int]]
"""Runs an operator; returns a scan of its rows, or `Empty`, and their number.

The second argument is the number of rows after which it may stop; None for all rows.
"""


@dataclass(frozen=True)
class RecursionLimits:
    """How far a recursion may go."""

    levels: int = 1_000
    """Rounds of its step that find rows."""
    rows: int = 1_000_000
    """Rows that it derives, including the base."""

    def require(self, level: int, rows: int, name: str, own: int | None = None) -> None:
        """Require that a recursion is within the limits, and its `own` levels in the query's text.

        Raises:
            RunawayRecursion: It exceeds them.
        """
        levels = self.levels if own is None else own
        if level > levels:
            setting = "max_recursion_levels" if own is None else "its MAX RECURSION LEVEL"
            self._stop(name, f"after {levels:,} levels", setting)
        if rows > self.rows:
            self._stop(name, f"after {self.rows:,} rows", "max_recursion_rows")

    def _stop(self, name: str, after: str, setting: str) -> None:
        raise RunawayRecursion(
            f'the recursion "{name}" has not ended {after}',
            why="UNION ALL never ends on a cycle in the rows, and UNION never ends with a column "
            "that grows, such as n + 1",
            fix="bound it in the query (WHERE depth < 50), use UNION if the rows form a cycle, or "
            f"raise {setting} if it does end; the table is unchanged",
        )


def has_recursions(root: Step) -> bool:
    return any(isinstance(step, Recursion | ClosureChange) for step in walk(root))


def run_recursions(root: Step, evaluate: Evaluate, bound: RecursionLimits | None = None) -> Step:
    """Replace each recursion, and each change of one, by its rows.

    Raises:
        RunawayRecursion: One of them exceeds the bound.
    """
    run = _Run(evaluate, bound or RecursionLimits())

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        step = simplify(step.over(*inputs), unmoved=frozenset())
        if step.open:
            # What is inside the step of another recursion runs in each of its rounds.
            return step
        if isinstance(step, Closure):
            return run.closure(step.step, step.reference, distinct(step.base), ())
        if isinstance(step, Recursion):
            return run.recursion(step)
        return _change(step, run) if isinstance(step, ClosureChange) else step

    return simplify(rebuild(root, rule), unmoved=frozenset())


def name_closures(root: Step) -> Step:
    """Replace each closure, and each change of one, by a name, for people to read."""

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        if not isinstance(step, Closure | ClosureChange):
            return step.over(*inputs)
        moment = Moment.CHANGE if step.has_weight_column else Moment.AFTER
        return Scan(step.reference.name, tuple(step.schema.items()), moment)

    return rebuild(root, rule)


def canonical_text(root: Step) -> str:
    """The plan as text that differs for different plans: two closures of one name may have
    different steps."""
    inside: list[str] = []

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        if isinstance(step, Closure | ClosureChange):
            inside.extend(render(each, pretty=False) for each in inputs)
            return name_closures(step)
        return step.over(*inputs)

    whole = render(rebuild(root, rule), pretty=False)
    return "\n".join([whole, *inside])


def _change(change: ClosureChange, run: _Run) -> Operator:
    reference = change.reference

    def derive_change(rows: Operator) -> Operator:
        return change.base_change + with_reference(change.step_change, reference, rows)

    old = change.old
    touched = run.rows(distinct(SignFilter(derive_change(old), came=False)))
    if isinstance(touched, Empty):
        lost, kept = touched, old
        start = distinct(SignFilter(derive_change(old), came=True))
    else:
        before = run.closure(change.step_before, reference, touched, ())
        lost = run.rows(_within(before, old))
        kept = _without(old, lost)
        step = with_reference(change.step_after, reference, kept)
        candidates = distinct(Union(lost, SignFilter(derive_change(kept), came=True)))
        start = _within(candidates, Union(change.base, step))
    found = run.closure(change.step_after, reference, start, (kept,))
    return _without(found, lost) - _without(lost, found)


@dataclass(frozen=True)
class _Run:
    """Runs a step repeatedly, over the rows of its last round."""

    evaluate: Evaluate
    bound: RecursionLimits

    def rows(self, operator: Operator) -> Operator:
        return self.evaluate(operator, None)[0]

    def recursion(self, recursion: Recursion) -> Operator:
        """The base and all that it leads to, with all copies and their signs.

        An inserted row and an equal deleted one are both carried on to the end: although they
        cancel, rows derived from them on a cycle may not.
        """
        reference = recursion.reference

        def following(new: Operator) -> Operator:
            step: Step = with_reference(recursion.step, reference, new)
            if has_recursions(step):
                step = run_recursions(step, self.evaluate, self.bound)
            assert isinstance(step, Operator)
            return step

        return self._rounds(reference, recursion.base, following, lambda rows, _: rows)

    def closure(
        self, step: Operator, reference: Reference, start: Operator, known: tuple[Operator, ...]
    ) -> Operator:
        """`start` and all that it leads to, without the known rows and without copies."""

        def following(new: Operator) -> Operator:
            return distinct(_rename_columns(with_reference(step, reference, new), reference))

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
            unknown_rows = unknown(_rename_columns(made, reference), found)
            new, count = self.evaluate(unknown_rows, self.bound.rows - total)
            if isinstance(new, Empty):
                return reduce(Union, found) if found else new
            total += count
            self.bound.require(level, total, reference.name, reference.rounds)
            found.append(new)
            if len(found) == _APART:
                found = [self.rows(reduce(Union, found))]
            made = following(new)
        raise AssertionError("itertools.count() never ends")


def _rename_columns(rows: Operator, reference: Reference) -> Operator:
    """The rows with the column names of the reference: columns match by position."""
    named = zip(reference.schema.items(), rows.schema, strict=True)
    return Project(rows, tuple((name, typed(column(own), t)) for (name, t), own in named))


_APART = 8
"""Rounds whose rows are kept separately; a statement names each of them."""


def _link(rows: Operator, others: Operator) -> Link:
    """Rows are equal if all columns are, by position."""
    sides = ([comparable(column(n), t) for n, t in each.schema.items()] for each in (rows, others))
    return Link(tuple(zip(*sides, strict=True)))


def _within(rows: Operator, others: Operator) -> Operator:
    """The rows that also occur in `others`."""
    if isinstance(rows, Empty) or isinstance(others, Empty):
        return Empty(tuple(rows.schema.items()), rows.has_weight_column)
    return Restriction(rows, (others,), (_link(rows, others),))


def _without(rows: Operator, others: Operator) -> Operator:
    if isinstance(rows, Empty) or isinstance(others, Empty):
        return rows
    return Restriction(rows, (others,), (_link(rows, others),), keep=False)
