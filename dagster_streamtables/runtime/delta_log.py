"""What a table's log says, read without Spark: version, schema, what came between two versions.

The log is a folder of numbered JSON files; what their lines mean is in the section "Actions" of the
Delta transaction log protocol. delta-rs finds the table's state. The commits of a window are read
here, action by action, because what decides a refresh -- did this commit only rearrange files, did
it only add some -- is said nowhere else.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from dagster_streamtables.runtime.machine import first_line, machine_problem
from dagster_streamtables.runtime.missing import damaged, empty
from dagster_streamtables.runtime.types import spark_type

Commit = Sequence[Mapping[str, Any]]
"""The actions of one commit, in the order of its file."""


@dataclass(frozen=True)
class Place:
    """One table for life: where it is, and which one of those that have been there."""

    location: str
    id: str


@dataclass(frozen=True)
class TableLog:
    """A table at one version."""

    location: str
    table: DeltaTable
    storage_options: Mapping[str, str] | None = None

    @cached_property
    def version(self) -> int:
        return self.table.version()

    @cached_property
    def id(self) -> str:
        """Stays with a table for life: one that is dropped and created again has another."""
        return str(self.table.metadata().id)

    @property
    def place(self) -> Place:
        return Place(self.location, self.id)

    @cached_property
    def fields(self) -> list[dict[str, Any]]:
        """The columns as the protocol's "Schema Serialization Format" has them, in order."""
        return json.loads(self.table.schema().to_json())["fields"]

    @cached_property
    def columns(self) -> dict[str, str]:
        """Column → type in Spark's words, in order."""
        return {field["name"]: spark_type(field["type"]) for field in self.fields}

    @cached_property
    def physical(self) -> dict[str, str]:
        """Column → its name in the files, where these differ from table to table (column mapping).

        A column that was dropped and added again, or that took the name of another, has a new one.
        """
        fields = self.fields if self.maps_columns else []
        key = "delta.columnMapping.physicalName"
        return {field["name"]: field["metadata"].get(key, field["name"]) for field in fields}

    @property
    def maps_columns(self) -> bool:
        """Also under protocol version 5, which lists no features."""
        return self.settings.get("delta.columnMapping.mode", "none").lower() != "none"

    @cached_property
    def partitions(self) -> tuple[str, ...]:
        return tuple(self.table.metadata().partition_columns)

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The table's properties."""
        return {k: v for k, v in self.table.metadata().configuration.items() if v is not None}

    @property
    def has_feed(self) -> bool:
        """Whether the table writes a Change Data Feed."""
        return self.settings.get("delta.enableChangeDataFeed", "").lower() == "true"

    @cached_property
    def features(self) -> frozenset[str]:
        """Reader and writer features beyond the numbered protocol versions."""
        protocol = self.table.protocol()
        return frozenset([*(protocol.reader_features or []), *(protocol.writer_features or [])])

    def rows_in(self, path: str) -> int:
        """Rows of a Parquet file of the table, by its footer; those under vectors count."""
        import pyarrow.parquet as pq

        with self.files.open_input_file(path) as stream:
            return pq.ParquetFile(stream).metadata.num_rows

    @cached_property
    def adds(self) -> Any:
        """What the log says of each file at this version, as an Arrow table: a row for each."""
        import pyarrow as pa

        return pa.table(self.table.get_add_actions(flatten=True))

    def _of_files(self, name: str) -> Any:
        return self.adds.column(name) if name in self.adds.column_names else None

    @cached_property
    def row_count(self) -> int | None:
        """Rows at this version by the log's statistics; None where a file has none."""
        import pyarrow.compute as pc

        if not self.adds.num_rows:
            return 0
        counts, gone = self._of_files("num_records"), self.vector_rows
        if counts is None or counts.null_count or gone is None:
            return None
        return pc.sum(counts).as_py() - gone

    @cached_property
    def vector_rows(self) -> int | None:
        """Rows of the files that deletion vectors take away; None where they cannot be read."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if "deletionVectors" not in self.features:
            return 0
        try:
            vectors = pa.table(self.table.deletion_vectors()).column("selection_vector")
        except (DeltaError, OSError):
            return None
        kept = pc.list_flatten(vectors)
        return len(kept) - (pc.sum(kept).as_py() or 0)

    @cached_property
    def file_sizes(self) -> list[int]:
        """Of the files at this version, in bytes."""
        return self._of_files("size_bytes").to_pylist() if self.adds.num_rows else []

    @cached_property
    def committed_at(self) -> float | None:
        """When this version was committed, in seconds since 1970."""
        return self.time_of(self.version)

    def time_of(self, version: int) -> float | None:
        """When a version was committed, in seconds since 1970; None if its commit is gone."""
        [(_, commit)] = self.commits(version - 1, version)
        for action in commit or ():
            if "timestamp" in action.get("commitInfo", {}):
                return action["commitInfo"]["timestamp"] / 1000
        return None

    def at(self, version: int) -> TableLog | None:
        """The table at another version; None where its log no longer goes back so far."""
        return _at(self.location, version, self.storage_options)

    def commits(self, before: int, after: int) -> Iterator[tuple[int, Commit | None]]:
        """The commits ``before + 1`` to ``after``; None in place of one that is gone."""
        for version in range(before + 1, after + 1):
            path = f"_delta_log/{version:020d}.json"
            content = self._read(path)
            yield version, None if content is None else _actions(content, self.location, path)

    def _read(self, path: str) -> bytes | None:
        if "://" not in self.location:
            file = Path(self.location) / path
            return file.read_bytes() if file.exists() else None
        try:
            with self.files.open_input_file(path) as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    @cached_property
    def files(self) -> Any:
        """The table's folder as a pyarrow file system."""
        import pyarrow.fs
        from deltalake.fs import DeltaStorageHandler

        return pyarrow.fs.PyFileSystem(DeltaStorageHandler.from_table(self.table._table))


