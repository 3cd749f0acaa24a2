"""The optimizer: a plan → the statement that Spark gets.

`PASSES` make a plan cheaper one after another, and each leaves the rows as they are. What the next
one can do may depend on rows: a recursion ends where a round finds none, and what is paired with a
change is read between the keys of that change. So two passes run parts of the plan by an `Engine`,
which puts their rows under a name, and what they leave reads them from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dagster_streamtables.compiler.operators import Empty, Moment, Operator, Scan, Step, relation
from dagster_streamtables.compiler.operators.interning import rebuild
from dagster_streamtables.compiler.plan.statement import Statement
from dagster_streamtables.compiler.rewrite.fixpoint import (
    RecursionLimits,
    closed,
    has_recursions,
)
from dagster_streamtables.compiler.rewrite.runtime_filters import Bounds, bounded
from dagster_streamtables.compiler.rewrite.semijoin_reduction import narrowed
from dagster_streamtables.compiler.rewrite.simplify import simplify
from dagster_streamtables.compiler.rewrite.stages import as_statement, next_stage, with_rows

_FEW, _TIMES = 50_000, 100
"""Rows of a change, or of a part of it, that may come and go back as local rows; of a long
source so many times fewer than it has."""


@dataclass(frozen=True)
class Statistics:
    """What is known before any statement runs."""

    unmoved: frozenset[str]
    """The sources that are after as they were before."""
    longest_source: int
    """Its rows."""
    largest_change: int | None
    """Its rows; None where a change is not at hand."""
    limit: int
    """Rows that may be brought to this process."""
    stages: bool = True
    """Whether rows that went through this process are what they were."""

    @property
    def few(self) -> int:
        """Rows that it takes less to bring here, and back, than to read the sources once more.

        >>> sizes = (1_000_000, 10_000_000, 10**9)
        >>> [Statistics(frozenset(), each, 1, limit=500_000).few for each in sizes]
        [50000, 100000, 500000]
        """
        return max(_FEW, min(self.limit, self.longest_source // _TIMES))

    @property
    def small(self) -> bool:
        """Whether every change has few rows."""
        return self.largest_change is not None and self.largest_change <= self.few


class Engine(Protocol):
    """Runs statements for the optimizer."""

    @property
    def statistics(self) -> Statistics: ...

    @property
    def recursion(self) -> RecursionLimits:
        """How far a recursion may go."""
        ...

    def bounds(self, relation: str, column: str) -> Bounds | None:
        """Where the values of a column lie; None if the rows are not at hand."""
        ...

    def keep(self, relation: str, statement: Statement, most: int | None) -> int:
        """Run a statement, and give its rows a name that later statements read; their number.

        Args:
            relation: The name.
            statement: What to run.
            most: Where there are more rows, one more than so many is enough to tell.
        """
        ...

    def bring(self, relation: str, statement: Statement, most: int) -> int | None:
        """The same for rows that are to be at hand; None, and no name, where there are more."""
        ...


Pass = Callable[[Step, Engine], Step]


def _simplified(step: Step, engine: Engine) -> Step:
    return simplify(step, unmoved=engine.statistics.unmoved)


def _recursions(step: Step, engine: Engine) -> Step:
    """The rows of each recursion in its place."""
    numbers = itertools.count()

    def evaluate(operator: Operator, most: int | None) -> tuple[Operator, int]:
        columns = tuple(operator.schema.items())
        moment = Moment.CHANGE if operator.weighted else Moment.AFTER
        made = Scan(f"__st_round_{next(numbers)}", columns, moment)
        count = engine.keep(relation(made.table, moment), optimized(operator, engine, EACH), most)
        return (made, count) if count else (Empty(columns, operator.weighted), 0)

    return closed(step, evaluate, engine.recursion) if has_recursions(step) else step


def _stages(step: Step, engine: Engine) -> Step:
    """The rows of each stage in its place, as long as they are few."""
    step, statistics = rebuild(step), engine.statistics
    for number in itertools.count():
        stage = next_stage(step) if statistics.stages else None
        if stage is None:
            break
        name = f"__st_stage_{number}"
        asked = optimized(as_statement(stage), engine, EACH)
        count = engine.bring(relation(name, Moment.CHANGE), asked, statistics.few)
        if count is None:
            break  # Not thin, and the rest would hardly be.
        step = with_rows(step, stage, name if count else None)
    return step


def _semijoin_reduction(step: Step, engine: Engine) -> Step:
    return narrowed(step) if engine.statistics.small else step


def _runtime_filters(step: Step, engine: Engine) -> Step:
    return bounded(step, engine.bounds)


EACH: tuple[Pass, ...] = (_semijoin_reduction, _runtime_filters)
"""Of every statement, those of a round and of a stage too."""
PASSES: tuple[Pass, ...] = (_simplified, _recursions, _stages, *EACH)


def optimized(step: Step, engine: Engine, passes: Sequence[Pass] = PASSES) -> Statement:
    """The statement that computes a step.

    Raises:
        RunawayRecursion: A recursion goes further than the engine allows.
    """
    for each in passes:
        step = each(step, engine)
    return Statement(step)
