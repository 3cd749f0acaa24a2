"""The millisecond clock: a timestamp means the versions that the timeline recorded for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from dagster_streamtables.changes.clock.bounds import AsOf, AtLeast, Bound, milliseconds
from dagster_streamtables.changes.clock.clock import Instant, Versions, present
from dagster_streamtables.changes.clock.timeline import Tick, Timeline
from dagster_streamtables.changes.relation import frontier as frontiers
from dagster_streamtables.changes.relation.frontier import Frontier
from dagster_streamtables.changes.relation.relation import Relation
from dagster_streamtables.runtime.delta.delta_log import TableLog

NAME = "ms"
_TIMED_EVERY = 1_000
"""Milliseconds between the instants of a query that uses the current time."""


@dataclass(frozen=True)
class MillisecondClock:
    relation: Relation
    timeline: Timeline

    name: ClassVar[str] = NAME
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
        due = self.relation.timed and now - last.timestamp >= _TIMED_EVERY
        if not due and self._versions(newest) == {k: v for k, v in last.seen.items() if v[0]}:
            return None
        self._record(newest, now)
        return self._pending(last)

    def timestamp(self, bound: Bound) -> int | None:
        return _ms(bound)

    def reaches(self, instant: Instant, up_to: Bound) -> bool:
        return instant.timestamp >= _ms(up_to)

    def passed(self, last: Instant, up_to: Bound) -> bool:
        end = _ms(up_to)
        if not self.relation.sources and not self.relation.timed:
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
        """What a past time means; by commit times where nobody has recorded it."""
        by_commits = {
            self._place(name): (log.id, frontiers.version_until(log, wanted / 1000))
            for name, log in self._newest().items()
        }
        if wanted > self.timeline.last:
            # From now on it means this.
            self._record_versions(by_commits, wanted)
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
        if self.relation.timed:
            found[self._time] = ("", now)
        commits = [int((log.committed_at or 0) * 1000) for log in logs.values()]
        # A commit of a clock that is ahead is of now: times in the future would stop all others.
        return self.timeline.record(found, now, min(max(commits, default=0), now))

    def _record_versions(self, found: Versions, now: int) -> None:
        if all(version >= 0 for _, version in found.values()):
            self.timeline.record(found, now)

    def _instant(
        self, tick: Tick, newest: Mapping[str, TableLog], since: Mapping[str, TableLog] | None
    ) -> Instant:
        logs = dict(self._logs(tick.versions, newest))
        frontier = self.relation.agreeing(logs, since)
        return Instant(tick.ts, frontier, _iso(tick.ts), tick.versions)

    def _logs(
        self, versions: Versions, known: Mapping[str, TableLog]
    ) -> Iterator[tuple[str, TableLog]]:
        catalog = self.relation.access.catalog
        for name in self.relation.sources:
            now = frontiers.require_same_table(name, catalog.newest(name), known[name])
            version = versions[self._place(name)][1]
            yield name, frontiers.at_version(catalog, name, now, version)

    def _newest(self) -> dict[str, TableLog]:
        return frontiers.newest(self.relation.access.catalog, self.relation.sources)

    def _versions(self, logs: Mapping[str, TableLog]) -> dict[str, tuple[str, int]]:
        return {self._place(name): (log.id, log.version) for name, log in logs.items()}

    @property
    def _places(self) -> list[str]:
        places = [self._place(name) for name in self.relation.sources]
        return [*places, self._time] if self.relation.timed else places

    @property
    def _time(self) -> str:
        """The entry of the timeline with which the time itself moves."""
        return f"now#{self.relation.fingerprint}"

    def _place(self, name: str) -> str:
        return self.relation.access.catalog.names.location(name)


def _ms(bound: Bound) -> int:
    return bound if isinstance(bound, int) else milliseconds(bound)


def _iso(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat()
