"""The files of a table's log and their content: commits, checkpoints, checksums.

Paths of data files have one spelling here. A log has them as URIs, relative to the table, or
absolute as in a clone; delta-rs and Spark encode the values of partitions differently, and folders
on disk are encoded once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.actions import (
    Action,
    Commit,
    actions_of,
    by_kind,
    committed_at,
    info_of,
    metrics_of,
)
from dagster_streamtables.runtime.delta.arrow import fs, may_use_threads, open_parquet, pa
from dagster_streamtables.runtime.delta.table_locations import (
    FOLDER,
    LAST_CHECKPOINT,
    commit_file,
    is_remote,
    version_of,
)
from dagster_streamtables.runtime.errors.table_errors import unreadable_log

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/+", re.IGNORECASE)


class Paths:
    def __init__(self, location: str) -> None:
        places = [location] if is_remote(location) else [location, str(Path(location).resolve())]
        self._places = [_absolute(each).rstrip("/") + "/" for each in places]

    def plain(self, path: str) -> str:
        """A path relative to the table, decoded; absolute for a file elsewhere.

        >>> Paths("s3a://b/t").plain("s3://b/t/p=a%2520b/f"), Paths("/t").plain("file:/u/f")
        ('p=a b/f', '/u/f')
        """
        text = _decode(path)
        if not text.startswith("/") and not _SCHEME.match(text):
            return text
        text = _absolute(text)
        for place in self._places:
            if text.startswith(place):
                return text.removeprefix(place)
        return text


def _absolute(path: str) -> str:
    """An absolute path without the scheme: ``s3`` and ``s3a`` are the same."""
    return _SCHEME.sub("/", _decode(path), count=1)


def _decode(path: str) -> str:
    while "%" in path and (once := unquote(path)) != path:
        path = once
    return path


_CONDITIONAL = re.compile(r"delta-rs:py-[1-9]")
"""Writers that create a commit only if the store has none of that version."""
_REPLACING = re.compile(r"REPLACE|RESTORE|CLONE")
HOUR = 3600
_CHANGE_COUNTS = ("numAddedChangeFiles", "numTargetChangeFilesAdded")


@dataclass(frozen=True)
class FileEntry:
    """A file, as an add or remove action names it."""

    path: str
    """As `Paths.plain` returns it."""
    vector: str | None
    """Identifies its deletion vector."""
    size: int
    changes_data: bool


@dataclass(frozen=True)
class CommitRecord:
    version: int
    written: float
    """When its file was written, by the store's clock, in seconds since 1970."""
    told: float | None
    """When it was committed, by the writer's clock."""
    exact: int | None
    """The `inCommitTimestamp`, in milliseconds, which must increase."""
    id: str | None
    """The writer's id for the commit."""
    may_erase: bool
    """Whether its writer may have replaced another commit by it."""
    replaces: bool
    """Whether it replaces the whole table, so that applications may begin again."""
    adds: list[FileEntry]
    removes: list[FileEntry]
    changes: list[str]
    change_count: int
    """The number of change files by the writer's metrics."""
    transactions: Mapping[str, int]
    """Application → number."""
    metadata: Action | None
    protocol: Action | None

    @property
    def lag(self) -> float | None:
        """The seconds between the commit and its file, which was copied if they are many."""
        return None if self.told is None else self.written - self.told

    @property
    def is_copy(self) -> bool:
        return self.lag is not None and abs(self.lag) > HOUR


def commit_record(version: int, written: float, actions: Commit, paths: Paths) -> CommitRecord:
    kinds, info = by_kind(actions), info_of(actions)
    metrics = metrics_of(info)
    mode = (info.get("operationParameters") or {}).get("mode")
    named = _REPLACING.search(str(info.get("operation")))
    return CommitRecord(
        version,
        written,
        committed_at(info),
        info.get("inCommitTimestamp"),
        info.get("txnId"),
        _CONDITIONAL.match(str(info.get("engineInfo"))) is None,
        named is not None or str(mode).lower() == "overwrite",
        [file_entry(each, paths) for each in kinds.get("add", ())],
        [file_entry(each, paths) for each in kinds.get("remove", ())],
        [paths.plain(each["path"]) for each in kinds.get("cdc", ())],
        sum(int(metrics.get(name) or 0) for name in _CHANGE_COUNTS),
        {each["appId"]: each["version"] for each in kinds.get("txn", ())},
        next(iter(kinds.get("metaData", ())), None),
        next(iter(kinds.get("protocol", ())), None),
    )


