"""A plan as statements: closures and stages run first, and their rows enter as relations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import STORED, Bounds
from dagster_streamtables.compiler.bounds import bounded
from dagster_streamtables.compiler.clock import NOW, literal
from dagster_streamtables.compiler.fixpoint import closed, has_closures
from dagster_streamtables.compiler.narrow import narrowed
from dagster_streamtables.compiler.operators import Empty, Moment, Operator, Scan, Step, relation
from dagster_streamtables.compiler.render import render
from dagster_streamtables.compiler.share import rebuild
from dagster_streamtables.compiler.stages import as_statement, next_stage, with_rows
from dagster_streamtables.runtime.calls import arrow_rows
from dagster_streamtables.runtime.delta_log import TableLog
from dagster_streamtables.runtime.inputs import Captured, Inputs
from dagster_streamtables.runtime.sources import bound, mentions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW, _TIMES = 50_000, 100
"""Rows of a change, or of a part of it, that may come and go back as local rows; of a long
source so many times fewer than it has."""
STORED_ROWS = relation(STORED, Moment.BEFORE)


def planned(
    step: Step,
    stored: TableLog | None,
    captured: Captured,
    inputs: Inputs,
    more: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of a plan; its closures and its stages are run, the plan itself is not."""
    places = dict(more or {})

    def evaluate(operator: Operator) -> Operator:
        columns, moment = tuple(operator.schema.items()), _moment(operator)
        rows = _query(operator, stored, captured, inputs, places)
        view = inputs.relations.made(rows, limit=inputs.limit)
        if view is None:
            return Empty(columns, operator.weighted)
        made = Scan(f"__st_round_{len(places)}", columns, moment)
        places[relation(made.table, moment)] = view
        return made

    step = rebuild(closed(step, evaluate) if has_closures(step) else step)
    most = _few(captured, inputs)
    while (stage := next_stage(step)) is not None:
        asked = _query(as_statement(stage), stored, captured, inputs, places)
        rows = arrow_rows(asked.limit(most + 1))
        if rows.num_rows > most:
            # Not thin, and the rest would hardly be.
            break
        name = f"__st_stage_{len(places)}" if rows.num_rows else None
        if name is not None:
            places[relation(name, Moment.CHANGE)] = inputs.relations.local(rows)
        step = with_rows(step, stage, name)
    return _query(step, stored, captured, inputs, places)


def asked_at_once(step: Step, places: Mapping[str, str], inputs: Inputs) -> DataFrame:
    """The rows of a plan that looks at each of some local rows by itself."""
    sql = bound(render(step, pretty=False), places)
    return inputs.relations.sql(sql, gathered=False)


def few(longest: int, limit: int) -> int:
    """Rows that it takes less to bring here, and back, than to read the sources once more.

    Args:
        longest: Rows of the longest source.
        limit: Rows that may come here at all.

    >>> few(1_000_000, limit=500_000), few(10_000_000, limit=500_000), few(10**9, limit=500_000)
    (50000, 100000, 500000)
    """
    return max(_FEW, min(limit, longest // _TIMES))


def _few(captured: Captured, inputs: Inputs) -> int:
    counts = (log.row_count or 0 for log in captured.logs.values())
    return few(max(counts, default=0), inputs.limit)


def _moment(rows: Operator) -> Moment:
    return Moment.CHANGE if rows.weighted else Moment.AFTER


def _query(
    step: Step,
    stored: TableLog | None,
    captured: Captured,
    inputs: Inputs,
    more: Mapping[str, str],
) -> DataFrame:
    places = dict(captured.bound) | dict(more)

    def known(name: str, column: str) -> Bounds | None:
        return inputs.relations.bounds(places[name], column) if name in places else None

    if inputs.relations.few(captured.bound.values(), _few(captured, inputs)):
        step = narrowed(step)
    sql = render(bounded(step, known), pretty=False)
    for moment, time in ((Moment.BEFORE, inputs.then), (Moment.AFTER, inputs.now)):
        places[relation(NOW, moment)] = literal(time)
    for name, log in captured.logs.items():
        change = captured.changes.get(name)
        ends = {Moment.AFTER: log.version, Moment.BEFORE: change.before if change else None}
        for moment, version in ends.items():
            place = relation(name, moment)
            if version is not None and mentions(sql, place):
                places[place] = inputs.relations.scanned(log, version)
    if stored is not None and mentions(sql, STORED_ROWS) and STORED_ROWS not in places:
        places[STORED_ROWS] = inputs.relations.stored(stored.place, stored.version)
    return inputs.relations.sql(bound(sql, places))
