"""The clock of a subscription: which timestamps it has, and the frontier that each means.

version         A timestamp is the version of the only source. It has no gaps and no ties.
milliseconds    A timestamp means the versions that the timeline recorded for it.

A bound, where a subscription begins or ends, is a timestamp or a date and time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, ClassVar

from dagster_streamtables.changes.clock.version_timeline import Tick, Versions, VersionTimeline
from dagster_streamtables.changes.relation import frontier as frontiers
from dagster_streamtables.changes.relation.frontier import Frontier
from dagster_streamtables.changes.relation.relation import SubscriptionRelation
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.delta.delta_log import TableLog

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class AtLeast:
    """Begin at a time, or at the oldest one that can still be read, if that is later."""

    time: int | datetime


Bound = int | datetime
AsOf = Bound | AtLeast | None
"""None: the newest time that can be read."""


def as_of_bound(given: Any) -> AsOf:
    """
    Args:
        given: An int, a date or time, either as text, `AtLeast` of one, "latest" or None.

    Raises:
        RefusedOperation: It is none of these.
    """
    if given is None or given == "latest":
        return None
    if isinstance(given, AtLeast):
        return AtLeast(bound(given.time, "as_of"))
    return bound(given, "as_of")


def bound(given: Any, name: str) -> Bound:
    """
    Args:
        given: A number of the clock, or a date or time; without a zone it is in UTC.
        name: The name of the argument, for the error.

    Raises:
        RefusedOperation: It is neither.
    """
    found = _read(given)
    if found is None or (isinstance(found, int) and found < 0):
        raise RefusedOperation(
            f"{name}={given!r} is not a time",
            why="a time is a version, a number of milliseconds since 1970, or a date and time",
            fix=f"write {name}=12, or {name}=datetime(2026, 11, 23, tzinfo=UTC)",
        )
    return found


def _read(given: Any) -> Bound | None:
    if isinstance(given, str):
        text = given.strip()
        try:
            given = int(text) if _NUMBER.fullmatch(text) else datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(given, datetime):
        return given if given.tzinfo is not None else given.replace(tzinfo=UTC)
    if isinstance(given, date):
        return datetime(given.year, given.month, given.day, tzinfo=UTC)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _seconds(bound: Bound) -> float:
    return bound if isinstance(bound, int) else bound.timestamp()


def milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def require_order(as_of: Bound, up_to: Bound) -> None:
    """
    Raises:
        RefusedOperation: A subscription would end before it begins.
    """
    if _seconds(up_to) < _seconds(as_of):
        raise RefusedOperation(
            f"the subscription would end at {up_to}, before it begins at {as_of}",
            why="as_of is the first time, and up_to the first that is left out",
            fix="give an up_to after as_of, or leave it out",
        )


@dataclass(frozen=True)
class Instant:
    """A timestamp, and the sources as they were then."""

    timestamp: int
    frontier: Frontier
    now: str
    """The current time in the query, in ISO 8601."""
    seen: Versions = field(default_factory=dict[str, tuple[str, int]])
    """The newest versions of the sources, some of which may not agree with others yet."""


def present() -> datetime:
    return datetime.now(UTC)


_ANY = "1970-01-01T00:00:00+00:00"
"""The current time, which no query with this clock uses."""


@dataclass(frozen=True)
class VersionClock:
    """The versions of the only source."""

    relation: SubscriptionRelation
    source: str

    name: ClassVar[str] = "version"
    tells_time: ClassVar[bool] = False
    """Whether its timestamps are milliseconds since 1970."""

    @classmethod
    def of(cls, relation: SubscriptionRelation) -> VersionClock:
        """
        Raises:
            RefusedOperation: The relation has not exactly one source, or uses the current time.
        """
        if relation.is_time_dependent:
            raise RefusedOperation(
                "a query that uses the current time has no versions",
                why="its rows change without a commit",
                fix='choose clock="ms"',
            )
        if len(relation.sources) != 1:
            raise RefusedOperation(
                f"a query over {len(relation.sources)} tables has no versions",
                why="each table counts its own",
                fix='choose clock="ms", which maps milliseconds to the versions of all',
            )
        return cls(relation, relation.sources[0])

    def instant(self, timestamp: int, frontier: Frontier) -> Instant:
        """A timestamp whose frontier is known."""
        return Instant(timestamp, frontier, _ANY)

    def first(self, as_of: AsOf) -> Instant | None:
        """The instant at which a subscription begins; None if it is in the future.

        Raises:
            HistoryUnavailable: It can no longer be read.
        """
        now = frontiers.newest(self.relation.access.catalog, [self.source])[self.source]
        if as_of is None:
            return _instant(self.source, now)
        wanted = as_of.time if isinstance(as_of, AtLeast) else as_of
        version = self._version(wanted, now)
        if version is None or version > now.version:
            return None
        if isinstance(as_of, AtLeast):
            version = max(version, frontiers.earliest(now))
        elif version < 0 or not frontiers.is_readable(now, version):
            raise frontiers.unavailable(self.source, now, version, "its history was removed")
        return self._at(now, version)

    def next(self, last: Instant) -> Instant | None:
        """The next instant at which a source moved; None if there is none yet.

        Raises:
            LostRelation: A source was dropped.
            HistoryUnavailable: The next instant can no longer be read.
        """
        known = last.frontier[self.source]
        now = frontiers.require_same_history(
            self.source, self.relation.access.catalog.newest(self.source), known.snapshot
        )
        return None if now.version == known.version else self._at(now, known.version + 1)

    def timestamp(self, bound: Bound) -> int | None:
        """A bound as a timestamp; None if not known yet."""
        return bound if isinstance(bound, int) else None

    def reaches(self, instant: Instant, up_to: Bound) -> bool:
        """Whether an instant is at or after a bound."""
        if isinstance(up_to, int):
            return instant.timestamp >= up_to
        committed = instant.frontier[self.source].committed_at
        return committed is not None and datetime.fromtimestamp(committed, UTC) >= up_to

    def is_past(self, last: Instant, up_to: Bound) -> bool:
        """Whether no more instants between the last one and a bound can follow."""
        if isinstance(up_to, int):
            return last.timestamp + 1 >= up_to
        # A version may have come between the last look and the bound.
        return present() >= up_to and self.next(last) is None

    def idle(self, last: Instant) -> int | None:
        """A timestamp before which no change follows, though no source moved; None for none."""
        return None

    def _at(self, now: TableLog, version: int) -> Instant:
        return _instant(self.source, frontiers.at_version(self.source, now, version))

    def _version(self, wanted: Bound, now: TableLog) -> int | None:
        """The newest version until a time; None if the time is in the future."""
        if isinstance(wanted, int):
            return wanted
        if wanted > present():
            return None
        return frontiers.version_until(now, wanted.timestamp())


def _instant(name: str, log: TableLog) -> Instant:
    return Instant(log.version, {name: log}, _ANY)


_TIMED_EVERY = 1_000
"""Milliseconds between the instants of a query that uses the current time."""


@dataclass(frozen=True)
class MillisecondClock:
    """Milliseconds since 1970, for any sources. The methods are those of `VersionClock`."""

    relation: SubscriptionRelation
    timeline: VersionTimeline

    name: ClassVar[str] = "ms"
    tells_time: ClassVar[bool] = True

    def instant(self, timestamp: int, frontier: Frontier) -> Instant:
        return Instant(timestamp, frontier, _iso(timestamp), self._versions(frontier))

    def first(self, as_of: AsOf) -> Instant | None:
        now = milliseconds(present())
        if as_of is None:
            logs = self._newest()
            return self._instant(self._record(logs, now), logs, None)
        wanted = _ms(as_of.time if isinstance(as_of, AtLeast) else as_of)
        if wanted > now:
            return None
        found = self._at(wanted)
        if isinstance(as_of, AtLeast):
            wanted, found = self._readable(wanted, found)
        for name, log in self._newest().items():
            version = found[self._place(name)][1]
            if version < 0 or not frontiers.is_readable(log, version):
                raise frontiers.unavailable(name, log, version, "its history was removed")
        return self._instant(Tick(wanted, found), self._newest(), None)

    def next(self, last: Instant) -> Instant | None:
        pending = self._pending(last)
        if pending is not None:
            return pending
        newest = {}
        for name, log in last.frontier.items():
            now = self.relation.access.catalog.newest(name)
            newest[name] = frontiers.require_same_history(name, now, log.snapshot)
        now = milliseconds(present())
        due = self.relation.is_time_dependent and now - last.timestamp >= _TIMED_EVERY
        if not due and self._versions(newest) == {k: v for k, v in last.seen.items() if v[0]}:
            return None
        self._record(newest, now)
        return self._pending(last)

    def timestamp(self, bound: Bound) -> int | None:
        return _ms(bound)

    def reaches(self, instant: Instant, up_to: Bound) -> bool:
        return instant.timestamp >= _ms(up_to)

    def is_past(self, last: Instant, up_to: Bound) -> bool:
        end = _ms(up_to)
        if not self.relation.sources and not self.relation.is_time_dependent:
            return True
        if milliseconds(present()) < end:
            return False
        self.timeline.close(end - 1)
        return self._pending(last) is None

    def idle(self, last: Instant) -> int | None:
        now = milliseconds(present())
        self.timeline.close(now)
        return now + 1 if self._pending(last) is None else None

    def _pending(self, last: Instant) -> Instant | None:
        """The next recorded instant."""
        for tick in self.timeline.ticks(last.timestamp, self._places):
            return self._instant(tick, last.frontier, last.frontier)
        return None

    def _at(self, wanted: int) -> Versions:
        """The versions at a past time; by commit times if it was not recorded."""
        by_commits = {
            self._place(name): (log.id, frontiers.version_until(log, wanted / 1000))
            for name, log in self._newest().items()
        }
        existed = all(version >= 0 for _, version in by_commits.values())
        if existed and wanted > self.timeline.last:
            self.timeline.record(by_commits, wanted)  # from now on it means this
        return {**by_commits, **(self.timeline.at(wanted, by_commits) or {})}

    def _readable(self, wanted: int, found: Versions) -> tuple[int, Versions]:
        """The oldest time at or after one at which all sources can be read."""
        oldest = {self._place(n): frontiers.earliest(log) for n, log in self._newest().items()}
        if all(found[place][1] >= version for place, version in oldest.items()):
            return wanted, found
        for tick in self.timeline.ticks(wanted, oldest):
            if all(tick.versions[place][1] >= version for place, version in oldest.items()):
                return tick.ts, tick.versions
        tick = self._record(self._newest(), milliseconds(present()))
        return tick.ts, tick.versions

    def _record(self, logs: Mapping[str, TableLog], now: int) -> Tick:
        found: dict[str, tuple[str, int]] = dict(self._versions(logs))
        if self.relation.is_time_dependent:
            found[self._time] = ("", now)
        commits = [int((log.committed_at or 0) * 1000) for log in logs.values()]
        # A commit of a clock that is ahead is of now: times in the future would stop all others.
        return self.timeline.record(found, now, min(max(commits, default=0), now))

    def _instant(
        self, tick: Tick, newest: Mapping[str, TableLog], since: Mapping[str, TableLog] | None
    ) -> Instant:
        catalog, logs = self.relation.access.catalog, dict[str, TableLog]()
        for name in self.relation.sources:
            now = frontiers.require_same_table(name, catalog.newest(name), newest[name])
            version = tick.versions[self._place(name)][1]
            logs[name] = frontiers.at_version(name, now, version)
        frontier = self.relation.agreeing(logs, since)
        return Instant(tick.ts, frontier, _iso(tick.ts), tick.versions)

    def _newest(self) -> dict[str, TableLog]:
        return frontiers.newest(self.relation.access.catalog, self.relation.sources)

    def _versions(self, logs: Mapping[str, TableLog]) -> dict[str, tuple[str, int]]:
        return {self._place(name): (log.id, log.version) for name, log in logs.items()}

    @property
    def _places(self) -> list[str]:
        places = [self._place(name) for name in self.relation.sources]
        return [*places, self._time] if self.relation.is_time_dependent else places

    @property
    def _time(self) -> str:
        """The entry of the timeline with which the time itself moves."""
        return f"now#{self.relation.fingerprint}"

    def _place(self, name: str) -> str:
        return self.relation.access.catalog.names.location(name)


SubscriptionClock = VersionClock | MillisecondClock
"""One way to count time. Its answers never change."""


def _ms(bound: Bound) -> int:
    return bound if isinstance(bound, int) else milliseconds(bound)


def _iso(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat()
