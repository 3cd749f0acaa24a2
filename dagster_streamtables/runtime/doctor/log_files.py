"""The files of a table's log: commits, checkpoints, checksums."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dagster_streamtables.runtime.delta.actions import actions_of
from dagster_streamtables.runtime.delta.arrow import may_use_threads
from dagster_streamtables.runtime.delta.log_paths import (
    FOLDER,
    LAST_CHECKPOINT,
    commit_file,
    version_of,
)
from dagster_streamtables.runtime.doctor.commits import CommitRecord, commit_record
from dagster_streamtables.runtime.doctor.paths import Paths

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
        """The version from which on every commit is there."""
        version = max(self.written)
        while version - 1 in self.written:
            version -= 1
        return version

    @property
    def newest(self) -> int:
        return max(self.written)

    def commits(self) -> Iterator[CommitRecord]:
        """Every commit, also those before a gap, in order; those deleted meanwhile are left out."""
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
        """Whether a commit exists by now: a listing of a folder may miss one that is written."""
        [found] = self.files.get_file_info([commit_file(version)])
        return found.type.name != "NotFound"


def log_files(location: str, files: Any, paths: Paths) -> LogFiles | None:
    """The log of a table; None if there is no commit."""
    from pyarrow.fs import FileSelector

    listed = files.get_file_info(FileSelector(FOLDER, allow_not_found=True))
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
    """Those of which all parts are there: a writer may have ended in between."""
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
