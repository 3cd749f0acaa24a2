"""When commits were made, and which of them may have taken the place of another one.

The commit that erases another is written after it, and so after the files of the erased commit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from dagster_streamtables.amounts import duration
from dagster_streamtables.runtime.doctor.commits import CommitRecord
from dagster_streamtables.runtime.doctor.findings import Finding, Trace, finding

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
