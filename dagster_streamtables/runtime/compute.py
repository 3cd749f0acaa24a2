"""Running a plan on Spark: captured changes in, the change of the stored table out.

What is small comes to this process as one Arrow table, by a statement that stops at the limit; what
is larger stays a query in Spark. A fold that lost groups asks a second time, for those groups only.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import STORED, TOUCHED, Entry, Plan, read
from dagster_streamtables.compiler.operators import WEIGHT, Moment, Step, relation
from dagster_streamtables.compiler.render import render
from dagster_streamtables.runtime.capture import large_change, small_change
from dagster_streamtables.runtime.decide import Source
from dagster_streamtables.runtime.delta_log import TableLog
from dagster_streamtables.runtime.report import Window
from dagster_streamtables.runtime.sources import Relations, bound
from dagster_streamtables.runtime.state import Stored
from dagster_streamtables.runtime.window import SourceChange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

LIMIT = 100_000
"""Rows of a change that may come to this process."""


@dataclass(frozen=True)
class Inputs:
    """What a refresh reads with."""

    session: Callable[[], tuple[SparkSession, Relations]]
    """Opens the session at its first use: a refresh without data never does."""
    sources: Mapping[str, Source]
    stored: Callable[[str], Stored | None]
    limit: int = LIMIT

    @property
    def spark(self) -> SparkSession:
        return self.session()[0]

    @property
    def relations(self) -> Relations:
        return self.session()[1]


@dataclass(frozen=True)
class Captured:
    """The changes of all sources, bound to relations."""

    moved: frozenset[str]
    """The sources of which a used column changed."""
    unmoved: frozenset[str]
    windows: Mapping[str, Window]
    changes: Mapping[str, SourceChange]
    bound: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Computed:
    """The change of a stored table, here or in Spark."""

    local: pa.Table | None
    spread: DataFrame | None = None
    broken: bool = False

    @property
    def empty(self) -> bool:
        return self.local is not None and self.local.num_rows == 0

    def in_spark(self, spark: SparkSession) -> DataFrame:
        if self.spread is not None:
            return self.spread
        assert self.local is not None
        return spark.createDataFrame(self.local)


def full(plan: Plan | None, query: str, inputs: Inputs) -> DataFrame:
    """The user's own text over the sources at their newest versions, hidden columns beside it."""
    text = read(query) if plan is None else plan.full_text
    at = {n: (source.log.place, source.log.version) for n, source in inputs.sources.items()}
    rows = inputs.spark.sql(text.over(lambda name: inputs.relations.at(*at[name])))
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
    for name in plan.sources:
        change, source = changes[name], sources[name]
        if not change.moved:
            continue
        columns = list(source.columns)
        rows = small_change(source.log, change, columns, limit=inputs.limit)
        windows[name] = Window(change.before, change.after, change.capture, change.rows)
        place = relation(name, Moment.CHANGE)
        if rows is None:
            large = large_change(inputs.spark, source.log, change, columns)
            views[place] = inputs.relations.named(f"__st_change_{len(views)}", large)
        elif rows.num_rows:
            views[place] = inputs.relations.local(f"__st_change_{len(views)}", rows)
        else:
            continue
        moved.add(name)
    return Captured(frozenset(moved), frozenset(sources) - moved, windows, changes, views)


def change(plan: Plan, stored: TableLog, captured: Captured, inputs: Inputs) -> Computed:
    """The change of the stored table."""
    types = {name: stored.columns[name] for name in plan.stored_columns}
    rows = _run(plan.change(stored=types, unmoved=captured.unmoved), stored, captured, inputs)
    local = _fetched(rows, inputs.limit)
    if plan.entry is Entry.BAG:
        return Computed(local) if local is not None else Computed(None, rows)
    if local is None:
        return _spread(plan, rows, types, stored, captured, inputs)
    return _settled(plan, local, types, stored, captured, inputs)


def _settled(
    plan: Plan,
    rows: pa.Table,
    types: Mapping[str, str],
    stored: TableLog,
    captured: Captured,
    inputs: Inputs,
) -> Computed:
    """A small change of groups, with the lost ones grouped again."""
    import pyarrow as pa
    import pyarrow.compute as pc

    weight = rows.column(WEIGHT)
    if weight.null_count:
        return Computed(rows, broken=True)
    known, lost = rows.filter(pc.not_equal(weight, 0)), rows.filter(pc.equal(weight, 0))
    if not lost.num_rows:
        return Computed(known)
    keys = lost.select([name for name, _ in plan.root.key])
    keys = keys.rename_columns([key for _, key in plan.root.key])
    if not keys.column_names:
        keys = pa.table({"__st_any": pa.array([1])})
    touched = inputs.relations.local("__st_touched", keys)
    again = _run(plan.regroup(stored=types), stored, captured, inputs, {_TOUCHED: touched})
    regrouped = _fetched(again, inputs.limit)
    assert regrouped is not None, "more groups came back than were asked for"
    return Computed(pa.concat_tables([known, regrouped.cast(known.schema)]))


def _spread(
    plan: Plan,
    rows: DataFrame,
    types: Mapping[str, str],
    stored: TableLog,
    captured: Captured,
    inputs: Inputs,
) -> Computed:
    """A large change of groups, with the lost ones grouped again, all in Spark."""
    if plan.entry is Entry.REGROUP:
        return Computed(None, rows)
    kept = rows.persist()
    if kept.where(f"{WEIGHT} IS NULL").limit(1).count():
        return Computed(None, kept, broken=True)
    names = [f"`{name}` AS `{key}`" for name, key in plan.root.key] or ["1 AS __st_any"]
    lost = kept.where(f"{WEIGHT} = 0").selectExpr(*names)
    touched = inputs.relations.named("__st_touched", lost)
    again = _run(plan.regroup(stored=types), stored, captured, inputs, {_TOUCHED: touched})
    return Computed(None, kept.where(f"{WEIGHT} <> 0").unionAll(again))


_TOUCHED = relation(TOUCHED, Moment.AFTER)


def _run(
    step: Step,
    stored: TableLog,
    captured: Captured,
    inputs: Inputs,
    more: Mapping[str, str] | None = None,
) -> DataFrame:
    sql = render(step, pretty=False)
    places = dict(captured.bound) | dict(more or {})
    for name, change in captured.changes.items():
        ends = {Moment.BEFORE: change.before, Moment.AFTER: change.after}
        for moment, version in ends.items():
            place = relation(name, moment)
            if f"`{place}`" in sql:
                log = inputs.sources[name].log
                places[place] = inputs.relations.at(log.place, version)
    place = relation(STORED, Moment.BEFORE)
    if f"`{place}`" in sql:
        places[place] = inputs.relations.stored(stored.place, stored.version)
    return inputs.spark.sql(bound(sql, places))


def _fetched(rows: DataFrame, limit: int) -> pa.Table | None:
    """The rows, brought here; None if they are more than `limit`."""
    fetched = rows.limit(limit + 1).toArrow()
    return fetched if fetched.num_rows <= limit else None


__all__ = ["Captured", "Computed", "Inputs", "capture", "change", "full", "replace"]
