"""Traces of erased commits: the times of commits, and files that no commit names.

The commit that erases another is written after it, and so after the files of the erased commit. A
file that no commit names belongs to an erased commit, or to an aborted write.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from dagster_streamtables.amounts import duration
from dagster_streamtables.runtime.delta.arrow import open_parquet
from dagster_streamtables.runtime.delta.table_locations import FOLDER, is_table
from dagster_streamtables.runtime.doctor.findings import Finding, Trace, finding
from dagster_streamtables.runtime.doctor.log_records import CommitRecord, Paths

_HOUR = 3600
_COMMITTED = 600
"""Seconds after which the writer of a file has committed it."""
_LATER = 10
"""Seconds by which a commit must be younger than its successor: stores and networks are slow."""


class Stamp(NamedTuple):
    """The times of a commit, as `CommitRecord` has them."""

    version: int
    written: float
    told: float | None
    exact: int | None
    may_erase: bool

    @property
    def lag(self) -> float | None:
        """The seconds between the commit and the file, which was copied if they are many."""
        return None if self.told is None else self.written - self.told

    @property
    def is_copy(self) -> bool:
        return self.lag is not None and abs(self.lag) > _HOUR


def stamp(commit: CommitRecord) -> Stamp:
    return Stamp(commit.version, commit.written, commit.told, commit.exact, commit.may_erase)


class CommitTimeline:
    """The commits from the oldest one after which none is missing, which must exist."""

    def __init__(self, stamps: Sequence[Stamp]) -> None:
        self._stamps = stamps
        self._oldest, self._newest = stamps[0], stamps[-1]
        # The file of a commit that took the place of another may be younger than its successors.
        self._latest = list(accumulate((each.written for each in stamps), max))
        copies = [each for each in stamps if each.is_copy]
        self._copied_until = max((each.written + _HOUR for each in copies), default=0.0)

    @property
    def is_whole(self) -> bool:
        """Whether it begins with the first commit of the table."""
        return self._oldest.version == 0

    def is_before(self, written: float) -> bool:
        """Whether a file may be of a commit that was cleaned up, or older than the table."""
        if self._is_of_copy(written):
            return not self.is_whole
        return written < self._oldest.written - _HOUR * self.is_whole

    def is_after(self, written: float) -> bool:
        """Whether no commit came after a file, so that none erased the one that named it."""
        return not self._is_of_copy(written) and written > self._latest[-1]

    def after(self, written: float) -> tuple[int, int]:
        """The versions that may be of the writer of a file.

        It is the first one after the file, or the second one: the writer may have tried again, and
        some stores round the times to seconds.
        """
        if self._is_of_copy(written):
            return self._oldest.version, self._newest.version
        first = self._stamps[self._index(written)].version
        return first, min(first + 1, self._newest.version)

    def in_doubt(self, written: float) -> tuple[int, int] | None:
        """The versions that may have erased the commit of a file; None if there are none."""
        if self._is_of_copy(written):
            several = [each.version for each in self._stamps if each.may_erase]
            return (several[0], several[-1]) if several else None
        index = self._index(written)
        soon = [each for each in self._stamps[index:] if each.written <= written + _COMMITTED]
        several = [each.version for each in (soon or [self._stamps[index]]) if each.may_erase]
        if not several:
            return None
        # S3 has times in whole seconds, in each of which several commits may have been made.
        until = written + (written == int(written))
        last = max(v for v in several if v <= several[0] + 1 or self._is_by(v, until))
        return several[0], last

    def _is_by(self, version: int, time: float) -> bool:
        return self._stamps[version - self._oldest.version].written <= time

    def findings(self) -> Iterator[Finding]:
        """Commits that are younger than the next one."""
        for one, other in pairwise(self._stamps):
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
        return min(bisect_left(self._latest, written), len(self._stamps) - 1)

    def _is_of_copy(self, written: float) -> bool:
        """Whether a file may have been copied with the log, so that its time says nothing."""
        return written <= self._copied_until


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The versions of several ranges.

    >>> merge_ranges([(3, 4), (1, 2)])
    (1, 4)
    """
    firsts, lasts = zip(*ranges, strict=True)
    return min(firsts), max(lasts)


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
