"""The data files and change files below a table, and those that no commit names.

A file that no commit names is of an erased commit, or of a write that was aborted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dagster_streamtables.runtime.delta.arrow import open_parquet
from dagster_streamtables.runtime.delta.log_paths import FOLDER, is_table
from dagster_streamtables.runtime.doctor.findings import Finding, Trace, finding
from dagster_streamtables.runtime.doctor.paths import Paths
from dagster_streamtables.runtime.doctor.timeline import CommitTimeline

_CHANGES = "_change_data"
_CHANGE = "cdc-"
"""With column mapping or random prefixes, Spark stores change files in the folders of data."""


@dataclass(frozen=True)
class StoredFile:
    path: str
    """As `Paths.plain` returns it."""
    shown: str
    """As the store has it, relative to the table."""
    written: float
    """When it was written, by the store's clock, in seconds since 1970."""
    is_change: bool


def stored_files(files: Any, paths: Paths) -> list[StoredFile]:
    """The Parquet files of a table, without those of tables in folders below it.

    Deletion vectors are left out: Spark writes one for a file whose rows are all deleted, and then
    removes the file without naming the vector (4.1).
    """
    from pyarrow.fs import FileSelector

    listed = files.get_file_info(FileSelector("", recursive=True))
    tables = {each.path.partition(f"/{FOLDER}")[0] for each in listed if _is_log(each.path)}
    return [
        StoredFile(paths.plain(each.path), each.path, each.mtime_ns / 1e9, _is_change(each.path))
        for each in listed
        if each.is_file and _is_data(each.path) and tables.isdisjoint(_folders(each.path))
    ]


def _is_log(path: str) -> bool:
    """Whether it is the log, or a file in the log, of a table in a folder below."""
    return is_table(path.split("/")[1:])


def _folders(path: str) -> Iterator[str]:
    """The folders that a file is in.

    >>> list(_folders("a/b/c"))
    ['a', 'a/b']
    """
    parts = path.split("/")
    return ("/".join(parts[:n]) for n in range(1, len(parts)))


def _is_data(path: str) -> bool:
    """Folders of other things begin with ``_``; so may the folder of a partition, ``_day=1``."""
    return path.endswith(".parquet") and not any(map(_is_internal, path.split("/")))


def _is_internal(part: str) -> bool:
    return part.startswith(("_", ".")) and "=" not in part and part != _CHANGES


def _is_change(path: str) -> bool:
    *folders, name = path.split("/")
    return folders[:1] == [_CHANGES] or name.startswith(_CHANGE)


_YOUNG = 3600
_SAID = {
    Trace.DATA_FILE: "data files that no commit names",
    Trace.CHANGE_FILE: "change files that no commit names",
}


class Strays:
    def __init__(self, files: Any, timeline: CommitTimeline, now: float) -> None:
        """
        Args:
            files: The table's folder as a pyarrow file system.
            timeline: The commits of the table.
            now: The present, in seconds since 1970.
        """
        self._files = files
        self._timeline = timeline
        self._now = now
        self.recent = 0
        self.aborted = 0
        self.unjudged = 0
        self._found: dict[tuple[tuple[int, int], Trace], list[str]] = defaultdict(list)

    def add(self, file: StoredFile) -> None:
        if self._now - file.written < _YOUNG or self._timeline.is_after(file.written):
            self.recent += 1
        elif self._timeline.is_before(file.written):
            self.unjudged += 1
        elif self._has_rows(file):
            versions = self._timeline.in_doubt(file.written)
            if versions is None:
                self.aborted += 1
                return
            kind = Trace.CHANGE_FILE if file.is_change else Trace.DATA_FILE
            self._found[versions, kind].append(file.shown)

    def findings(self, lacking: set[int]) -> Iterator[Finding]:
        """The files by the versions in doubt.

        Args:
            lacking: The versions whose commits name fewer change files than they wrote.
        """
        for (versions, trace), paths in sorted(self._found.items()):
            of_one = trace is Trace.CHANGE_FILE and any(
                version in lacking for version in range(versions[0], versions[1] + 1)
            )
            yield finding(trace, versions, _SAID[trace], paths, sure=of_one)

    def _has_rows(self, file: StoredFile) -> bool:
        """Whether a commit may have named a file.

        Spark names no file without rows, which a DELETE of all rows of a file writes (4.1). A file
        without a footer is of a writer that was killed while it wrote.
        """
        import pyarrow as pa

        try:
            with open_parquet(self._files, file.shown) as opened:
                return opened.metadata.num_rows > 0
        except (pa.ArrowInvalid, FileNotFoundError):
            return False
