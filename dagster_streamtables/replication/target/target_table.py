"""`ReplicationTarget`: the Delta table of a published table, whose commits have their positions.

`TargetTable` is a target at a version, read and written by the same engine.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, Transaction
from deltalake.exceptions import DeltaError

from dagster_streamtables.errors import TargetProblem
from dagster_streamtables.replication.model.replication_model import Operation, PublishedTable
from dagster_streamtables.replication.target.spark_rows import read_by_spark
from dagster_streamtables.runtime.delta.actions import (
    REPLICATION,
    info_of,
    parse_metadata,
    user_metadata,
)
from dagster_streamtables.runtime.delta.arrow import np, pa, plain_schema
from dagster_streamtables.runtime.delta.data_files import translate_text_errors
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.key_lookup import among
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.delta.table_schema import delta_rs_name
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.error_translation import (
    translate_commit_errors,
    translate_errors,
)
from dagster_streamtables.runtime.errors.table_errors import lost_race
from dagster_streamtables.runtime.model.table_state import read_state
from dagster_streamtables.runtime.storage import upkeep
from dagster_streamtables.runtime.storage.commit_target import (
    DELTA_RS_FEATURES,
    identity_columns,
    is_sized_here,
    prove,
    reason_for_spark,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ReplicationTarget:
    """The place of the rows of one published table."""

    location: str
    replication: str
    """The id of the replication, under which the target's log has its position."""
    origin: str
    """The publisher's."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    session: Callable[[], SparkSession] | None = field(default=None, repr=False, compare=False)
    """The Spark that writes what delta-rs cannot; None if there is none."""

    @property
    def application(self) -> str:
        """The application in the target's log whose transaction number is the position."""
        return f"replication:{self.replication}"


def log_of(target: ReplicationTarget) -> TableLog | None:
    """The target's log at its newest version; None if there is no table."""
    return Logs(target.storage_options).newest(target.location)


_REFUSED = ("Invalid data found", "Invariant violation", "CheckConstraint")


@dataclass(frozen=True)
class Provenance:
    """The origin of the rows of a commit, as its metadata store it."""

    replication: str
    origin: str
    table: str
    """The name of the published table."""
    after: int | None
    """The position before."""
    position: int | None
    """The position that is reached; None for a commit that adds columns."""
    inserted: int | None = None
    """None if it is known only after the commit, whose metrics have it."""
    updated: int | None = None
    deleted: int | None = None
    commit: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Distinguishes the commit from one of the same position by another process."""


def provenance_in(info: Mapping[str, Any]) -> Provenance | None:
    """The provenance in a commit's `commitInfo`; None if no replication made it."""
    text = info.get(REPLICATION) or parse_metadata(user_metadata(info)).get(REPLICATION)
    return None if text is None else Provenance(**json.loads(text))


def properties(target: ReplicationTarget, provenance: Provenance) -> CommitProperties:
    """The properties of a commit by delta-rs, which fails if another one came first."""
    position = provenance.position
    return CommitProperties(
        max_commit_retries=0,
        custom_metadata={REPLICATION: json.dumps(asdict(provenance))},
        app_transactions=None if position is None else [Transaction(target.application, position)],
    )


def write_commit(
    target: ReplicationTarget, after: int, made: Provenance, write: Callable[[], object]
) -> int:
    """Write, and return the version of the commit.

    Args:
        after: The version that was read; -1 for a table that is created.

    Raises:
        ConflictingCommit: Another commit came first; nothing was written.
        TargetProblem: The target refuses a row.
    """

    def explain_and_write() -> None:
        with translate_errors(), translate_commit_errors(made=after < 0):
            try:
                write()
            except DeltaError as error:
                if not any(word in str(error) for word in _REFUSED):
                    raise
                raise row_refusal(made, target.location, str(error)) from error

    version = prove(explain_and_write, lambda: _version_of(target, after, made))
    if version is None:
        raise lost_race("its commit is not in the log")
    return version


def row_refusal(made: Provenance, location: str, said: str) -> TargetProblem:
    """The error of a commit with a row that the target does not take, by the engine's words."""
    return TargetProblem(
        f'the target of "{made.table}" refuses a row',
        where=location,
        why=first_line(said),
        fix="change its constraints, or the row at the publisher; nothing was applied",
    )


def _version_of(target: ReplicationTarget, after: int, made: Provenance) -> int | None:
    """The version of a commit, which is later than `after`; None if it was not made."""
    log = log_of(target)
    for version, commit in log.commits(after, log.version) if log else ():
        if provenance_in(info_of(commit or ())) == made:
            return version
    return None


@dataclass(frozen=True)
class RowsAtHand:
    """Rows that were read before, in all columns that may be requested."""

    rows: pa.Table

    @property
    def row_count(self) -> int:
        return self.rows.num_rows

    def read_matching(
        self, names: Sequence[str], wanted: pa.Table, is_wanted: Callable[[pa.Table], np.ndarray]
    ) -> pa.Table:
        """See `TargetTable.read_matching`."""
        rows = self.rows.select(list(names))
        return rows.filter(is_wanted(rows)).combine_chunks()


_FEATURES = DELTA_RS_FEATURES | {
    "allowColumnDefaults", "checkpointProtection", "clustering", "columnMapping", "domainMetadata",
    "identityColumns", "inCommitTimestamp", "rowTracking", "typeWidening", "v2Checkpoint",
    "vacuumProtocolCheck",
}  # fmt: skip
"""The features of the Delta protocol with which one of the engines writes a target."""
_AT_ONCE = 2**18
"""Rows that are looked at together: looking costs as much as preparing it."""


