"""Running a plan on Spark: captured changes in, the change of the stored table out.

What is small comes to this process as one Arrow table, by a statement that stops at the limit; what
is larger stays a query in Spark. A fold that lost groups asks a second time, for those groups only.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import (
    TOUCHED,
    Entry,
    Plan,
    Text,
    row_by_row,
    with_one_answer,
)
from dagster_streamtables.compiler.operators import (
    WEIGHT,
    Moment,
    Step,
    relation,
)
from dagster_streamtables.runtime.compute.capture import adds_up, copies, large_change, small_change
from dagster_streamtables.runtime.compute.difference import difference
from dagster_streamtables.runtime.compute.inputs import Captured, Inputs
from dagster_streamtables.runtime.compute.local_rows import AT_ONCE
from dagster_streamtables.runtime.compute.match_locally import matched
from dagster_streamtables.runtime.compute.netting import netted, netted_here
from dagster_streamtables.runtime.compute.own_text import rows_of
from dagster_streamtables.runtime.compute.relations import Relations
from dagster_streamtables.runtime.compute.run_plan import STORED_ROWS, asked_at_once, planned
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.quote import spark_name
from dagster_streamtables.runtime.delta.source_change import SourceChange
from dagster_streamtables.runtime.delta.stored_rows import stored_rows
from dagster_streamtables.runtime.errors.tables import lost_version
from dagster_streamtables.runtime.model.report import Window
from dagster_streamtables.runtime.model.source import Source
from dagster_streamtables.runtime.spark.connect import arrow_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Computed:
    """The change of a stored table, here or in Spark."""

    local: pa.Table | None
    spread: DataFrame | None = None
    broken: bool = False

    @property
    def empty(self) -> bool:
        return self.local is not None and self.local.num_rows == 0

    def in_spark(self, relations: Relations) -> DataFrame:
        if self.spread is not None:
            return self.spread
        assert self.local is not None
        return relations.handed(self.local)


def full(plan: Plan | None, text: Text, sources: Mapping[str, Source], inputs: Inputs) -> DataFrame:
    """The user's own text over its sources, hidden columns beside it.

    An intermediate table has no text of the user's; its rows are made as they are compiled.
    """
    logs = {name: source.log for name, source in sources.items()}
    if plan is None:
        text = with_one_answer(text, {name: log.columns for name, log in logs.items()})
    elif plan.text is None:
        nothing = Captured(frozenset(), frozenset(), {}, {}, logs)
        return planned(plan.view, None, nothing, inputs).toDF(*plan.stored_columns)
    else:
        text = plan.full_text
    at = {name: log.snapshot for name, log in logs.items()}
    rows = rows_of(
        text, at, inputs.now, inputs.relations, limit=inputs.limit, recursion=inputs.recursion
    )
    return rows if plan is None else rows.toDF(*plan.stored_columns)


def capture(
    plan: Plan,
    sources: Mapping[str, Source],
    changes: Mapping[str, SourceChange],
    inputs: Inputs,
) -> Captured:
    """Read the change of every source that moved, here where it is small."""
    moved: set[str] = set()
    windows: dict[str, Window] = {}
    views: dict[str, str] = {}
    for name in plan.reads:
        change, source = changes[name], sources[name]
        if not change.moved:
            continue
        rows, change = _read(source, change, inputs)
        windows[name] = Window(
            change.before, change.after, change.capture, change.rows, source.log.row_count
        )
        if rows is None:
            continue
        views[relation(name, Moment.CHANGE)] = rows
        moved.add(name)
    logs = {name: source.log for name, source in sources.items()}
    return Captured(frozenset(moved), frozenset(sources) - moved, windows, changes, logs, views)


def _read(source: Source, change: SourceChange, inputs: Inputs) -> tuple[str | None, SourceChange]:
    """A name for the rows, None if there are none; and the change as it was read in the end."""
    if change.lost:
        raise lost_version(source.log.location, change.before)
    log, columns = source.log, list(source.columns)
    small = small_change(log, change, columns, limit=inputs.limit)
    if small is None:
        large = large_change(inputs.spark, log, change, columns)
        if adds_up(log, change, large):
            return inputs.relations.named(large), change
    elif adds_up(log, change, small):
        if change.rows is None:
            change = replace(change, rows=copies(small))
        return (inputs.relations.local(small) if small.num_rows else None), change
    # Some writers tell what an update made and not what it took away.
    return _read(source, change.without_feed, inputs)


def change(plan: Plan, stored: TableLog, captured: Captured, inputs: Inputs) -> Computed:
    """The change of the stored table."""
    types = {name: stored.columns[name] for name in plan.stored_columns}
    work = _Work(plan, types, stored, captured, inputs)
    return _bag(work) if plan.entry is Entry.BAG else _groups(work)


@dataclass(frozen=True)
class _Work:
    plan: Plan
    types: Mapping[str, str]
    stored: TableLog
    captured: Captured
    inputs: Inputs

    def run(self, step: Step, more: Mapping[str, str] | None = None) -> DataFrame:
        return planned(step, self.stored, self.captured, self.inputs, more)

    def fetch(self, rows: DataFrame) -> pa.Table | None:
        return fetched(rows, self.inputs)


def fetched(rows: DataFrame, inputs: Inputs) -> pa.Table | None:
    """The rows, brought here; None if they are too many."""
    local = arrow_rows(rows.limit(inputs.limit + 1))
    return local if local.num_rows <= inputs.limit else None


def _bag(work: _Work) -> Computed:
    first = work.plan.first_rows(stored=work.types)
    if first is not None and netted_here(work.types):
        now = work.fetch(work.run(first))
        limit = work.inputs.limit
        found = None if now is None else difference(work.stored, now, None, limit=limit)
        if found is not None:
            return Computed(found)
    step = work.plan.change(stored=work.types, unmoved=work.captured.unmoved)
    made = row_by_row(step)
    few = work.inputs.relations.few(work.captured.bound.values(), AT_ONCE)
    if made is not None and few and netted_here(work.types):
        return Computed(netted(arrow_rows(asked_at_once(made, work.captured.bound, work.inputs))))
    rows = work.run(step)
    relations, most = work.inputs.relations, work.inputs.limit
    if not relations.few(work.captured.bound.values(), most):
        return _large(work, rows)
    local = work.fetch(rows)
    return Computed(local) if local is not None else Computed(None, relations.kept(rows))


def _large(work: _Work, rows: DataFrame) -> Computed:
    """What may be too much for this process, computed once however often it is looked at."""
    kept, most = work.inputs.relations.kept(rows), work.inputs.limit
    many = kept.limit(most + 1).count() > most
    return Computed(None, kept) if many else Computed(arrow_rows(kept))


def _groups(work: _Work) -> Computed:
    """The change of groups: which are touched, and then their new rows."""
    step = work.plan.touched(stored=work.types, unmoved=work.captured.unmoved)
    touched = work.fetch(work.run(step))
    if touched is None:
        return _spread(work)
    if not touched.num_rows:
        return Computed(touched)
    if work.plan.entry is Entry.REGROUP:
        return Computed(_again(work, touched))
    return _folded(work, touched)


def _folded(work: _Work, touched: pa.Table) -> Computed:
    """The stored groups with what the change adds to them, the lost ones grouped again."""
    import pyarrow.compute as pc

    rows = _sums(work, touched)
    weight = rows.column(WEIGHT)
    if weight.null_count:
        return Computed(rows, broken=True)
    known, lost = rows.filter(pc.not_equal(weight, 0)), rows.filter(pc.equal(weight, 0))
    if not lost.num_rows:
        return Computed(known)
    names = dict(work.plan.root.key)
    keys = lost.select(list(names) or [WEIGHT]).rename_columns([*names.values()] or ["any"])
    return Computed(_joined(known, _again(work, keys)))


def _sums(work: _Work, touched: pa.Table) -> pa.Table:
    """What `Fold` yields for the touched groups."""
    plan = work.plan
    stored = _stored(work, touched)
    keys = {name: work.types[name] for name, _ in plan.root.key}
    if stored is None or not netted_here(keys):
        return arrow_rows(work.run(plan.fold(stored=work.types), _local(work, touched, stored)))
    pairs = work.inputs.relations.local(matched(touched, stored, plan.root.key))
    step = plan.fold(stored=work.types, matched=True)
    return arrow_rows(asked_at_once(step, {_TOUCHED: pairs}, work.inputs))


def _again(work: _Work, keys: pa.Table) -> pa.Table:
    """The groups of these keys as their sources have them now."""
    places = _local(work, keys, _stored(work, keys))
    return arrow_rows(work.run(work.plan.regroup(stored=work.types), places))


def _joined(known: pa.Table, again: pa.Table) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables([known, again.cast(known.schema)])


def _stored(work: _Work, touched: pa.Table) -> pa.Table | None:
    """The stored rows of touched groups, where they can be read here."""
    keys = {name: touched.column(key) for name, key in work.plan.root.key}
    return stored_rows(work.stored, keys, list(work.types), limit=work.inputs.limit)


def _local(work: _Work, touched: pa.Table, stored: pa.Table | None) -> dict[str, str]:
    """Touched groups and their stored rows as local rows."""
    relations = work.inputs.relations
    places = {_TOUCHED: relations.local(touched)}
    return places if stored is None else places | {STORED_ROWS: relations.local(stored)}


def _spread(work: _Work) -> Computed:
    """A large change of groups, with the lost ones grouped again, all in Spark."""
    plan = work.plan
    rows = work.run(plan.change(stored=work.types, unmoved=work.captured.unmoved))
    if plan.entry is Entry.REGROUP:
        return Computed(None, work.inputs.relations.kept(rows))
    kept = work.inputs.relations.kept(rows)
    if kept.where(f"{WEIGHT} IS NULL").limit(1).count():
        return Computed(None, kept, broken=True)
    names = [f"{spark_name(name)} AS {spark_name(key)}" for name, key in plan.root.key] or [
        "1 AS any"
    ]
    lost = kept.where(f"{WEIGHT} = 0").selectExpr(*names)
    touched = {_TOUCHED: work.inputs.relations.named(lost)}
    again = work.run(plan.regroup(stored=work.types), touched)
    return Computed(None, kept.where(f"{WEIGHT} <> 0").unionAll(again))


_TOUCHED = relation(TOUCHED, Moment.AFTER)
