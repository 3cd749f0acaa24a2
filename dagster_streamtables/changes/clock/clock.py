"""`Clock`: which timestamps a subscription has, and the frontier that each means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from dagster_streamtables.changes.clock.bounds import AsOf, Bound
from dagster_streamtables.changes.relation.frontier import Frontier

Versions = Mapping[str, tuple[str, int]]
"""The location of each table → its id and version."""


@dataclass(frozen=True)
class Instant:
    """A timestamp, and the sources as they were then."""

    timestamp: int
    frontier: Frontier
    now: str
    """The current time in the query, in ISO 8601."""
    seen: Versions = field(default_factory=dict[str, tuple[str, int]])
    """The newest versions of the sources, some of which may not agree with others yet."""


class Clock(Protocol):
    """One way to count time. Its answers are the same whenever they are asked for again."""

    name: ClassVar[str]
    tells_time: ClassVar[bool]
    """Whether its timestamps are milliseconds since 1970."""

    def instant(self, timestamp: int, frontier: Frontier) -> Instant:
        """A timestamp whose frontier is known."""
        ...

    def first(self, as_of: AsOf) -> Instant | None:
        """The instant at which a subscription begins; None if it is in the future.

        Raises:
            HistoryUnavailable: It can no longer be read.
        """
        ...

    def next(self, last: Instant) -> Instant | None:
        """The next instant at which a source moved; None if there is none yet.

        Raises:
            LostRelation: A source was dropped.
            HistoryUnavailable: The next instant can no longer be read.
        """
        ...

    def timestamp(self, bound: Bound) -> int | None:
        """A bound as a timestamp; None if that cannot be told yet."""
        ...

    def reaches(self, instant: Instant, up_to: Bound) -> bool:
        """Whether an instant is at or after a bound."""
        ...

    def passed(self, last: Instant, up_to: Bound) -> bool:
        """Whether no instant between the last one and a bound can come any more."""
        ...

    def idle(self, last: Instant) -> int | None:
        """A timestamp up to which nothing more comes, though nothing moved; None for none."""
        ...


def present() -> datetime:
    return datetime.now(UTC)
