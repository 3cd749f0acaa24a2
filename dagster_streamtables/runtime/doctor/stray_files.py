"""Traces of erased commits: the times of commits, and files that no commit names.

The commit that erases another is written after it, and so after the files of the erased commit. A
file that no commit names belongs to an erased commit, or to an aborted write.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from dagster_streamtables.amounts import duration
from dagster_streamtables.runtime.delta.arrow import fs, open_parquet, pa
from dagster_streamtables.runtime.delta.table_locations import FOLDER, is_table
from dagster_streamtables.runtime.doctor.findings import Finding, Trace, finding
from dagster_streamtables.runtime.doctor.log_records import HOUR, CommitRecord, Paths

_COMMITTED = 600
"""Seconds after which the writer of a file has committed it."""
_LATER = 10
"""Seconds by which a commit must be younger than its successor: stores and networks are slow."""


class CommitTimeline:
    """The commits from the oldest one after which none is missing, which must exist."""

    def __init__(self, commits: Sequence[CommitRecord]) -> None:
        self._commits = commits
        self._oldest, self._newest = commits[0], commits[-1]
        # The file of a commit that replaced another may be younger than its successors.
        self._latest = list(accumulate((each.written for each in commits), max))
        copies = [each for each in commits if each.is_copy]
        self._copied_until = max((each.written + HOUR for each in copies), default=0.0)

    @property
    def is_whole(self) -> bool:
        """Whether it begins with the first commit of the table."""
        return self._oldest.version == 0

    def is_before(self, written: float) -> bool:
        """Whether a file may belong to a commit that was cleaned up, or be older than the table."""
        if self._is_of_copy(written):
            return not self.is_whole
        return written < self._oldest.written - HOUR * self.is_whole

    def is_after(self, written: float) -> bool:
        """Whether no commit followed a file, so that none erased the commit that named it."""
        return not self._is_of_copy(written) and written > self._latest[-1]

    def after(self, written: float) -> tuple[int, int]:
        """The possible versions of the writer of a file: the first one after the file, or the next
        one, if the writer tried again, or the store rounds times to seconds."""
        if self._is_of_copy(written):
            return self._oldest.version, self._newest.version
        first = self._commits[self._index(written)].version
        return first, min(first + 1, self._newest.version)

    def in_doubt(self, written: float) -> tuple[int, int] | None:
        """The versions that may have erased the commit of a file; None if there are none."""
        if self._is_of_copy(written):
            several = [each.version for each in self._commits if each.may_erase]
            return (several[0], several[-1]) if several else None
        index = self._index(written)
        soon = [each for each in self._commits[index:] if each.written <= written + _COMMITTED]
        able = [each for each in (soon or [self._commits[index]]) if each.may_erase]
        if not able:
            return None
        # S3 has times in whole seconds, in each of which several commits may have been made.
        until, first = written + (written == int(written)), able[0].version
        return first, max(c.version for c in able if c.version <= first + 1 or c.written <= until)

    def findings(self) -> Iterator[Finding]:
        """Commits that are younger than the next one."""
        for one, other in pairwise(self._commits):
            later = one.written - other.written
            # In a copy, all files are younger than their commits, and in any order.
            if one.may_erase and later > max(_LATER, abs(other.lag or 0)) and not one.is_copy:
                what = "the commit was written again after the next one"
                told = f"{duration(later)} after version {other.version}"
                yield finding(Trace.TIME, (one.version, one.version), what, [told], sure=False)
            if one.exact is not None and other.exact is not None and other.exact <= one.exact:
                what = "the inCommitTimestamp is not later than that of the commit before"
                told = f"{one.exact} of version {one.version}, {other.exact} of {other.version}"
                yield finding(Trace.TIME, (one.version, other.version), what, [told], sure=False)

    def _index(self, written: float) -> int:
        return min(bisect_left(self._latest, written), len(self._commits) - 1)

    def _is_of_copy(self, written: float) -> bool:
        """Whether a file may have been copied with the log, so that its time means nothing."""
        return written <= self._copied_until


_CHANGES = "_change_data"
_CHANGE = "cdc-"
"""With column mapping or random prefixes, Spark stores change files among the data files."""


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
    listed = files.get_file_info(fs.FileSelector("", recursive=True))
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
    """Internal folders begin with ``_``; so may the folder of a partition, ``_day=1``."""
    return path.endswith(".parquet") and not any(map(_is_internal, path.split("/")))


def _is_internal(part: str) -> bool:
    return part.startswith(("_", ".")) and "=" not in part and part != _CHANGES


def _is_change(path: str) -> bool:
    *folders, name = path.split("/")
    return folders[:1] == [_CHANGES] or name.startswith(_CHANGE)


_SAID = {
    Trace.DATA_FILE: "data files that no commit names",
    Trace.CHANGE_FILE: "change files that no commit names",
}


class Strays:
    def __init__(self, files: Any, timeline: CommitTimeline, now: float) -> None:
        """Args: files: The table's folder as a pyarrow file system."""
        self._files, self._timeline, self._now = files, timeline, now
        self.recent = 0
        self.aborted = 0
        self.unjudged = 0
        self._found: dict[tuple[tuple[int, int], Trace], list[str]] = defaultdict(list)

    def add(self, file: StoredFile) -> None:
        if self._now - file.written < HOUR or self._timeline.is_after(file.written):
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
        """The files by the versions in doubt; the commits of `lacking` name fewer change files than
        they wrote."""
        for (versions, trace), paths in sorted(self._found.items()):
            of_one = trace is Trace.CHANGE_FILE and any(
                version in lacking for version in range(versions[0], versions[1] + 1)
            )
            yield finding(trace, versions, _SAID[trace], paths, sure=of_one)

    def _has_rows(self, file: StoredFile) -> bool:
        """Whether a commit may have named a file: Spark names no file without rows, which a DELETE
        of all rows of a file writes (4.1), and a killed writer leaves a file without a footer."""

        try:
            with open_parquet(self._files, file.shown) as opened:
                return opened.metadata.num_rows > 0
        except (pa.ArrowInvalid, FileNotFoundError):
            return False
