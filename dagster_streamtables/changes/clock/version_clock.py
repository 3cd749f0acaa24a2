"""The version clock: a timestamp is the version of the only source. It has no gaps and no ties."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from dagster_streamtables.changes.clock.bounds import AsOf, AtLeast, Bound
from dagster_streamtables.changes.clock.clock import Instant, present
from dagster_streamtables.changes.relation import frontier as frontiers
from dagster_streamtables.changes.relation.frontier import Frontier
from dagster_streamtables.changes.relation.relation import Relation
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.delta.delta_log import TableLog

NAME = "version"
_ANY = "1970-01-01T00:00:00+00:00"
"""The current time, which no query with this clock uses."""


@dataclass(frozen=True)
class VersionClock:
    relation: Relation
    source: str

    name: ClassVar[str] = NAME
    tells_time: ClassVar[bool] = False

    @classmethod
    def of(cls, relation: Relation) -> VersionClock:
        """
        Raises:
            RefusedOperation: The relation has not exactly one source, or uses the current time.
        """
        if relation.timed:
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
        return Instant(timestamp, frontier, _ANY)

    def first(self, as_of: AsOf) -> Instant | None:
        now = self._newest()
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
        known = last.frontier[self.source]
        now = frontiers.require_same_history(
            self.source, self.relation.access.catalog.newest(self.source), known.snapshot
        )
        return None if now.version == known.version else self._at(now, known.version + 1)

    def timestamp(self, bound: Bound) -> int | None:
        return bound if isinstance(bound, int) else None

    def reaches(self, instant: Instant, up_to: Bound) -> bool:
        if isinstance(up_to, int):
            return instant.timestamp >= up_to
        committed = instant.frontier[self.source].committed_at
        return committed is not None and datetime.fromtimestamp(committed, UTC) >= up_to

    def passed(self, last: Instant, up_to: Bound) -> bool:
        if isinstance(up_to, int):
            return last.timestamp + 1 >= up_to
        # A version may have come between the last look and the bound.
        return present() >= up_to and self.next(last) is None

    def idle(self, last: Instant) -> int | None:
        return None

    def _newest(self) -> TableLog:
        return frontiers.newest(self.relation.access.catalog, [self.source])[self.source]

    def _at(self, now: TableLog, version: int) -> Instant:
        log = frontiers.at_version(self.relation.access.catalog, self.source, now, version)
        return _instant(self.source, log)

    def _version(self, wanted: Bound, now: TableLog) -> int | None:
        """The newest version until a time; None if the time is in the future."""
        if isinstance(wanted, int):
            return wanted
        if wanted > present():
            return None
        return frontiers.version_until(now, wanted.timestamp())


def _instant(name: str, log: TableLog) -> Instant:
    return Instant(log.version, {name: log}, _ANY)
