"""Copy the rows of a published table into its target, as one commit with their position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

from deltalake import write_deltalake

from dagster_streamtables.errors import ReplicationConflict, TargetProblem
from dagster_streamtables.replication.apply.contract import (
    ApplyResult,
    Choices,
    ConflictKind,
    OnConflict,
)
from dagster_streamtables.replication.apply.effect import row_text
from dagster_streamtables.replication.apply.row_digests import RowDigests
from dagster_streamtables.replication.apply.target_updates import (
    add_missing_columns,
    require_distinct,
)
from dagster_streamtables.replication.model.replication_model import PublishedTable
from dagster_streamtables.replication.target.target_columns import (
    Columns,
    columns_of,
    copy_command,
    whole_rows,
)
from dagster_streamtables.replication.target.target_commits import Op, OpShape, SparkCommit
from dagster_streamtables.replication.target.target_table import (
    Provenance,
    ReplicationTarget,
    TargetTable,
    keep_fast,
    log_of,
    open_target,
    properties,
    write_commit,
)
from dagster_streamtables.runtime.delta.arrow import np, pa, plain_schema
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.storage.commit_target import FILE_BYTES, FILE_SIZE, PROPERTIES
from dagster_streamtables.runtime.storage.delta_rs_merge import assignments, equal, merge

Mode = Literal["append", "overwrite", "merge"]


class ArrivingRows:
    """The rows in the target's types, without those that lose a conflict."""

    def __init__(self, columns: Columns, there: RowDigests, on_conflict: OnConflict) -> None:
        """
        Args:
            there: The identities of the target's rows.
            on_conflict: Decides for a row whose identity the target has, or an earlier row.
        """
        self._columns, self._there, self._on_conflict = columns, there, on_conflict
        self._came = RowDigests()
        self.passed = 0
        self.replacing = 0
        """Those of the passed that take the place of a row."""
        self.conflicts: Counter[str] = Counter()
        self.error: Exception | None = None
        """What stopped them: an engine that reads them tells only its words."""

    def read(
        self, rows: pa.RecordBatchReader, fit: Callable[[pa.Table], pa.Table]
    ) -> pa.RecordBatchReader:
        """The rows that pass, after `fit`, which turns published columns into what is written."""
        none = fit(self._columns.schema(self._columns.source_columns).empty_table())
        return pa.RecordBatchReader.from_batches(none.schema, self._batches(rows, fit))

    def _batches(
        self, rows: pa.RecordBatchReader, fit: Callable[[pa.Table], pa.Table]
    ) -> Iterator[pa.RecordBatch]:
        try:
            for batch in rows:
                checked = self._check_rows(batch)
                self.passed += checked.num_rows
                yield from fit(checked).to_batches()
        except Exception as error:
            self.error = error
            raise

    def _check_rows(self, batch: pa.RecordBatch) -> pa.Table:
        columns = self._columns
        rows = columns.cast_rows(batch)
        columns.require_values(rows)
        return rows if columns.table.identity is None else self._without_conflicts(rows)

    def _without_conflicts(self, rows: pa.Table) -> pa.Table:
        identities = rows.select(self._columns.identity)
        again, there = self._came.add(identities), self._there.has(identities)
        conflicts = np.flatnonzero(again | there)
        if not len(conflicts):
            return rows
        if self._on_conflict == "error":
            raise ReplicationConflict(
                f'the copy of "{self._columns.table.name}" has a row that the target already has',
                where=f"{self._columns.location}: {row_text(identities, int(conflicts[0]))}",
                why="the target has a row with that identity, or the copy has two; nothing was "
                "copied",
                fix="empty the target; or name another one; or let the publisher's rows win: "
                "streamtables replications alter NAME --on-conflict apply; or keep the target's: "
                "streamtables replications alter NAME --on-conflict skip",
            )
        self.conflicts[ConflictKind.INSERT_EXISTS.value] += len(conflicts)
        wins = there & (self._on_conflict == "apply")
        self.replacing += int((wins & ~again).sum())
        return rows.filter(~again & (~there | wins))


def copy_rows(
    target: ReplicationTarget,
    table: PublishedTable,
    rows: pa.RecordBatchReader,
    position: int,
    choices: Choices | None = None,
    *,
    replace: bool = False,
) -> ApplyResult:
    """Store the rows of a published table, a batch at a time, and the position that they reflect.

    The target is created if missing. A repetition does nothing.

    Args:
        rows: In the published schema.
        position: Later changes are not in the rows.
        choices: What happens to a row that exists already, and whether columns are added.
        replace: Replace all rows of the target, as after the loss of a slot.

    Raises:
        TargetProblem: The target does not take what is published.
        ReplicationConflict: A row exists already, or comes twice, or rows without an identity were
            copied before; nothing was copied.
        ConflictingCommit: Another commit came first; nothing was copied.
    """
    choices = choices or Choices()
    log = log_of(target)
    if log is None:
        return _create(target, table, rows, position, choices)
    there = _with_columns(target, table, choices)
    log = there.log
    after = log.transaction(target.application)
    if not replace and after is not None and after >= position:
        return ApplyResult(None, after)
    columns = columns_of(log, table, retyped=replace and there.spark is None)
    if not replace and after is not None:
        _require_told_apart(log, table, after)
    seen = RowDigests() if replace else identities_in(there, columns)
    arriving = ArrivingRows(columns, seen, choices.on_conflict)
    deleted = there.row_count if replace else 0
    mode: Mode = "overwrite" if replace else "append"
    if choices.on_conflict == "apply" and seen:
        mode = "merge"
    _require_later(there, table, position)
    by_engine = _by_delta_rs if there.spark is None else _by_spark
    write = partial(by_engine, there, columns, arriving, rows, mode)
    return _commit(target, table, log, arriving, write, position, deleted)


