"""The optimizer: a plan → the `Statement` that Spark runs.

`PASSES` make a plan cheaper, one after another, without changing its result. Some depend on rows: a
recursion ends when a round finds none, and rows joined with a change are filtered by the change's
keys. So two passes run parts of the plan on an `Engine`; the rest of the plan reads their rows by
name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Moment, Operator, Step
from dagster_streamtables.compiler.operators.leaves import Empty, Scan, relation, scans_of
from dagster_streamtables.compiler.operators.refresh_time import set_time
from dagster_streamtables.compiler.operators.step_trees import rebuild, statement_of
from dagster_streamtables.compiler.rewrite.fixpoint import (
    RecursionLimits,
    has_recursions,
    run_recursions,
)
from dagster_streamtables.compiler.rewrite.runtime_filters import Bounds, add_runtime_filters
from dagster_streamtables.compiler.rewrite.semijoin_reduction import reduce_semijoins
from dagster_streamtables.compiler.rewrite.simplify import simplify
from dagster_streamtables.compiler.rewrite.stages import as_statement, next_stage, with_rows
from dagster_streamtables.compiler.text.current_time import literal
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT

_FEW, _TIMES = 50_000, 100
"""The number of rows of a change that may be fetched and sent back as local rows: 50,000, or
for a long source, its rows divided by 100."""


@dataclass(frozen=True)
class Statistics:
    """The facts known before any statement runs."""

    unmoved: frozenset[str]
    """The sources that have not changed."""
    longest_source: int
    """The number of rows of the longest source."""
    largest_change: int | None
    """The number of rows of the largest change; None if a change is not local."""
    limit: int
    """The most rows that may be fetched into this process."""
    stages: bool = True
    """Whether rows survive a round trip through this process unchanged."""

    @property
    def few(self) -> int:
        """The most rows that are cheaper to fetch and send back than to read the sources again.

        >>> sizes = (1_000_000, 10_000_000, 10**9)
        >>> [Statistics(frozenset(), each, 1, limit=500_000).few for each in sizes]
        [50000, 100000, 500000]
        """
        return max(_FEW, min(self.limit, self.longest_source // _TIMES))

    @property
    def small(self) -> bool:
        return self.largest_change is not None and self.largest_change <= self.few


class Engine(Protocol):
    @property
    def statistics(self) -> Statistics: ...

    @property
    def recursion(self) -> RecursionLimits: ...

    def bounds(self, relation: str, column: str) -> Bounds | None:
        """The bounds of a column; None if the rows are not local."""
        ...

    def keep(self, relation: str, statement: Statement, most: int | None) -> int:
        """Run a statement and name its rows for later statements; return their number.

        With more rows than `most`, it may stop after one more.
        """
        ...

    def bring(self, relation: str, statement: Statement, most: int) -> int | None:
        """Like `keep`, but fetch the rows; None, and no name, if there are more than `most`."""
        ...


Pass = Callable[[Step, Engine], Step]


def _recursions(step: Step, engine: Engine) -> Step:
    """Replace each recursion by its rows."""
    numbers = itertools.count()

    def evaluate(operator: Operator, most: int | None) -> tuple[Operator, int]:
        columns = tuple(operator.schema.items())
        moment = Moment.CHANGE if operator.has_weight_column else Moment.AFTER
        made = Scan(f"__st_round_{next(numbers)}", columns, moment)
        count = engine.keep(relation(made.table, moment), optimize(operator, engine, EACH), most)
        return (made, count) if count else (Empty(columns, operator.has_weight_column), 0)

    return run_recursions(step, evaluate, engine.recursion) if has_recursions(step) else step


def _stages(step: Step, engine: Engine) -> Step:
    """Replace each stage by its rows, as long as they are few."""
    step, statistics = rebuild(step), engine.statistics
    for number in itertools.count():
        stage = next_stage(step) if statistics.stages else None
        if stage is None:
            break
        name = f"__st_stage_{number}"
        statement = optimize(as_statement(stage), engine, EACH)
        count = engine.bring(relation(name, Moment.CHANGE), statement, statistics.few)
        if count is None:
            break  # The remaining stages would hardly have fewer rows.
        step = with_rows(step, stage, name if count else None)
    return step


EACH: tuple[Pass, ...] = (
    lambda step, engine: reduce_semijoins(step) if engine.statistics.small else step,
    lambda step, engine: add_runtime_filters(step, engine.bounds),
)
"""The passes for every statement, including those of rounds and stages."""
SIMPLIFIED: tuple[Pass, ...] = (_recursions, _stages, *EACH)
"""The passes for a step that is already simplified."""
PASSES: tuple[Pass, ...] = (
    lambda step, engine: simplify(step, unmoved=engine.statistics.unmoved),
    *SIMPLIFIED,
)


def optimize(step: Step, engine: Engine, passes: Sequence[Pass] = PASSES) -> Statement:
    """The statement that computes a step.

    Raises:
        RunawayRecursion: A recursion exceeds the engine's limits.
    """
    for each in passes:
        step = each(step, engine)
    return Statement(step)


@dataclass(frozen=True)
class Statement:
    """A query over relations, ready to run."""

    rows: Step
    """The rows that it computes."""

    @cached_property
    def reads(self) -> frozenset[str]:
        """The relations that it reads, by their names from `relation`."""
        return frozenset(relation(scan.table, scan.moment) for scan in scans_of(self.rows))

    def sql(self, views: Mapping[str, str], *, then: str, now: str) -> str:
        """The text that Spark runs.

        Args:
            views: Relation → its view, in backticks.
            then: The time of the previous refresh, in ISO 8601.
            now: The time of this refresh.
        """
        query = statement_of(self.rows)
        set_time(query, {Moment.BEFORE: literal(then), Moment.AFTER: literal(now)})
        _bind(query, views)
        return query.sql(DIALECT, copy=False)


def _bind(query: exp.Query, views: Mapping[str, str]) -> None:
    """Replace relations by views, in the tree: in the text a literal may look like a relation.

    >>> query = exp.maybe_parse("SELECT '`o@after`' AS `o@after` FROM `o@after`", dialect="spark")
    >>> _bind(query, {"o@after": "`v7`"})
    >>> query.sql("spark")
    "SELECT '`o@after`' AS `o@after` FROM `v7`"
    """
    for table in query.find_all(exp.Table):
        view = views.get(table.name)
        if view is not None:
            table.set("this", exp.to_identifier(view.strip("`"), quoted=True))