@dataclass(frozen=True)
class TargetTable:
    target: ReplicationTarget
    log: TableLog

    @cached_property
    def spark(self) -> SparkSession | None:
        """The session that reads and writes the table; None if delta-rs does.

        Raises:
            TargetProblem: delta-rs cannot write it, and there is no session.
        """
        why = reason_for_spark(self.log)
        if not why:
            return None
        if self.target.session is None:
            raise TargetProblem(
                "only Spark writes the target exactly",
                where=self.log.location,
                why=why,
                fix="apply the changes where there is a Spark session",
            )
        return self.target.session()

    @cached_property
    def row_count(self) -> int:
        """Counted, if the log does not have it."""
        if self.log.row_count is not None:
            return self.log.row_count
        if self.spark is None:
            return self.log.to_write().count()
        return sum(some.num_rows for some in self.tables(list(self.log.columns)[:1]))

    def tables(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Columns of all rows, a batch at a time, in plain types."""
        if self.spark is not None:
            batches = read_by_spark(self.spark, self.log, names)
        else:
            batches = self._by_delta_rs(names, "true")
        return (pa.Table.from_batches([batch]) for batch in batches)

    def read_matching(
        self, names: Sequence[str], wanted: pa.Table, is_wanted: Callable[[pa.Table], np.ndarray]
    ) -> pa.Table:
        """The rows that a predicate chooses.

        Args:
            names: The columns to read.
            wanted: The values of the rows that may be chosen, in some of the columns, so that
                others need not be read.
        """
        found = [rows.filter(is_wanted(rows)) for rows in self._candidates(names, wanted)]
        schema = pa.schema([self.log.arrow_schema.field(name) for name in names])
        return pa.concat_tables([plain_schema(schema).empty_table(), *found]).combine_chunks()

    def _candidates(self, names: Sequence[str], wanted: pa.Table) -> Iterator[pa.Table]:
        if not wanted.num_rows or not self.log.adds.num_rows:
            return
        if self.spark is not None:
            batches = read_by_spark(self.spark, self.log, names, wanted)
        else:
            where = " AND ".join(among(name, wanted.column(name)) for name in wanted.column_names)
            batches = self._by_delta_rs(names, where or "true")
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= _AT_ONCE:
                yield pa.Table.from_batches(waiting)
                waiting = []
        if waiting:
            yield pa.Table.from_batches(waiting)

    def _by_delta_rs(self, names: Sequence[str], where: str) -> Iterator[pa.RecordBatch]:
        listed = ", ".join(delta_rs_name(name) for name in names)
        found = self.log.query(f"SELECT {listed} FROM t WHERE {where}")
        reader = pa.RecordBatchReader.from_stream(found)
        schema = plain_schema(reader.schema)
        with translate_text_errors(self.log.location):
            yield from (batch.cast(schema) for batch in reader)


def open_target(target: ReplicationTarget, table: PublishedTable) -> TargetTable:
    """The target at its newest version.

    Raises:
        TargetProblem: It cannot be a target of the published table.
    """
    log = log_of(target)
    if log is None:
        raise TargetProblem(
            f'"{table.name}" has no table to apply its changes to',
            where=target.location,
            why="there is no Delta table at its place",
            fix="copy the published table, which creates its target",
        )
    if why := _reason_against(log, table):
        raise TargetProblem(
            f'the target of "{table.name}" cannot be written exactly',
            where=log.location,
            why=why,
            fix="choose a target without it, such as the table that a copy creates",
        )
    # Its whole log is read, so only until a position in it says whose table it is.
    if log.transaction(target.application) is None and read_state(log).state is not None:
        raise TargetProblem(
            f'the target of "{table.name}" is a stream table',
            where=log.location,
            why="its refreshes maintain its rows, and would undo or misread those of a publisher",
            fix="choose another table as the target; a stream table can read that one",
        )
    return TargetTable(target, log)


def keep_fast(target: ReplicationTarget) -> None:
    """Keep its files few, and as large as suits its size if a copy has created it."""
    log = log_of(target)
    if log is None:
        return
    if is_sized_here(log.settings):
        upkeep.keep_files_small(log)
        log = log_of(target) or log
    if upkeep.has_many_small_files(log):
        upkeep.compact(log, target.session)


def _reason_against(log: TableLog, table: PublishedTable) -> str:
    """Why a table cannot be the target of a published one with either engine; empty if it can."""
    unknown = sorted(log.features - _FEATURES)
    if unknown:
        return f"it has features that are not written here: {', '.join(unknown)}"
    append_only = log.settings.get("delta.appendOnly", "").lower() == "true"
    if append_only and table.operations - {Operation.INSERT}:
        return "it is append-only, and more than inserts are published"
    for name in identity_columns(log):
        if name in table.schema.names:
            return f'its column "{name}" is GENERATED ALWAYS AS IDENTITY, and is published'
        if table.identity is None and table.operations & {Operation.UPDATE, Operation.DELETE}:
            return (
                f'its column "{name}" is GENERATED ALWAYS AS IDENTITY, and the published table has '
                "no identity: of equal rows, those that stay would be numbered anew"
            )
    return ""