def _create(
    target: ReplicationTarget,
    table: PublishedTable,
    rows: pa.RecordBatchReader,
    position: int,
    choices: Choices,
) -> ApplyResult:
    require_distinct(table, table.schema.names, target.location)
    columns = Columns(table, target.location, plain_schema(table.schema), frozenset())
    arriving = ArrivingRows(columns, RowDigests(), choices.on_conflict)
    reader = arriving.read(rows, lambda rows: rows)

    def write(made: Provenance) -> None:
        write_deltalake(
            target.location,
            reader,
            mode="error",
            configuration={**PROPERTIES, FILE_SIZE: str(FILE_BYTES[0])},
            target_file_size=FILE_BYTES[-1],
            storage_options=dict(target.storage_options or {}) or None,
            commit_properties=properties(target, made),
        )

    return _commit(target, table, None, arriving, write, position, 0)


def _commit(
    target: ReplicationTarget,
    table: PublishedTable,
    log: TableLog | None,
    arriving: ArrivingRows,
    write: Callable[[Provenance], object],
    position: int,
    deleted: int,
) -> ApplyResult:
    before = None if log is None else log.transaction(target.application)
    made = Provenance(target.replication, target.origin, table.name, before, position)
    version = -1 if log is None else log.version
    try:
        version = write_commit(target, version, made, lambda: write(made))
    except Exception:
        if arriving.error is not None:
            raise arriving.error from None
        raise
    keep_fast(target)
    inserted = arriving.passed - arriving.replacing
    return ApplyResult(version, position, inserted, arriving.replacing, deleted, arriving.conflicts)


def _with_columns(
    target: ReplicationTarget, table: PublishedTable, choices: Choices
) -> TargetTable:
    there = open_target(target, table)
    # Times without a zone take a commit of their own before the one that adds the columns.
    for _ in range(2):
        if choices.add_columns and add_missing_columns(there, table):
            there = open_target(target, table)
    return there


def _require_later(there: TargetTable, table: PublishedTable, position: int) -> None:
    """Raise `TargetProblem` if Spark would have to commit a position before the last one."""
    before = there.log.transaction(there.target.application)
    if before is not None and before > position and there.spark is not None:
        raise TargetProblem(
            f'the target of "{table.name}" already has position {before}',
            where=there.log.location,
            why=f"the copy is of position {position}, so the publisher was put back, and Spark, "
            "which has to write this target, commits no position before the last one",
            fix=f"drop the target, and copy again, which creates it: {copy_command(table.name)}",
        )


def _require_told_apart(log: TableLog, table: PublishedTable, after: int) -> None:
    """Raise `ReplicationConflict` if a second copy would double the rows of the first."""
    if table.identity is None and log.adds.num_rows:
        raise ReplicationConflict(
            f'"{table.name}" was copied to its target before',
            where=log.location,
            why=f"the target has its rows as of position {after}, and nothing tells them from "
            "those of a second copy; nothing was copied",
            fix="go on from that position; or empty the target; or replace the rows that are "
            f"there: {copy_command(table.name)}",
        )


def identities_in(there: TargetTable, columns: Columns) -> RowDigests:
    """The identities of a target's rows; none if only whole rows identify them."""
    seen = RowDigests()
    if columns.table.identity is not None and there.log.adds.num_rows:
        for some in there.tables(columns.identity):
            seen.add(some)
    return seen


def _for_merge(rows: pa.Table) -> pa.Table:
    """Rename the columns, so that they cannot collide with those of the target."""
    return rows.rename_columns([f"v{i}" for i in range(rows.num_columns)])


def _by_delta_rs(
    there: TargetTable,
    columns: Columns,
    arriving: ArrivingRows,
    rows: pa.RecordBatchReader,
    mode: Mode,
    made: Provenance,
) -> None:
    log, stored = there.log, properties(there.target, made)
    if mode == "merge":
        source = {name: f"s.v{i}" for i, name in enumerate(columns.source_columns)}
        same, values = equal({name: source[name] for name in columns.identity}), assignments(source)
        merger = merge(log.to_write(), arriving.read(rows, _for_merge), same, stored)
        merger.when_matched_update(values).when_not_matched_insert(values).execute()
        return
    schema = _schema_of(log, columns)
    write_deltalake(
        log.to_write(),
        arriving.read(rows, partial(whole_rows, schema)),
        mode=mode,
        schema_mode=None if schema == log.arrow_schema else "overwrite",
        target_file_size=FILE_BYTES[-1],
        commit_properties=stored,
    )


def _by_spark(
    there: TargetTable,
    columns: Columns,
    arriving: ArrivingRows,
    rows: pa.RecordBatchReader,
    mode: Mode,
    made: Provenance,
) -> None:
    match = columns.identity if mode == "merge" else []
    shape = OpShape(there.log.arrow_schema, match, columns.source_columns, columns.source_columns)
    op = Op.STORE if mode == "merge" else Op.INSERT

    def fit(rows: pa.Table) -> pa.Table:
        return shape.rows(op, match=rows.select(match), values=rows)

    parts = (pa.Table.from_batches([batch]) for batch in arriving.read(rows, fit))
    SparkCommit(there, made).write(parts, shape, [] if mode == "overwrite" else [op])


def _schema_of(log: TableLog, columns: Columns) -> pa.Schema:
    """The schema of the target, with the types that the copy gives it."""
    before = plain_schema(log.arrow_schema)
    return pa.schema(
        field if before.field(field.name).type == wanted.type else field.with_type(wanted.type)
        for field, wanted in zip(log.arrow_schema, columns.stored, strict=True)
    )
