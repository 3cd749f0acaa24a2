"""Commit a small change with delta-rs: some hundredths of a second, without a JVM.

MERGE deletes all copies of a row that it matches. So if a row of a bag loses some, all are deleted,
and the remaining number is inserted again. delta-rs's engine first counts the copies, in the
snapshot into which it then merges.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    write_deltalake,
)

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.runtime.delta.arrow import np, pa, pc, storable
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import delta_rs_name
from dagster_streamtables.runtime.errors.error_translation import translate_commit_errors
from dagster_streamtables.runtime.model.definition import visible_names
from dagster_streamtables.runtime.storage.change_times import local_at
from dagster_streamtables.runtime.storage.commit_target import (
    FILE_SIZE,
    PROPERTIES,
    ChangedAt,
    CommitResult,
    CommitTarget,
    MissingRow,
    file_bytes,
    reason_for_spark,
)
from dagster_streamtables.runtime.storage.delta_rs_merge import (
    all_of,
    assignments,
    equal,
    merge,
    ranges,
)

if TYPE_CHECKING:
    from deltalake.table import TableMerger

_GOES = "__goes"


def can_write(log: TableLog) -> bool:
    """Whether delta-rs may write the table, and reads and compares its columns as Spark does.

    Spark writes nested columns: the floats in them would have to be normalized.
    """
    nested = any(
        type_.startswith(("array", "map", "struct", "variant")) for type_ in log.columns.values()
    )
    # Spark names the constraint that a row violates.
    return not (nested or "checkConstraints" in log.features or reason_for_spark(log))


def write(target: CommitTarget, rows: pa.Table) -> CommitResult:
    """Create the table."""
    with translate_commit_errors(made=True):
        write_deltalake(
            target.location,
            storable(rows),
            mode="error",
            configuration={**PROPERTIES, FILE_SIZE: str(file_bytes(0))},
            storage_options=dict(target.storage_options or {}) or None,
            # Of two concurrent creators, the second must not add its rows.
            commit_properties=_properties(target, retries=0),
        )
    return CommitResult(rows.num_rows, 0, "delta-rs")


def replace(log: TableLog, target: CommitTarget, rows: pa.Table) -> CommitResult:
    """Replace all rows by `rows`."""
    with translate_commit_errors(), log.writing() as table:
        write_deltalake(
            table,
            storable(rows),
            mode="overwrite",
            schema_mode="overwrite",
            storage_options=dict(target.storage_options or {}) or None,
            commit_properties=_properties(target),
            post_commithook_properties=hooks_after(target),
        )
    return CommitResult(rows.num_rows, 0, "delta-rs")


def change(log: TableLog, target: CommitTarget, rows: pa.Table) -> CommitResult:
    """Commit a change, to a bag or to a table with a key."""
    if target.key is None:
        return _write_bag(log, target, rows)
    return _write_keyed(log, target, target.key, rows)


def _write_bag(log: TableLog, target: CommitTarget, change: pa.Table) -> CommitResult:
    """Insert and delete copies of rows; the weight column of `change` has their number."""
    weight = change.column(WEIGHT)
    came, went = change.filter(pc.greater(weight, 0)), change.filter(pc.less(weight, 0))
    copies = _repeat_indices(came.column(WEIGHT).to_numpy())
    inserts = _with_time(came.drop_columns([WEIGHT]).take(copies), target)
    if not went.num_rows:
        return _append(log, target, inserts)
    again = _remaining(log, target, went)
    deleted = int(-(pc.sum(went.column(WEIGHT)).as_py() or 0))
    target = target.counting(inserts.num_rows, deleted)
    gone = _with_time(went.drop_columns([WEIGHT]), target)
    source = pa.concat_tables(
        rows.append_column(_GOES, pa.repeat(pa.scalar(goes), rows.num_rows))
        for rows, goes in ((inserts, False), (again, False), (gone, True))
    )
    match = [f"s.{_GOES}", *ranges(went, _columns(went)), *_same_row(went)]
    columns = assignments(_of_source(again.column_names))
    with log.writing() as table:
        rows = _fit(log, source, _GOES)
        merger = merge(table, rows, match, _properties(target), hooks=hooks_after(target))
        merger = merger.when_matched_delete(predicate=f"s.{_GOES}")
        _execute(merger.when_not_matched_insert(columns, predicate=f"NOT s.{_GOES}"))
    return CommitResult(inserts.num_rows, deleted, "delta-rs")


def _write_keyed(
    log: TableLog, target: CommitTarget, key: tuple[str, ...], change: pa.Table
) -> CommitResult:
    """Store and delete the rows of the keys in `change`."""
    goes = pc.less(change.column(WEIGHT), 0)
    rows = change.drop_columns([WEIGHT])
    timed = _with_time(rows, target)
    source = _fit(log, timed.append_column(_GOES, goes), _GOES)
    match = [*ranges(change, key), *equal(_of_source(key))]
    updates = columns = assignments(_of_source(timed.column_names))
    if target.changed_at is not None:
        time = delta_rs_name(target.changed_at.name)
        unchanged = all_of(_same_row(rows.select(visible_names(rows.column_names))))
        updates = {**columns, time: f"CASE WHEN {unchanged} THEN t.{time} ELSE s.{time} END"}
    with log.writing() as table:
        merger = merge(table, source, match, _properties(target), hooks=hooks_after(target))
        merger = merger.when_matched_delete(predicate=f"s.{_GOES}")
        merger = merger.when_matched_update(updates, predicate=f"NOT s.{_GOES}")
        done = _execute(merger.when_not_matched_insert(columns, predicate=f"NOT s.{_GOES}"))
    updated = int(done["num_target_rows_updated"])
    inserted = int(done["num_target_rows_inserted"]) + updated
    deleted = int(done["num_target_rows_deleted"]) + updated
    return CommitResult(inserted, deleted, "delta-rs")


def advance(log: TableLog, target: CommitTarget) -> CommitResult:
    """Commit a new frontier without rows."""
    return _append(log, target, log.arrow_schema.empty_table())


def _append(log: TableLog, target: CommitTarget, rows: pa.Table) -> CommitResult:
    with translate_commit_errors(), log.writing() as table:
        write_deltalake(
            table,
            _fit(log, rows),
            mode="append",
            commit_properties=_properties(target),
            post_commithook_properties=hooks_after(target),
        )
    return CommitResult(rows.num_rows, 0, "delta-rs")


def _execute(merger: TableMerger) -> dict[str, Any]:
    with translate_commit_errors():
        return merger.execute()


def _properties(target: CommitTarget, *, retries: int | None = None) -> CommitProperties:
    return CommitProperties(
        max_commit_retries=retries,
        custom_metadata={"userMetadata": target.state.to_json()},
        app_transactions=[Transaction(target.application, target.state.sequence)],
    )


_CLEAN_EVERY = 10


def hooks_after(target: CommitTarget) -> PostCommitHookProperties:
    """After a commit, delta-rs writes a checkpoint if one is due, and deletes old commits if the
    table's properties do not forbid it, for which it lists the log: not after each commit."""
    due = target.state.sequence % _CLEAN_EVERY == 0
    return PostCommitHookProperties(cleanup_expired_logs=None if due else False)


