"""`Timeline`: which versions of tables a time in milliseconds means, stored before it is shown.

The commit times of several tables do not order their versions: the clock of one writer may be
behind, and Delta shifts times that do not ascend. So whoever finds new versions records them under
a time that is later than all recorded ones. Every subscriber reads the same record, so a time means
the same versions when it is read again.

The record is one ledger per root, ``<root>/_streamtables/timeline``. An entry has the versions of
all tables that were ever recorded, so one entry answers what a time means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dagster_streamtables.errors import ConflictingCommit, SourceProblem
from dagster_streamtables.runtime.storage.documents import FOLDER
from dagster_streamtables.runtime.storage.ledger import Entry, Ledger, OvertakenAppend

Versions: TypeAlias = Mapping[str, tuple[str, int]]
"""The location of each table → its id and version."""

_ATTEMPTS = 100
_KEPT = "interval 30 days"
"""As long as Delta keeps the log of a table, if its owner does not choose otherwise."""


class LostTimes(SourceProblem):
    """The versions that a time meant are no longer recorded."""


@dataclass(frozen=True)
class Tick:
    """A time at which tables had moved."""

    ts: int
    """In milliseconds since 1970."""
    versions: Versions
    """Of the tables that were asked for and are recorded."""


class Timeline:
    """The recorded times below one root. Threads and processes may share it."""

    def __init__(
        self, root: str, storage_options: Mapping[str, str] | None = None, *, kept: str = _KEPT
    ) -> None:
        """
        Args:
            root: As for `Lake`.
            storage_options: What delta-rs needs to reach an object store.
            kept: How long a time is recorded at least, as an interval of Delta; it takes effect
                when the record begins.
        """
        place = f"{root.rstrip('/')}/{FOLDER}/timeline"
        # A checkpoint lists the entries, and there may be one for each second of the time kept.
        self._ledger = Ledger(place, storage_options, kept=kept, checkpoint_every=500)

    def record(self, found: Versions, now: int, newest_commit: int = 0) -> Tick:
        """Record that tables have these versions, unless these or newer ones are recorded.

        Args:
            found: The tables' versions. A table with another id than the recorded one is newer.
            now: The present time, in milliseconds.
            newest_commit: The time of their newest commit: a tick is never before its data.

        Returns:
            The newest tick, with the recorded versions of these tables.
        """
        for _ in range(_ATTEMPTS):
            entry = self._ledger.read()
            known = _versions(entry)
            newer = {place: each for place, each in found.items() if _moved(known.get(place), each)}
            if entry is not None and not newer:
                return Tick(_ts(entry), _of(known, found))
            ts = max(now, newest_commit, -1 if entry is None else _ts(entry) + 1)
            if self._append(ts, {**known, **newer}, entry):
                return Tick(ts, _of({**known, **newer}, found))
        raise _crowded()

    @property
    def last(self) -> int:
        """The newest recorded time; -1 if there is none."""
        entry = self._ledger.read()
        return -1 if entry is None else _ts(entry)

    def ticks(self, after: int, tables: Iterable[str]) -> Iterator[Tick]:
        """The ticks after a time at which one of some tables had moved, in order.

        Args:
            after: In milliseconds. What tables had moved by then is not repeated.
            tables: Their locations.

        Raises:
            LostTimes: Ticks after that time are no longer recorded.
        """
        tables, newest = list(tables), self._ledger.read()
        if newest is None or _ts(newest) <= after:
            return
        before = self._newest_until(after, newest)
        known = _of(_versions(before), tables)
        for version in range(-1 if before is None else before.version, newest.version):
            entry = self._entry(version + 1, newest, after)
            versions = _of(_versions(entry), tables)
            if any(_moved(known.get(place), each) for place, each in versions.items()):
                yield Tick(_ts(entry), versions)
            known = versions

    def at(self, ts: int, tables: Iterable[str]) -> Versions | None:
        """The versions of tables at a time, without those that were not recorded by then.

        A later tick may still be recorded for that time, unless it is closed; see `close`.

        Args:
            ts: In milliseconds.
            tables: Their locations.

        Returns:
            None if the record begins after that time.

        Raises:
            LostTimes: The time is no longer recorded.
        """
        newest = self._ledger.read()
        entry = None if newest is None else self._newest_until(ts, newest)
        return None if entry is None else _of(_versions(entry), tables)

    def close(self, ts: int) -> None:
        """Ensure that every tick recorded from now on is after a time.

        Args:
            ts: In milliseconds; not in the future, since all later ticks are after it.
        """
        for _ in range(_ATTEMPTS):
            entry = self._ledger.read()
            if entry is not None and _ts(entry) >= ts:
                return
            if self._append(ts, _versions(entry), entry):
                return
        raise _crowded()

    def _append(self, ts: int, versions: Versions, after: Entry | None) -> bool:
        """Whether the entry was written: somebody else may have been first."""
        value = {"ts": ts, "versions": {place: list(each) for place, each in versions.items()}}
        try:
            self._ledger.append(value, None if after is None else after.version)
        except OvertakenAppend:
            return False
        return True

    def _newest_until(self, ts: int, newest: Entry) -> Entry | None:
        """The newest entry of a time or an earlier one; None if the record begins after it.

        Most searches are for the end of the record, so steps from there double until one is early
        enough; between the last two, halving finds the entry.
        """
        after, step = newest.version + 1, 1
        while after > 0:
            version = max(after - step, 0)
            entry = self._ledger.at(version)
            if entry is None or _ts(entry) <= ts:
                break
            after, step = version, step * 2
        else:
            return None
        return self._between(ts, version, after, newest)

    def _between(self, ts: int, before: int, after: int, newest: Entry) -> Entry:
        """The newest entry until a time, which is in ``before .. after - 1``."""
        while after - before > 1:
            middle = (before + after) // 2
            entry = self._ledger.at(middle)
            if entry is None or _ts(entry) <= ts:
                before = middle
            else:
                after = middle
        return self._entry(before, newest, ts)

    def _entry(self, version: int, newest: Entry, ts: int) -> Entry:
        """An entry that was recorded; its commit may have been deleted since."""
        entry = newest if version == newest.version else self._ledger.at(version)
        if entry is None:
            raise LostTimes(
                f"the versions of tables at {ts} ms are no longer recorded",
                where=self._ledger.location,
                why="the record of times is as long as the log of a Delta table",
                fix="begin at a later time, or with a new snapshot",
            )
        return entry


def _ts(entry: Entry) -> int:
    return entry.value["ts"]


def _versions(entry: Entry | None) -> dict[str, tuple[str, int]]:
    recorded: dict[str, Any] = {} if entry is None else entry.value["versions"]
    return {place: (id_, version) for place, (id_, version) in recorded.items()}


def _of(versions: Versions, tables: Iterable[str]) -> Versions:
    return {place: versions[place] for place in tables if place in versions}


def _moved(known: tuple[str, int] | None, found: tuple[str, int]) -> bool:
    """Whether a version is newer than the known one."""
    return known is None or known[0] != found[0] or known[1] < found[1]


def _crowded() -> ConflictingCommit:
    return ConflictingCommit(
        "others keep recording times",
        why="each attempt found that another process had committed first",
        fix="try again; nothing of this attempt was written",
    )
