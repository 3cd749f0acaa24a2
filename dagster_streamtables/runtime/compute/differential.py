"""Run a plan on Spark, which turns the changes of the sources into the change of the stored table.

A small result comes to this process as one Arrow table, by a statement that stops at the limit; a
larger one stays a query in Spark. A fold that lost groups runs a second statement, only for those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dagster_streamtables.compiler import (
    TOUCHED,
    WEIGHT,
    BagMaintenance,
    FoldMaintenance,
    GroupMaintenance,
    Moment,
    Plan,
    QueryPlan,
    Statement,
    Text,
    all_rows,
    maintenance_of,
    partial_column,
    relation,
    stored_column,
    with_one_answer,
)
from dagster_streamtables.runtime.compute.change_reader import (
    copies,
    is_true,
    large_change,
    small_change,
)
from dagster_streamtables.runtime.compute.full_query import rows_of
from dagster_streamtables.runtime.compute.netting import can_net_here, net_rows
from dagster_streamtables.runtime.compute.result_before import ResultBefore
from dagster_streamtables.runtime.compute.row_files import AT_ONCE
from dagster_streamtables.runtime.compute.spark_engine import (
    STORED_ROWS,
    BoundChanges,
    Inputs,
    SparkEngine,
)
from dagster_streamtables.runtime.compute.spark_relations import OutputRows
from dagster_streamtables.runtime.delta.arrow import pa, pc, times_as_numbers
from dagster_streamtables.runtime.delta.data_files import OnlySpark, is_utf8, require_utf8
from dagster_streamtables.runtime.delta.source_change import SourceChange
from dagster_streamtables.runtime.delta.table_schema import has_variants, spark_name
from dagster_streamtables.runtime.errors.table_errors import lost_version
from dagster_streamtables.runtime.model.refresh_report import Window
from dagster_streamtables.runtime.model.table_catalog import Source
from dagster_streamtables.runtime.spark.connect import arrow_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ChangeResult(OutputRows):
    """The change of a stored table."""

    broken: bool = False
    """Whether the stored rows contradict the sources."""

    @property
    def empty(self) -> bool:
        return self.local is not None and self.local.num_rows == 0


@dataclass(frozen=True)
class ChangeComputation:
    """The computation of one change of a stored table."""

    types: Mapping[str, str]
    stored: ResultBefore
    captured: BoundChanges
    inputs: Inputs

    def run(
        self, ask: Callable[[SparkEngine], Statement], more: Mapping[str, str] | None = None
    ) -> DataFrame:
        """The rows of a statement, which may read more relations."""
        engine = self.engine(more)
        return engine.rows(ask(engine))

    def engine(self, more: Mapping[str, str] | None = None) -> SparkEngine:
        return SparkEngine(self.captured, self.inputs, self.stored, more or {})

    def local_result(self, rows: pa.Table, *, broken: bool = False) -> ChangeResult:
        """A change whose rows came to this process."""
        return ChangeResult(rows, lambda: self.inputs.relations.to_spark(rows), broken)

    @property
    def stays_in_spark(self) -> bool:
        """Whether its rows do not come to this process, however few they are."""
        return has_variants(self.types.values())

    def cache_in_spark(self, rows: DataFrame) -> ChangeResult:
        """A change that Spark computes once; this process only checks whether it is empty."""
        kept = self.inputs.relations.cache(rows)
        if kept.limit(1).count():
            return self.spark_result(kept)
        return self.local_result(pa.table({WEIGHT: pa.array([], pa.int64())}))

    def spark_result(self, rows: DataFrame, *, broken: bool = False) -> ChangeResult:
        """A change whose rows stay in Spark."""
        return ChangeResult(None, lambda: rows, broken)


def fetch_rows(rows: DataFrame, inputs: Inputs) -> pa.Table | None:
    """The rows, read into this process; None if too many, or if only Spark reads them."""
    local = arrow_rows(rows.limit(inputs.limit + 1))
    return local if local.num_rows <= inputs.limit and is_utf8(local) else None


def match_rows(touched: pa.Table, stored: pa.Table, key: Sequence[tuple[str, str]]) -> pa.Table:
    """Each row of `partial_groups` with the stored row of its key, or NULLs.

    Args:
        touched: The partial sums of the change, one row per group.
        stored: Stored rows, each key once; may include other groups.
        key: Pairs of stored key column and key column of `touched`, which `can_net_here`.
    """
    beside = stored.take(_places(touched, stored, key))
    partial = touched.rename_columns([partial_column(name) for name in touched.column_names])
    for name, column in zip(stored.column_names, beside.columns, strict=True):
        partial = partial.append_column(stored_column(name), column)
    return partial


def _places(
    touched: pa.Table, stored: pa.Table, key: Sequence[tuple[str, str]]
) -> pa.Array | pa.ChunkedArray:
    """For each touched group, the index of its stored row, or NULL."""
    wanted = [times_as_numbers(touched.column(name)) for _, name in key]
    there = [times_as_numbers(stored.column(name)) for name, _ in key]
    if len(key) == 1 and wanted[0].type == there[0].type:
        return pc.index_in(wanted[0], value_set=there[0])
    numbers = {values: number for number, values in enumerate(_values(there, stored.num_rows))}
    found = [numbers.get(values) for values in _values(wanted, touched.num_rows)]
    return pa.array(found, pa.int64())


def _values(columns: Sequence[pa.ChunkedArray], count: int) -> Iterable[tuple[object, ...]]:
    lists = [column.to_pylist() for column in columns]
    return zip(*lists, strict=True) if lists else [()] * count


def full(plan: Plan | None, text: Text, sources: Mapping[str, Source], inputs: Inputs) -> DataFrame:
    """The rows of the user's query over its sources, with the hidden columns.

    Columns have Spark's names, to be compared with the plan's before the rows are stored. An
    intermediate table has no text of the user; its compiled query is run.
    """
    logs = {name: source.log for name, source in sources.items()}
    inputs.prepare_for(logs.values())
    match plan:
        case None:
            text = with_one_answer(text, {name: log.columns for name, log in logs.items()})
        case QueryPlan():
            text = plan.full_text
        case _:
            engine = SparkEngine(BoundChanges(logs), inputs)
            return engine.rows(all_rows(plan, engine)).toDF(*plan.stored_columns)
    at = {name: log.snapshot for name, log in logs.items()}
    return rows_of(
        text, at, inputs.now, inputs.relations, limit=inputs.limit, recursion=inputs.recursion
    )


def capture(
    plan: Plan,
    sources: Mapping[str, Source],
    changes: Mapping[str, SourceChange],
    inputs: Inputs,
) -> BoundChanges:
    """Read the change of every changed source, into this process if it is small."""
    moved: set[str] = set()
    windows: dict[str, Window] = {}
    views: dict[str, str] = {}
    rows: Any
    for name in plan.reads:
        change, source = changes[name], sources[name]
        if not change.has_changes:
            continue
        rows, change = read_change(source, change, inputs)
        windows[name] = Window(
            change.before, change.after, change.capture, change.rows, source.log.row_count
        )
        here = isinstance(rows, pa.Table)
        if here and not rows.num_rows:
            continue
        bind = inputs.relations.local if here else inputs.relations.create_view
        views[relation(name, Moment.CHANGE)] = bind(rows)
        moved.add(name)
    logs = {name: source.log for name, source in sources.items()}
    return BoundChanges(logs, frozenset(moved), frozenset(sources) - moved, windows, changes, views)


def read_change(
    source: Source, change: SourceChange, inputs: Inputs
) -> tuple[pa.Table | DataFrame, SourceChange]:
    """The rows of a change, in this process if they are few, and the change as it was finally read.

    They have the columns of the source and the weight; netted if they are here and none is nested.
    """
    if change.lost:
        raise lost_version(source.log.location, change.before)
    log, columns = source.log, list(source.columns)
    small = small_change(log, change, columns, limit=inputs.limit)
    if small is None:
        large = large_change(inputs.spark, log, change, columns)
        if is_true(log, change, large):
            return large, change
    elif is_true(log, change, small):
        return small, change if change.rows is not None else replace(change, rows=copies(small))
    return read_change(source, change.without_feed, inputs)


def change(
    plan: Plan, stored: ResultBefore, captured: BoundChanges, inputs: Inputs
) -> ChangeResult:
    """The change of the result, stored or in memory."""
    types = {name: stored.columns[name] for name in plan.stored_columns}
    inputs.prepare_for(captured.logs.values(), captured.rows)
    work = ChangeComputation(types, stored, captured, inputs)
    match maintenance_of(plan, types):
        case BagMaintenance() as bag:
            return _bag(work, bag)
        case groups:
            return _groups(work, groups)


def _bag(work: ChangeComputation, bag: BagMaintenance) -> ChangeResult:
    found = _by_first_rows(work, bag) or _row_by_row(work, bag)
    if found is not None:
        return found
    rows = work.run(bag.change)
    if work.stays_in_spark:
        return work.cache_in_spark(rows)
    relations = work.inputs.relations
    largest = relations.largest(work.captured.bound.values())
    if largest is None or largest > work.inputs.limit:
        return _large(work, rows)
    local = fetch_rows(rows, work.inputs)
    return (
        work.local_result(local) if local is not None else work.spark_result(relations.cache(rows))
    )


def _by_first_rows(work: ChangeComputation, bag: BagMaintenance) -> ChangeResult | None:
    """The change of a table of the first rows of an order: the difference from the stored ones."""
    engine = work.engine()
    first = bag.first_rows(engine) if can_net_here(work.types) else None
    if first is None:
        return None
    now, limit = fetch_rows(engine.rows(first), work.inputs), work.inputs.limit
    found = None if now is None else work.stored.differing(now, limit)
    return None if found is None else work.local_result(found)


def _row_by_row(work: ChangeComputation, bag: BagMaintenance) -> ChangeResult | None:
    """The change of a table whose rows each come from one row of a source, if few changed."""
    engine = work.engine()
    largest = engine.statistics.largest_change
    if largest is None or largest > AT_ONCE or not can_net_here(work.types):
        return None
    made = bag.row_by_row(engine)
    if made is None:
        return None
    rows = arrow_rows(engine.rows(made, gathered=False))
    return work.local_result(net_rows(rows)) if is_utf8(rows) else None


def _large(work: ChangeComputation, rows: DataFrame) -> ChangeResult:
    """A change that may be too large for this process, computed only once in Spark."""
    kept, most = work.inputs.relations.cache(rows), work.inputs.limit
    if kept.limit(most + 1).count() > most:
        return work.spark_result(kept)
    rows = arrow_rows(kept)
    return work.local_result(rows) if is_utf8(rows) else work.spark_result(kept)


def _groups(work: ChangeComputation, groups: GroupMaintenance) -> ChangeResult:
    """The change of groups: first the touched groups, then their new rows."""
    touched = fetch_rows(work.run(groups.partial_groups), work.inputs)
    if touched is not None:
        with suppress(OnlySpark):
            return _compute_groups(work, groups, touched)
    return _spread(work, groups)


def _compute_groups(
    work: ChangeComputation, groups: GroupMaintenance, touched: pa.Table
) -> ChangeResult:
    """
    Raises:
        OnlySpark: The new rows cannot come to this process.
    """
    if not touched.num_rows:
        return work.local_result(touched)
    if isinstance(groups, FoldMaintenance):
        return _spread(work, groups) if work.stays_in_spark else _fold(work, groups, touched)
    if work.stays_in_spark:
        return work.cache_in_spark(work.run(groups.regroup, _local(work, touched, None)))
    return work.local_result(_again(work, groups, touched))


def _fold(work: ChangeComputation, groups: FoldMaintenance, touched: pa.Table) -> ChangeResult:
    """The stored groups plus their partial sums, with the lost groups recomputed."""
    rows = _sums(work, groups, touched)
    weight = rows.column(WEIGHT)
    if weight.null_count:
        return work.local_result(rows, broken=True)
    known, lost = rows.filter(pc.not_equal(weight, 0)), rows.filter(pc.equal(weight, 0))
    if not lost.num_rows:
        return work.local_result(known)
    names = dict(groups.key)
    keys = lost.select(list(names) or [WEIGHT]).rename_columns([*names.values()] or ["any"])
    again = _again(work, groups, keys).cast(known.schema)
    return work.local_result(pa.concat_tables([known, again]))


def _sums(work: ChangeComputation, groups: FoldMaintenance, touched: pa.Table) -> pa.Table:
    stored = _read_stored_rows(work, groups, touched)
    keys = {name: work.types[name] for name, _ in groups.key}
    if stored is None or not can_net_here(keys):
        return require_utf8(arrow_rows(work.run(groups.fold, _local(work, touched, stored))))
    pairs = work.inputs.relations.local(match_rows(touched, stored, groups.key))
    engine = work.engine({_TOUCHED: pairs})
    return require_utf8(arrow_rows(engine.rows(groups.fold_matches(), gathered=False)))


def _again(work: ChangeComputation, groups: GroupMaintenance, keys: pa.Table) -> pa.Table:
    """The groups of these keys, recomputed from the sources."""
    places = _local(work, keys, _read_stored_rows(work, groups, keys))
    return require_utf8(arrow_rows(work.run(groups.regroup, places)))


def _read_stored_rows(
    work: ChangeComputation, groups: GroupMaintenance, touched: pa.Table
) -> pa.Table | None:
    keys = {name: touched.column(key) for name, key in groups.key}
    return work.stored.rows(keys, list(work.types), work.inputs.limit)


def _local(work: ChangeComputation, touched: pa.Table, stored: pa.Table | None) -> dict[str, str]:
    relations = work.inputs.relations
    places = {_TOUCHED: relations.local(touched)}
    return places if stored is None else places | {STORED_ROWS: relations.local(stored)}


def _spread(work: ChangeComputation, groups: GroupMaintenance) -> ChangeResult:
    """A large change of groups, with the lost ones recomputed, all in Spark."""
    kept = work.inputs.relations.cache(work.run(groups.change))
    if not isinstance(groups, FoldMaintenance):
        return work.spark_result(kept)
    if kept.where(f"{WEIGHT} IS NULL").limit(1).count():
        return work.spark_result(kept, broken=True)
    names = [f"{spark_name(name)} AS {spark_name(key)}" for name, key in groups.key] or ["1 AS any"]
    lost = kept.where(f"{WEIGHT} = 0").selectExpr(*names)
    touched = {_TOUCHED: work.inputs.relations.create_view(lost)}
    again = work.run(groups.regroup, touched)
    return work.spark_result(kept.where(f"{WEIGHT} <> 0").unionAll(again))


_TOUCHED = relation(TOUCHED, Moment.AFTER)