def _with_time(rows: pa.Table, target: CommitTarget) -> pa.Table:
    """The rows with the time of the refresh, if the table has a column for it."""
    return rows if target.changed_at is None else local_at(rows, target.changed_at)


def _remaining(log: TableLog, target: CommitTarget, went: pa.Table) -> pa.Table:
    """The remaining copies of rows that lose some, the ones with the earliest times.

    Raises:
        MissingRow: A row loses more copies than are stored.
    """
    at = target.changed_at
    stored = _count_stored_copies(log, went, at)
    row, copies = (stored.column(name).to_numpy() for name in ("r", "n"))
    weights = went.column(WEIGHT).to_numpy()
    left = np.bincount(row, copies, went.num_rows).astype(np.int64) + weights
    if left.min() < 0:
        raise MissingRow
    before = np.cumsum(copies) - copies
    before -= before[np.searchsorted(row, row)]  # only earlier copies of the same row
    remain = np.clip(left[row] - before, 0, copies)
    rows = went.drop_columns([WEIGHT]).take(np.repeat(row, remain))
    if at is None:
        return rows
    return rows.append_column(at.name, stored.column("since").take(_repeat_indices(remain)))


def _count_stored_copies(log: TableLog, rows: pa.Table, at: ChangedAt | None) -> pa.Table:
    """The number ``n`` of stored copies of each row number ``r`` and, with a column of times, each
    time ``since``; sorted by both. Rows without copies are missing."""
    wanted = rows.drop_columns([WEIGHT])
    numbered = _fit(
        log, wanted.append_column("__row", pa.array(range(rows.num_rows), pa.int64())), "__row"
    )
    since = "NULL" if at is None else f"t.{delta_rs_name(at.name)}"
    with tempfile.TemporaryDirectory(prefix="streamtables-") as folder:
        # The engine joins only Delta tables, so the rows become a temporary one.
        write_deltalake(folder, numbered)
        match = all_of([*_same_row(wanted), *ranges(wanted, wanted.column_names)])
        counted = f"SELECT s.__row AS r, {since} AS since, COUNT(*) AS n FROM t JOIN s ON {match}"
        grouped = f"{counted} GROUP BY 1, 2 ORDER BY 1, 2"
        return pa.table(log.query(grouped, s=DeltaTable(folder)))


def _repeat_indices(numbers: np.ndarray) -> np.ndarray:
    """The indices of an array, each repeated by its number."""
    return np.repeat(np.arange(len(numbers)), numbers)


def _fit(log: TableLog, rows: pa.Table, *extra: str) -> pa.Table:
    """The rows with the stored table's column order and types."""
    stored = log.arrow_schema
    names = [name for name in stored.names if name in rows.column_names] + list(extra)
    fields = [
        pa.field(n, rows.schema.field(n).type if n in extra else stored.field(n).type)
        for n in names
    ]
    return rows.select(names).cast(pa.schema(fields))


def _columns(rows: pa.Table) -> list[str]:
    return [name for name in rows.column_names if name != WEIGHT]


def _of_source(names: Iterable[str]) -> dict[str, str]:
    """Column → the same column of the rows that are merged."""
    return {name: f"s.{delta_rs_name(name)}" for name in names}


def _same_row(rows: pa.Table) -> Iterator[str]:
    """The conditions that a stored row is identical to one of `rows`.

    delta-rs joins -0.0 with 0.0, and would delete both of two such rows. As text, they differ.
    """
    names = _columns(rows)
    floats = [name for name in names if pa.types.is_floating(rows.schema.field(name).type)]
    yield from equal(_of_source(name for name in names if name not in floats))
    for each in map(delta_rs_name, floats):
        yield f"CAST(t.{each} AS VARCHAR) IS NOT DISTINCT FROM CAST(s.{each} AS VARCHAR)"