def file_entry(action: Mapping[str, Any], paths: Paths) -> FileEntry:
    return FileEntry(
        paths.plain(action["path"]),
        vector_id(action.get("deletionVector")),
        action.get("size") or 0,
        action.get("dataChange") is not False,
    )


def vector_id(vector: Mapping[str, Any] | None) -> str | None:
    """The unique id of a deletion vector, as the protocol defines it."""
    if not vector or not vector.get("storageType"):
        return None
    offset = vector.get("offset")
    told = f"{vector['storageType']}{vector['pathOrInlineDv']}"
    return told if offset is None else f"{told}@{offset}"


_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.\w+")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_AHEAD = 16
"""Requests to an object store at once."""


@dataclass(frozen=True)
class LogFiles:
    """The log of a table, as it was listed."""

    location: str
    files: Any
    """The table's folder as a pyarrow file system."""
    paths: Paths
    written: Mapping[int, float]
    """Version → when the file of its commit was written, by the store's clock."""
    checkpoints: Mapping[int, list[list[str]]]
    """Version → its whole checkpoints, each the paths of its parts."""
    checksums: Mapping[int, str]
    """Version → the path of its checksum."""
    last: str | None
    """The path of the file that names the newest checkpoint."""
    compacted: list[tuple[int, int]] = field(default_factory=list)
    """The first and last versions of files that have the actions of several commits."""

    @cached_property
    def oldest(self) -> int:
        """The version from which on every commit exists."""
        version = max(self.written)
        while version - 1 in self.written:
            version -= 1
        return version

    @property
    def newest(self) -> int:
        return max(self.written)

    def commits(self) -> Iterator[CommitRecord]:
        """Every commit that still exists, in order, even before a gap."""
        versions = sorted(self.written)
        if may_use_threads(self.files):  # on this machine
            found = map(self._content, versions)
            yield from filter(None, map(self._record, versions, found))
            return
        with ThreadPoolExecutor(_AHEAD) as pool:
            for begin in range(0, len(versions), _AHEAD):
                some = versions[begin : begin + _AHEAD]
                found = pool.map(self._content, some)
                yield from filter(None, map(self._record, some, found))

    def _record(self, version: int, content: bytes | None) -> CommitRecord | None:
        if content is None:
            return None
        actions = actions_of(content, f"{self.location}/{commit_file(version)}")
        return commit_record(version, self.written[version], actions, self.paths)

    def _content(self, version: int) -> bytes | None:
        return self.read(commit_file(version))

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if it was deleted."""
        try:
            with self.files.open_input_file(path) as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def read_json(self, path: str) -> dict[str, Any]:
        """A file with one JSON object; empty if it was deleted or is torn, which readers ignore."""
        try:
            found = json.loads(self.read(path) or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def is_there(self, version: int) -> bool:
        """Whether a commit exists by now: a listing may miss one that is being written."""
        [found] = self.files.get_file_info([commit_file(version)])
        return found.type.name != "NotFound"


def log_files(location: str, files: Any, paths: Paths) -> LogFiles | None:
    """The log of a table; None if there is no commit."""
    listed = files.get_file_info(fs.FileSelector(FOLDER, allow_not_found=True))
    names = {each.base_name: each.mtime_ns / 1e9 for each in listed if each.is_file}
    versions = ((version_of(name), time) for name, time in names.items())
    written = {version: time for version, time in versions if version is not None}
    if not written:
        return None
    return LogFiles(
        location,
        files,
        paths,
        written,
        _checkpoints(names),
        {int(found[1]): _path(found) for found in _matches(_CHECKSUM, names)},
        f"{FOLDER}/{LAST_CHECKPOINT}" if LAST_CHECKPOINT in names else None,
        [(int(found[1]), int(found[2])) for found in _matches(_COMPACTED, names)],
    )


def _checkpoints(names: Mapping[str, float]) -> dict[int, list[list[str]]]:
    """The complete checkpoints: a writer may have ended between two parts."""
    parts: dict[tuple[int, str], list[str]] = {}
    for found in _matches(_CHECKPOINT, names):
        whole = f"of {found[3]}" if found[3] else found[0]
        parts.setdefault((int(found[1]), whole), []).append(_path(found))
    made: dict[int, list[list[str]]] = {}
    for (version, whole), several in sorted(parts.items()):
        if not whole.startswith("of ") or len(several) == int(whole.removeprefix("of ")):
            made.setdefault(version, []).append(sorted(several))
    return made


def _matches(pattern: re.Pattern[str], names: Mapping[str, float]) -> list[re.Match[str]]:
    return [found for name in names if (found := pattern.fullmatch(name))]


def _path(found: re.Match[str]) -> str:
    return f"{FOLDER}/{found[0]}"


_READ = [
    "add.path", "add.size", "add.deletionVector", "remove.path", "txn.appId", "txn.version",
    "metaData", "protocol", "sidecar.path",
]  # fmt: skip

Held = tuple[str | None, int]
"""The deletion vector of a file, and its size."""


@dataclass
class LogState:
    """The content of a log up to some version."""

    live: dict[str, Held] = field(default_factory=dict)
    """The files of the table, by path."""
    removed: set[str] = field(default_factory=set)
    transactions: dict[str, int] = field(default_factory=dict)
    metadata: Action | None = None
    protocol: Action | None = None

    @property
    def size(self) -> int:
        return sum(size for _, size in self.live.values())


def checkpoint_state(log: LogFiles, parts: list[str]) -> LogState | None:
    """The state in a checkpoint; None if a file of it was deleted meanwhile.

    Raises:
        DamagedTable: It cannot be read.
    """
    state, left = LogState(), list(parts)
    while left:
        path = left.pop()
        try:
            kinds = _kinds(log, path)
        except FileNotFoundError:
            return None
        # A sidecar is always in the log's own folder.
        sidecars = (each["path"].rsplit("/", 1)[-1] for each in kinds.get("sidecar", ()))
        left += [f"{FOLDER}/_sidecars/{name}" for name in sidecars]
        for each in kinds.get("add", ()):
            entry = file_entry(each, log.paths)
            state.live[entry.path] = entry.vector, entry.size
        state.removed.update(log.paths.plain(each["path"]) for each in kinds.get("remove", ()))
        state.transactions |= {each["appId"]: each["version"] for each in kinds.get("txn", ())}
        state.metadata = next(iter(kinds.get("metaData", ())), state.metadata)
        state.protocol = next(iter(kinds.get("protocol", ())), state.protocol)
    return state


def _kinds(log: LogFiles, path: str) -> Mapping[str, list[Action]]:
    """The actions in a file of a checkpoint, by kind."""
    place = f"{log.location}/{path}"
    if path.endswith(".json"):
        content = log.read(path)
        if content is None:
            raise FileNotFoundError(place)
        return by_kind(actions_of(content, place))

    try:
        with open_parquet(log.files, path) as file:
            rows = file.read(columns=_READ, use_threads=may_use_threads(log.files))
        return {name: _to_actions(rows.column(name)) for name in rows.column_names}
    except pa.ArrowException as error:
        raise unreadable_log(place, str(error)) from error


def _to_actions(column: Any) -> list[Action]:
    """The actions of one kind; a map comes as pairs."""
    found = column.drop_null().to_pylist()
    for each in found:
        if isinstance(each.get("configuration"), list):
            each["configuration"] = dict(each["configuration"])
    return found
