"""A plan as statements: recursions and stages run first, and their rows enter as relations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.compiler import STORED, Bounds
from dagster_streamtables.compiler.operators import Empty, Moment, Operator, Scan, Step, relation
from dagster_streamtables.compiler.operators.interning import rebuild
from dagster_streamtables.compiler.operators.render import statement_of
from dagster_streamtables.compiler.operators.timed import set_time
from dagster_streamtables.compiler.rewrite.fixpoint import closed, has_recursions
from dagster_streamtables.compiler.rewrite.runtime_filters import bounded
from dagster_streamtables.compiler.rewrite.semijoin_reduction import narrowed
from dagster_streamtables.compiler.rewrite.stages import as_statement, next_stage, with_rows
from dagster_streamtables.compiler.text.current_time import literal
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.runtime.compute.inputs import Captured, Inputs
from dagster_streamtables.runtime.delta.data_rows import pads
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.spark.connect import arrow_rows

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
    """The rows of a plan; its recursions and its stages are run, the plan itself is not."""
    places = dict(more or {})

    def evaluate(operator: Operator, most: int | None) -> tuple[Operator, int]:
        columns, moment = tuple(operator.schema.items()), _moment(operator)
        rows = _query(operator, stored, captured, inputs, places)
        view, count = inputs.relations.made(rows, limit=inputs.limit, most=most)
        if view is None:
            return Empty(columns, operator.weighted), 0
        made = Scan(f"__st_round_{len(places)}", columns, moment)
        places[relation(made.table, moment)] = view
        return made, count

    step = rebuild(closed(step, evaluate, inputs.recursion) if has_recursions(step) else step)
    most = _few(captured, inputs)
    # Rows that went through this process are no CHAR(n) any more, which Spark compares otherwise.
    padded = any(map(pads, captured.logs.values()))
    while not padded and (stage := next_stage(step)) is not None:
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
    return inputs.relations.sql(bound(statement_of(step), places), gathered=False)


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
    statement = statement_of(bounded(step, known))
    set_time(statement, {Moment.BEFORE: literal(inputs.then), Moment.AFTER: literal(inputs.now)})
    read = _read_by(statement)
    for name, log in captured.logs.items():
        change = captured.changes.get(name)
        ends = {Moment.AFTER: log.version, Moment.BEFORE: change.before if change else None}
        for moment, version in ends.items():
            place = relation(name, moment)
            if version is not None and place in read:
                places[place] = inputs.relations.scanned(log, version)
    if stored is not None and STORED_ROWS in read and STORED_ROWS not in places:
        places[STORED_ROWS] = inputs.relations.stored(stored.snapshot)
    return inputs.relations.sql(bound(statement, places))


def _read_by(statement: exp.Query) -> frozenset[str]:
    """The relations that a statement of a plan reads."""
    return frozenset(table.name for table in statement.find_all(exp.Table))


def bound(statement: exp.Query, relations: Mapping[str, str]) -> str:
    """The SQL of a statement, with views in the places of the relations that they stand for.

    In the tree, where a table is one: in the text, a literal or a column may look the same.
    The statement is spent.

    >>> from sqlglot import parse_one
    >>> statement = parse_one("SELECT '`o@after`' AS `o@after` FROM `o@after`", "spark")
    >>> bound(statement, {"o@after": "`v7`"})
    "SELECT '`o@after`' AS `o@after` FROM `v7`"
    """
    for table in statement.find_all(exp.Table):
        view = relations.get(table.name)
        if view is not None:
            table.set("this", exp.to_identifier(view.strip("`"), quoted=True))
    return statement.sql(DIALECT, copy=False)
