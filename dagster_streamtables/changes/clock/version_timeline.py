"""`VersionTimeline`: the versions of tables at a time in milliseconds, stored before it is shown.

The commit times of several tables do not order their versions: the clock of one writer may be
behind, and Delta shifts times that do not ascend. So the first process that finds new versions
records them under a time later than all recorded ones. Every subscriber reads the same record, so a
time always means the same versions.

The record is one ledger per root, ``<root>/_streamtables/timeline``. An entry has the versions of
all tables that were ever recorded, so one entry answers what a time means.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dagster_streamtables.errors import SourceProblem
from dagster_streamtables.runtime.storage.documents import Document, LedgerEntry

Versions: TypeAlias = Mapping[str, tuple[str, int]]
"""The location of each table → its id and version."""
_Entry: TypeAlias = "LedgerEntry[Tick | None]"

_KEPT = "interval 30 days"
"""As long as Delta keeps the log of a table, if its owner does not choose otherwise."""


class TimesUnavailable(SourceProblem):
    """The versions that a time meant are no longer recorded."""


@dataclass(frozen=True)
class Tick:
    """A time at which tables had moved."""

    ts: int
    """In milliseconds since 1970."""
    versions: Versions
    """Those of the requested tables, as far as recorded; in the record, of all."""

    def of(self, tables: Iterable[str]) -> Tick:
        known = {place: self.versions[place] for place in tables if place in self.versions}
        return Tick(self.ts, known)

    def to_json(self) -> dict[str, Any]:
        return {
            "ts": self.ts,
            "versions": {place: [*each] for place, each in self.versions.items()},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Tick:
        versions = values["versions"].items()
        return cls(values["ts"], {place: (id_, version) for place, (id_, version) in versions})


_NEVER = Tick(-1, {})
"""The tick before the first one."""


class VersionTimeline:
    """The recorded times below one root. Threads and processes may share it."""

    def __init__(
        self, root: str, storage_options: Mapping[str, str] | None = None, *, kept: str = _KEPT
    ) -> None:
        """Args: kept: The least time of an entry, as an interval of Delta; fixed at creation."""
        # A checkpoint lists the entries, and there may be one for each second of the time kept.
        self._record = Document(
            root, "timeline", Tick, storage_options,
            noun="timeline", kept=kept, checkpoint_every=500,
        )  # fmt: skip

    def record(self, found: Versions, now: int, newest_commit: int = 0) -> Tick:
        """Record that tables have these versions, unless these or newer ones are recorded.

        Args:
            found: The tables' versions. A table with another id than the recorded one is newer.
            now: The present time, in milliseconds.
            newest_commit: The time of their newest commit: a tick is never before its data.

        Returns:
            The newest tick, of these tables.

        Raises:
            ConflictingCommit: Other processes committed first, at each attempt.
        """

        def add_versions(last: Tick | None) -> Tick:
            known = last or _NEVER
            newer = {
                place: each
                for place, each in found.items()
                if _is_newer(known.versions.get(place), each)
            }
            if last is not None and not newer:
                return last
            return Tick(max(now, newest_commit, known.ts + 1), {**known.versions, **newer})

        return self._record.change(add_versions).of(found)

    @property
    def last(self) -> int:
        """The newest recorded time; -1 if there is none."""
        return (self._record.read() or _NEVER).ts

    def ticks(self, after: int, tables: Iterable[str]) -> Iterator[Tick]:
        """The ticks after a time in milliseconds at which one of some tables, given by their
        locations, had moved, in order. What tables had moved by then is not repeated.

        Raises:
            TimesUnavailable: Ticks after that time are no longer recorded.
        """
        tables, newest = list(tables), self._record.newest()
        if newest is None or _tick(newest).ts <= after:
            return
        before = self._newest_until(after, newest)
        known = (_NEVER if before is None else _tick(before)).of(tables)
        for version in range(-1 if before is None else before.version, newest.version):
            tick = _tick(self._revision(version + 1, newest, after)).of(tables)
            if any(_is_newer(known.versions.get(place), at) for place, at in tick.versions.items()):
                yield tick
            known = tick

    def at(self, ts: int, tables: Iterable[str]) -> Versions | None:
        """The versions of tables, given by their locations, at a time in milliseconds, without
        those that were not recorded by then; None if the record begins after that time.

        A later tick may still be recorded for that time, unless it is closed; see `close`.

        Raises:
            TimesUnavailable: The time is no longer recorded.
        """
        newest = self._record.newest()
        found = None if newest is None else self._newest_until(ts, newest)
        return None if found is None else _tick(found).of(tables).versions

    def close(self, ts: int) -> None:
        """Ensure that every tick recorded from now on is after a time in milliseconds, which is not
        in the future, since all later ticks are after it.

        Raises:
            ConflictingCommit: Other processes committed first, at each attempt.
        """

        def advance(last: Tick | None) -> Tick:
            if last is not None and last.ts >= ts:
                return last
            return Tick(ts, (last or _NEVER).versions)

        self._record.change(advance)

    def _newest_until(self, ts: int, newest: _Entry) -> _Entry | None:
        """The newest entry of a time or an earlier one; None if the record begins after it.

        Most searches are for the end of the record, so steps from there double until one is early
        enough.
        """
        after, step = newest.version + 1, 1
        while after > 0:
            first = max(after - step, 0)
            if self._is_until(ts, first):
                rest = range(first + 1, after)
                later = bisect_left(rest, True, key=lambda each: not self._is_until(ts, each))
                return self._revision(first + later, newest, ts)
            after, step = first, step * 2
        return None

    def _is_until(self, ts: int, version: int) -> bool:
        """Whether an entry is of a time or an earlier one, as all are that are no longer kept."""
        found = self._record.at(version)
        return found is None or _tick(found).ts <= ts

    def _revision(self, version: int, newest: _Entry, ts: int) -> _Entry:
        """An entry that was recorded; its commit may have been deleted since."""
        found = newest if version == newest.version else self._record.at(version)
        if found is None:
            raise TimesUnavailable(
                f"the versions of tables at {ts} ms are no longer recorded",
                where=self._record.location,
                why="the record of times is as long as the log of a Delta table",
                fix="begin at a later time, or with a new snapshot",
            )
        return found


def _tick(entry: _Entry) -> Tick:
    return entry.value or _NEVER


def _is_newer(known: tuple[str, int] | None, found: tuple[str, int]) -> bool:
    return known is None or known[0] != found[0] or known[1] < found[1]
