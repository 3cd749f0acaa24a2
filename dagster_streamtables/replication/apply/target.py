"""`Target`: the Delta table of one published table, and whether it can be one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dagster_streamtables.replication.model.errors import TargetProblem
from dagster_streamtables.replication.model.published_table import Operation, PublishedTable
from dagster_streamtables.runtime.delta.data_rows import alike
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.log_cache import Logs
from dagster_streamtables.runtime.model.state import read_state
from dagster_streamtables.runtime.storage import upkeep
from dagster_streamtables.runtime.storage.target import FILE_SIZE

_WRITES = frozenset(
    {
        "appendOnly", "changeDataFeed", "checkConstraints", "deletionVectors", "generatedColumns",
        "invariants", "timestampNtz",
    }
)  # fmt: skip
"""The features of the Delta protocol with which rows are written here."""
_COMPUTED = ("delta.generationExpression", "delta.identity.")


@dataclass(frozen=True)
class Target:
    """Where the rows of one published table go."""

    location: str
    replication: str
    """The id of the replication, under which the target's log has its position."""
    origin: str
    """The publisher's."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def application(self) -> str:
        """Whose transaction number the position is."""
        return f"replication:{self.replication}"


def position_of(target: Target) -> int | None:
    """The position that the target has reached, by its own log; None if nothing was applied."""
    log = log_of(target)
    return None if log is None else log.transaction(target.application)


def log_of(target: Target) -> TableLog | None:
    """The target's log at its newest version; None if there is no table."""
    return Logs(target.storage_options).newest(target.location)


def opened(target: Target, table: PublishedTable) -> TableLog:
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
    _require_writable(log, table)
    # Its whole log is read, so only until a position in it says whose table it is.
    if log.transaction(target.application) is None and read_state(log).state is not None:
        raise TargetProblem(
            f'the target of "{table.name}" is a stream table',
            where=log.location,
            why="its refreshes maintain its rows, and would undo or misread those of a publisher",
            fix="choose another table as the target; a stream table can read that one",
        )
    return log


def rows_in(log: TableLog) -> int:
    """The number of its rows; counted, if the log does not have it."""
    return log.to_write().count() if log.row_count is None else log.row_count


def keep_fast(target: Target) -> None:
    """Keep its files few, and as large as suits its size if a copy has created it."""
    log = log_of(target)
    if log is not None and FILE_SIZE in log.settings:
        upkeep.keep_files_small(log)
    log = log_of(target)
    if log is not None and upkeep.has_many_small_files(log):
        upkeep.compact(log)


def _require_writable(log: TableLog, table: PublishedTable) -> None:
    why = _reason_against(log, table)
    if why:
        raise TargetProblem(
            f'the target of "{table.name}" cannot be written exactly',
            where=log.location,
            why=why,
            fix="choose a target without it, such as the table that a copy creates",
        )


def _reason_against(log: TableLog, table: PublishedTable) -> str:
    unknown = sorted(log.features - _WRITES)
    if unknown:
        return f"it has features that are not written here: {', '.join(unknown)}"
    if log.maps_columns:
        return "it maps its columns to other names"
    if log.vector_rows != 0:
        return "some of its rows are deleted by deletion vectors"
    computed = _computed(log)
    if computed:
        return f'its column "{computed}" is computed'
    if not alike(log):
        return "it pads its texts (CHAR), or has times in encodings that engines read differently"
    append_only = log.settings.get("delta.appendOnly", "").lower() == "true"
    if append_only and table.operations - {Operation.INSERT}:
        return "it is append-only, and more than inserts are published"
    return ""


def _computed(log: TableLog) -> str:
    """A column whose values the table computes, if there is one."""
    names = (
        each["name"]
        for each in log.fields
        for key in each.get("metadata") or {}
        if key.startswith(_COMPUTED)
    )
    return next(names, "")
