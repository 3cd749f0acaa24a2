"""The target of a write: a stored table, the size of its files, and the engine that writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from dagster_streamtables.runtime.delta.data_files import alike
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.table_state import StreamTableState, application

FILES = 32
"""Number of files of a stream table: changing a row rewrites its file."""
FILE_BYTES = tuple(size * 2**20 for size in (2, 4, 8, 16))
"""A table has the largest size that still gives 32 files. Writing such a file takes 0.1 to 0.25 s;
one of 100 MB, the default of Delta's writers, more than 1 s."""
FILE_ROWS = 100_000, 1_000_000
"""The minimum and maximum for Spark, which limits files by rows."""
FILE_SIZE = "delta.targetFileSize"
"""A property that only delta-rs follows."""

PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "true",
    # delta-rs cannot preserve deletion vectors, and pyarrow cannot apply them.
    "delta.enableDeletionVectors": "false",
    "delta.checkpointInterval": "20",
}


def file_bytes(size: int) -> int:
    """The size of a file in a table of `size` bytes."""
    return max((each for each in FILE_BYTES if each * FILES <= size), default=FILE_BYTES[0])


def is_sized_here(settings: Mapping[str, str]) -> bool:
    """Whether a table has a file size of `FILE_BYTES`, as after a refresh or a copy. Only such a
    table surely has no files of other writers."""
    return settings.get(FILE_SIZE, "") in map(str, FILE_BYTES)


class MissingRow(Exception):
    """A change deletes a row that the table does not contain; nothing was written."""


@dataclass(frozen=True)
class CommitResult:
    inserted: int
    deleted: int
    writer: str


@dataclass(frozen=True)
class ChangedAt:
    """The column with the time of each row's last change: see `change_times`."""

    name: str
    now: str
    """The time of the refresh, in ISO 8601."""
    stored: str = ""
    """Its name in the table before the write; empty to discard the stored times."""
    key: tuple[str, ...] = ()
    """The columns that identify a row, in the result as in the stored table."""

    @property
    def sql(self) -> str:
        """The time of the refresh in Spark SQL."""
        return f"TIMESTAMP '{self.now}'"


@dataclass(frozen=True)
class CommitTarget:
    """A stored table to write, and the state that the commit stores with the rows."""

    location: str
    state: StreamTableState
    key: tuple[str, ...] | None
    """The columns that identify a row; None for a bag."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    read: int = -1
    """The version before the refresh; -1 for a new table."""
    rows: int = 0
    """Approximate number of rows after the write."""
    changed_at: ChangedAt | None = None
    """The column that is added to those of the query."""

    @property
    def file_rows(self) -> int:
        """Number of rows that Spark writes to a file."""
        least, most = FILE_ROWS
        return min(most, max(least, self.rows // FILES))

    def counting(self, inserted: int, deleted: int) -> CommitTarget:
        """The same target with the rows in its account, since the metrics of a MERGE also count
        the copies that it reinserts."""
        account = replace(self.state.account, rows=(inserted, deleted))
        return replace(self, state=replace(self.state, account=account))

    @property
    def application(self) -> str:
        return application(self.state.table)


_Commit = TypeVar("_Commit")


def prove(write: Callable[[], object], find: Callable[[], _Commit | None]) -> _Commit | None:
    """Write, and find the commit in the log; None if another process committed first.

    After an error, the commit may exist: a connection may end or a checkpoint fail after it, and a
    writer without an answer from a store retries and meets its own commit. After success, it may
    not: Spark skips a commit whose transaction number is taken. And the newest commit may be a
    later one, by another process.

    Raises:
        Exception: The error of `write`, unless the commit exists.
    """
    try:
        write()
    except Exception:
        with suppress(Exception):  # report the first error
            found = find()
            if found is not None:
                return found
        raise
    return find()


DELTA_RS_FEATURES = frozenset(
    {
        "appendOnly", "changeDataFeed", "checkConstraints", "deletionVectors", "generatedColumns",
        "invariants", "timestampNtz",
    }
)  # fmt: skip
"""The features of the Delta protocol with which delta-rs writes rows."""
_COMPUTED = "delta.generationExpression"
_IDENTITY = "delta.identity.allowExplicitInsert"
_DEFAULT = "CURRENT_DEFAULT"


def reason_for_spark(log: TableLog) -> str:
    """Why only Spark writes a table exactly; empty if delta-rs does."""
    unknown = sorted(log.features - DELTA_RS_FEATURES)
    if unknown:
        return f"it has features that delta-rs does not write: {', '.join(unknown)}"
    if log.maps_columns:
        return "it maps its columns to other names"
    if log.vector_rows != 0:
        return "some of its rows are deleted by deletion vectors"
    if optional_columns(log):
        return "it computes columns"
    if not alike(log, every=not is_sized_here(log.settings)):
        return (
            "it pads its texts (CHAR), or has files that engines read differently: times in other "
            "encodings, columns in another case, or bytes that are no UTF-8"
        )
    return ""


def expression_columns(log: TableLog) -> frozenset[str]:
    """The columns whose values are computed from others."""
    return _with(log, _COMPUTED)


def optional_columns(log: TableLog) -> frozenset[str]:
    """The columns that get a value if a new row has none."""
    return _with(log, _COMPUTED) | _with(log, _DEFAULT) | _with(log, _IDENTITY)


def identity_columns(log: TableLog) -> list[str]:
    """The columns that accept no value, since the table numbers its rows in them."""
    return sorted(
        field["name"]
        for field in log.fields
        if (field.get("metadata") or {}).get(_IDENTITY) in (False, "false")
    )


def _with(log: TableLog, key: str) -> frozenset[str]:
    return frozenset(f["name"] for f in log.fields if key in (f.get("metadata") or {}))