def _at(location: str, version: int, options: Mapping[str, str] | None) -> TableLog | None:
    try:
        table = DeltaTable(location, version=version, storage_options=dict(options or {}) or None)
    except (TableNotFoundError, DeltaError):
        return None
    return TableLog(location, table, options)


def _actions(content: bytes, location: str, path: str) -> Commit:
    try:
        actions = [json.loads(line) for line in content.splitlines() if line]
    except ValueError as error:
        raise damaged(f"{location}/{path}", str(error)) from error
    if not actions:
        raise empty(f"{location}/{path}")
    return actions


class Logs:
    """The logs of many tables, each kept and brought up to date when it is asked for again."""

    def __init__(self, storage_options: Mapping[str, str] | None = None) -> None:
        self.storage_options = storage_options
        self._kept: dict[str, tuple[DeltaTable, _Mark | None]] = {}

    def newest(self, location: str) -> TableLog | None:
        """The table at its newest version, or None if there is none at that place."""
        table = self._kept_table(location)
        if table is None:
            try:
                options = dict(self.storage_options or {}) or None
                table = DeltaTable(location, storage_options=options)
            except TableNotFoundError:
                return None
            except (DeltaError, OSError) as error:
                problem = machine_problem(error) or damaged(location, first_line(str(error)))
                raise problem from error
        mark = _mark(location, table.version())
        if mark is not None and not mark.size:
            raise empty(f"{location}/_delta_log/{table.version():020d}.json")
        self._kept[location] = table, mark
        return TableLog(location, table, self.storage_options)

    def at(self, location: str, version: int) -> TableLog | None:
        """The table at a version; None where its log no longer goes back so far."""
        return _at(location, version, self.storage_options)

    def until(self, log: TableLog, time: float, floor: int) -> TableLog:
        """The table as of a time in seconds since 1970, but not before the version `floor`."""
        version = log.version
        while version > floor and (log.time_of(version) or 0) > time:
            version -= 1
        return log if version == log.version else log.at(version) or log

    def forget(self, location: str) -> None:
        self._kept.pop(location, None)

    def _kept_table(self, location: str) -> DeltaTable | None:
        """The kept table brought up to date, if it is surely still the same one.

        A table that was dropped and created again would be read on from the old version, so the
        file of the kept version must be the very file that it was.
        """
        table, mark = self._kept.pop(location, (None, None))
        if table is None or mark is None or mark != _mark(location, table.version()):
            return None
        if _exists(location, table.version() + 1):
            return None
        return table


class _Mark(NamedTuple):
    """What tells a commit's file from another of its name."""

    file: int
    changed: int
    size: int


def _mark(location: str, version: int) -> _Mark | None:
    """The mark of a commit; None where files cannot be asked, or this one is gone."""
    if "://" in location:
        return None
    try:
        stat = (Path(location) / f"_delta_log/{version:020d}.json").stat()
    except FileNotFoundError:
        return None
    return _Mark(stat.st_ino, stat.st_mtime_ns, stat.st_size)


def _exists(location: str, version: int) -> bool:
    return os.path.exists(f"{location}/_delta_log/{version:020d}.json")  # noqa: PTH110
