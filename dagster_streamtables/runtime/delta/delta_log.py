"""A table's log, read without Spark: version, schema, and the commits between two versions.

delta-rs finds the table's state. The commits of a window are read here, action by action, since a
refresh depends on whether they only rearranged files, or only added some.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from dagster_streamtables.runtime.delta.actions import (
    Commit,
    actions_of,
    changes_rows,
    committed_at,
    info_of,
)
from dagster_streamtables.runtime.delta.arrow import fs, open_parquet, pa, pc
from dagster_streamtables.runtime.delta.log_folder import LocalLog, Mark, RemoteLog
from dagster_streamtables.runtime.delta.table_handles import TableHandles, follow
from dagster_streamtables.runtime.delta.table_locations import commit_file, files_below, is_remote
from dagster_streamtables.runtime.delta.table_schema import (
    column_type,
    digest,
    encoding,
    maps_columns,
)
from dagster_streamtables.runtime.errors.error_translation import translate_log_errors

_MOST, _SMALL = 100, 65_536
"""How many commits of a log in an object store are kept, and the bytes of the largest."""
_RECENT = 20
"""How many of them the next log needs."""
_FEW = 5
"""Above it, to read so many commits takes longer than to ask delta-rs for a transaction."""


@dataclass(frozen=True)
class TableIdentity:
    """One table for its lifetime: its location, and its id among the tables that were there."""

    location: str
    id: str
    name_in_spark: str | None = field(default=None, compare=False)
    """As of `TableLog`."""


@dataclass(frozen=True)
class Snapshot:
    """A version of a table, identified by its commit and not only by its number.

    A table that is restored from a backup and then written to has the same version numbers as
    before, with different rows.
    """

    table: TableIdentity
    version: int
    commit: str
    """A digest of the commit; see `TableLog.commit_at`."""


@dataclass(frozen=True)
class Head:
    """The newest commit of a table; equal if it is the same commit."""

    version: int
    commit: str
    """As in `Snapshot`."""


@dataclass(frozen=True)
class TableLog:
    """A table at one fixed version: threads may share it.

    delta-rs moves a `DeltaTable` to the version that it commits. So each writer takes its own
    handle, `to_write`, and of two that write after one version, the second fails.
    """

    location: str
    _table: DeltaTable
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    name_in_spark: str | None = None
    """The name by which Spark reads it, in SQL; None for a table that no catalog has."""
    _contents: dict[int, bytes] = field(default_factory=lambda: {}, repr=False, compare=False)
    """Commits that were read from an object store."""
    _transactions: dict[str, int | None] = field(
        default_factory=lambda: {}, repr=False, compare=False
    )
    """Those that were asked for: delta-rs reads the log anew for each."""
    _handles: TableHandles[TableLog] | None = field(default=None, repr=False, compare=False)
    """Of the table, in an object store."""

    @cached_property
    def version(self) -> int:
        return self._table.version()

    @cached_property
    def id(self) -> str:
        """The table's id, which never changes; a table dropped and recreated has another."""
        return str(self._table.metadata().id)

    @property
    def head(self) -> Head:
        return Head(self.version, self.commit)

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(self._identity, self.version, self.commit)

    def snapshot_at(self, version: int) -> Snapshot | None:
        """An earlier version; None if its commit was deleted."""
        if version == self.version:
            return self.snapshot
        commit = self.commit_at(version)
        return None if commit is None else Snapshot(self._identity, version, commit)

    @property
    def _identity(self) -> TableIdentity:
        return TableIdentity(self.location, self.id, self.name_in_spark)

    @cached_property
    def commit(self) -> str:
        """A digest of the commit; of the files, if the commit itself was deleted."""
        known = self.commit_at(self.version)
        if known is not None:
            return known
        columns = [self._of_files(n) for n in ("path", "size_bytes", "modification_time")]
        values = [column.to_pylist() for column in columns if column is not None]
        return digest(json.dumps(sorted(zip(*values, strict=True))).encode())

    def still_has(self, identity: Mark | str | None) -> bool:
        """Whether the commit of this version still has an identity."""
        return identity is not None and self._log.identity(self.version) == identity

    @property
    def is_newest(self) -> bool:
        """Whether no commit came after this version."""
        after = self.version + 1
        if not is_remote(self.location):
            return not self._log.has(after)
        content = self._log.read(after)  # which is needed next
        if content is not None:
            self._keep(after, content)
        return content is None

    def commit_at(self, version: int) -> str | None:
        """A digest of the commit of a version; None if it was deleted or does not exist yet."""
        content = self._content(version)
        return None if content is None else digest(content)

    def has(self, snapshot: Snapshot) -> bool:
        """Whether a version of a table is part of this table's history up to this version."""
        if self.id != snapshot.table.id or self.version < snapshot.version:
            return False
        at_end = self.version == snapshot.version
        return snapshot.commit == (self.commit if at_end else self.commit_at(snapshot.version))

    def to_write(self) -> DeltaTable:
        """A handle at this version for the caller alone; DamagedTable if the log was damaged."""
        options = dict(self.storage_options or {}) or None
        with translate_log_errors(self.location):
            return DeltaTable(self.location, version=self.version, storage_options=options)

    @contextmanager
    def writing(self) -> Iterator[DeltaTable]:
        """`to_write` for the length of a block, with fewer requests to an object store."""
        if self._handles is None:
            yield self.to_write()
            return
        table = self._handles.take(self.version, self.commit_at)
        if table is not None and table.version() < self.version and not follow(table):
            table = None
        if table is None or table.version() != self.version:
            table = self.to_write()
        yield table  # after an error, its state is not known
        with suppress(OSError, DeltaError):  # it is committed, and must not fail any more
            self._keep_commit(table, self._handles)

    def _keep_commit(self, table: DeltaTable, handles: TableHandles[TableLog]) -> None:
        """Keep the handle that committed: as that of the next log, if it is the next version."""
        version, commit = table.version(), self.commit_at(table.version())
        if commit is None or not self.still_has(self.commit):
            return  # the table was replaced meanwhile, by one that the handle does not have
        if version == self.version + 1:
            self.next_log(table).share(after=self.head)
        else:
            handles.give_back(table, commit)

    @property
    def successor(self) -> TableLog | None:
        """The next version, if `writing` made it as the newest one; None if that is not known."""
        return None if self._handles is None else self._handles.successor_of(self.head)

    def move_handle(self) -> DeltaTable | None:
        """A handle of this version or an earlier one, or of the commit after it, that was moved to
        the newest version; None if there is none. A commit after this version exists."""
        after = self.version + 1
        table = None if self._handles is None else self._handles.take(after, self.commit_at)
        return table if table is not None and follow(table) and table.version() >= after else None

    def next_log(self, table: DeltaTable) -> TableLog:
        """The log of a later version of the same history, by a handle of it."""
        return TableLog(
            self.location,
            table,
            self.storage_options,
            self.name_in_spark,
            self._contents_for_next(),
            self._transactions_until(table.version()),
            self._handles,
        )

    def share(self, after: Head | None = None) -> None:
        """Let later logs of the table use its handle once nothing refers to this log.

        `after` is the version before it, if a writer of this process made it.
        """
        if self._handles is not None:
            self._handles.add(self, self._table, self.commit, after)

    def query(self, sql: str, **others: DeltaTable) -> Any:
        """The rows of a query run by delta-rs's engine, in which this table is ``t``."""
        engine = QueryBuilder().register("t", self._table)
        for name, table in others.items():
            engine = engine.register(name, table)
        return engine.execute(sql)

    def transaction(self, application: str) -> int | None:
        """The newest transaction number of an application."""
        if application not in self._transactions:
            try:
                found = self._table.transaction_version(application)
            except DeltaError:
                # delta-rs reads the log only now; a checkpoint may have replaced commits since.
                found = self.to_write().transaction_version(application)
            self._transactions[application] = found
        return self._transactions[application]

    def _transactions_until(self, version: int) -> dict[str, int | None]:
        """Those of a later version, as far as few commits tell."""
        if version - self.version > _FEW:
            return {}
        found = dict(self._transactions)
        for _, commit in self.commits(self.version, version):
            if commit is None:
                return {}
            transactions = (action["txn"] for action in commit if "txn" in action)
            found |= {each["appId"]: int(each["version"]) for each in transactions}
        return found

    @cached_property
    def arrow_schema(self) -> Any:
        return pa.schema(self._table.schema().to_arrow())

    @cached_property
    def fields(self) -> list[dict[str, Any]]:
        """The columns in the protocol's "Schema Serialization Format", in order."""
        return json.loads(self._table.schema().to_json())["fields"]

    @cached_property
    def columns(self) -> dict[str, str]:
        """Column → Spark type, in order."""
        return {field["name"]: column_type(field) for field in self.fields}

    @cached_property
    def encodings(self) -> dict[str, str]:
        """Column → a digest of its metadata, such as the name in the files, CHAR or a collation.

        A column that was dropped and added again differs only in this. Columns whose metadata are
        harmless are missing.
        """
        found = {field["name"]: encoding(field) for field in self.fields}
        return {name: digest(text.encode()) for name, text in found.items() if text}

    @property
    def maps_columns(self) -> bool:
        return maps_columns(self.settings)

    @cached_property
    def partitions(self) -> tuple[str, ...]:
        return tuple(self._table.metadata().partition_columns)

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The table's properties."""
        return {k: v for k, v in self._table.metadata().configuration.items() if v is not None}

    @property
    def has_feed(self) -> bool:
        """Whether the table writes a Change Data Feed."""
        return self.settings.get("delta.enableChangeDataFeed", "").lower() == "true"

    @cached_property
    def features(self) -> frozenset[str]:
        """Reader and writer features beyond the numbered protocol versions."""
        protocol = self._table.protocol()
        return frozenset([*(protocol.reader_features or []), *(protocol.writer_features or [])])

    def rows_in(self, path: str) -> int:
        """Rows of one of its Parquet files by the footer, including those under a vector."""
        with open_parquet(self.files, path) as file:
            return file.metadata.num_rows

    @cached_property
    def adds(self) -> Any:
        """The files at this version with their statistics, as an Arrow table."""
        return pa.table(self._table.get_add_actions(flatten=True))

    def _of_files(self, name: str) -> Any:
        return self.adds.column(name) if name in self.adds.column_names else None

    @cached_property
    def row_count(self) -> int | None:
        """Rows at this version by the log's statistics; None if they are incomplete."""
        if not self.adds.num_rows:
            return 0
        counts, gone = self._of_files("num_records"), self.vector_rows
        if counts is None or counts.null_count or gone is None:
            return None
        return pc.sum(counts).as_py() - gone

    @cached_property
    def vector_rows(self) -> int | None:
        """Rows that deletion vectors remove; None if the vectors cannot be read."""
        if "deletionVectors" not in self.features:
            return 0
        try:
            vectors = pa.table(self._table.deletion_vectors()).column("selection_vector")
        except (DeltaError, OSError):
            return None
        kept = pc.list_flatten(vectors)
        return len(kept) - (pc.sum(kept).as_py() or 0)

    @cached_property
    def file_sizes(self) -> list[int]:
        """Sizes of the files at this version, in bytes."""
        return self._of_files("size_bytes").to_pylist() if self.adds.num_rows else []

    @cached_property
    def committed_at(self) -> float | None:
        """When this version was committed, in seconds since 1970."""
        return self.time_of(self.version)

    @property
    def changed_at(self) -> float | None:
        """The time of the last commit that changed rows, in seconds since 1970; None if it was
        deleted or is not among the last 100, each of which is a request in an object store."""
        for _, commit in self.commits_back(max(-1, self.version - 100)):
            if any(map(changes_rows, commit)):
                return committed_at(info_of(commit))
        return None

    def time_of(self, version: int) -> float | None:
        """When a version was committed, in seconds since 1970; None if its commit was deleted."""
        return committed_at(info_of(self.actions_at(version) or ()))

    def written_at(self, version: int) -> float:
        """When a version was committed, in seconds since 1970, by its writer's or the file system's
        clock, whichever is earlier; 0 if its commit was deleted."""
        mark, told = self._log.mark(version), self.time_of(version)
        if mark is None:
            return told or 0.0
        stored = mark.changed / 1e9
        return stored if told is None else min(stored, told)

    def at(self, version: int) -> TableLog | None:
        """The table at another version; None if its log no longer has it."""
        known = None if self._handles is None else self._handles.log_at(version)
        return known or log_at(self.location, version, self.storage_options, self.name_in_spark)

    def commits(self, before: int, after: int) -> Iterator[tuple[int, Commit | None]]:
        """The commits ``before + 1`` to ``after``; None instead of a deleted one."""
        for version in range(before + 1, after + 1):
            yield version, self.actions_at(version)

    def commits_back(self, before: int = -1) -> Iterator[tuple[int, Commit]]:
        """The commits from this version back to ``before + 1``, or to a deleted one."""
        for version in range(self.version, before, -1):
            commit = self.actions_at(version)
            if commit is None:
                return
            yield version, commit

    def actions_at(self, version: int) -> Commit | None:
        """The commit that made a version; None if it was deleted."""
        content = self._content(version)
        if content is None:
            return None
        return actions_of(content, f"{self.location}/{commit_file(version)}")

    def _content(self, version: int) -> bytes | None:
        content = self._contents.get(version) or self._log.read(version)
        if content is not None and is_remote(self.location) and len(self._contents) < _MOST:
            self._keep(version, content)
        return content

    def _keep(self, version: int, content: bytes) -> None:
        self._contents.pop(version, None)
        if len(content) <= _SMALL:
            self._contents[version] = content

    def _contents_for_next(self) -> dict[int, bytes]:
        """The commits that a later log of the same history needs again."""
        recent = range(self.version - _RECENT, self.version + 2)
        return {each: text for each, text in self._contents.copy().items() if each in recent}

    @property
    def is_whole(self) -> bool:
        """Whether the log still has the beginning of this version: see `begins_before`."""
        return self._log.begins_before(self.version)

    @cached_property
    def _log(self) -> LocalLog | RemoteLog:
        if is_remote(self.location):
            return RemoteLog(self.location, self.storage_options, self.files)
        return LocalLog(self.location)

    @cached_property
    def files(self) -> Any:
        """The table's folder as a pyarrow file system."""
        if not is_remote(self.location):
            return files_below(self.location, None)
        from deltalake.fs import DeltaStorageHandler

        return fs.PyFileSystem(DeltaStorageHandler.from_table(self._table._table))


def log_at(
    location: str,
    version: int,
    options: Mapping[str, str] | None,
    name_in_spark: str | None = None,
) -> TableLog | None:
    """A table at a version; None if the log no longer has its state."""
    try:
        table = DeltaTable(location, version=version, storage_options=dict(options or {}) or None)
    except (TableNotFoundError, DeltaError):
        return None
    log = TableLog(location, table, options, name_in_spark)
    return log if log.is_whole else None
