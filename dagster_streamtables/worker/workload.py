"""`Workload`: what a worker drives, wherever it was declared, and where it is reported.

`RefreshMemory` is what it remembers of the refreshes of one node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dagster_streamtables.declare.nodes import Nodes
from dagster_streamtables.errors import LostPublisher
from dagster_streamtables.replication.lifecycle.replication_errors import ReplicationInUse
from dagster_streamtables.replication.lifecycle.replication_report import ReplicationRefresh
from dagster_streamtables.runtime.errors.error_translation import may_pass
from dagster_streamtables.runtime.errors.slot_errors import SlotInUse
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh
from dagster_streamtables.scheduling.dueness import Backoff
from dagster_streamtables.scheduling.refresh_states import RefreshProgress

_TRIES = 3
_LONGEST = timedelta(seconds=5)
_SHORTEST = timedelta(seconds=0.1)
_AWAY = (ReplicationInUse, SlotInUse, LostPublisher)
"""Errors of replications that may pass by themselves."""
_READERS_FIRST, _TIMES = timedelta(seconds=1), 5
"""For so long, and for so many times as long as its refresh took, a table is not refreshed again
while all of its readers are behind it: on a busy machine, all take longer. One whose only reader
takes a minute must not be a minute late itself."""


@dataclass
class RefreshMemory(RefreshProgress):
    """The refreshes of one table, as far as they matter for the next.

    An error that may pass by itself (a lost race, a Spark server that ended) is tried again after
    1, 2 and 4 seconds, as the step of a run is. Only then does it count as a failure, after which
    the backoff of the sensor applies.
    """

    redefined: bool = True
    """Until a refresh of the present declaration."""
    as_of: datetime | None = None
    """The time as of which it is known to reflect its sources."""
    took: timedelta = timedelta(0)
    """How long its last refresh took."""
    error: str = ""
    """The last error, on one line; empty after a refresh."""
    _tries: int = 0
    _in_vain: int = 0
    """Refreshes in a row that read no newer version, although there seemed to be one."""

    def set_back(self, now: datetime) -> None:
        """Correct the times of a clock that has been set back since, or of another machine whose
        clock is ahead: nothing may wait for them."""
        self.as_of = min(self.as_of, now) if self.as_of is not None else None
        self.failed_at = min(self.failed_at, now) if self.failed_at is not None else None
        if self.again_at is not None and self.again_at > now + _LONGEST:
            self.again_at = now

    def is_recent(self, now: datetime) -> bool:
        """Whether it was refreshed so lately that its readers come first."""
        pause = max(_READERS_FIRST, _TIMES * self.took)
        return self.last is not None and timedelta(0) <= now - self.last < pause

    def note_refresh(
        self, refresh: Refresh, as_of: datetime, now: datetime, *, timed: bool
    ) -> None:
        """A refresh ended well, which read its sources until `as_of`. `timed`: its query uses the
        current time."""
        skipped = refresh.action is Action.SKIP
        seen = dict(self.seen if skipped else refresh.seen)
        idle = skipped or (refresh.action is Action.NO_DATA and not timed)
        # A source that two paths disagree about, or whose writer's clock is ahead, moves later: to
        # ask again at once would keep a core busy.
        vain = idle and seen == self.seen
        self._in_vain = self._in_vain + 1 if vain else 0
        pause = min(_LONGEST, _SHORTEST * 2 ** min(self._in_vain, 10))
        self.again_at = now + pause if self._in_vain else None
        self.last, self.as_of, self.seen = now, as_of, seen
        self.took = timedelta(seconds=refresh.seconds)
        self.failures = self._tries = 0
        self.failed_at, self.error = None, ""

    def note_replication(self, as_of: datetime, now: datetime, *, current: bool) -> None:
        """A refresh of a replication ended well, which began at `as_of`. `current`: it was one of
        the present declaration."""
        self.last, self.as_of, self.took = now, as_of, max(timedelta(0), now - as_of)
        self.redefined = self.redefined and not current
        self.failures = self._tries = 0
        self.failed_at = self.again_at = None
        self.error = ""

    def note_failure(self, error: Exception, now: datetime) -> bool:
        """A refresh raised an error; its table is unchanged.

        Returns:
            Whether it counts as a failure: not while it is tried again at once.
        """
        self.error = (str(error).splitlines() or [type(error).__name__])[0]
        if (may_pass(error) or isinstance(error, _AWAY)) and self._tries < _TRIES:
            self.again_at = now + timedelta(seconds=2**self._tries)
            self._tries += 1
            return False
        self.failures, self.failed_at = self.failures + 1, now
        self.again_at, self._tries = None, 0
        return True


class Reports:
    """Receives what a worker does, and reports nothing: the logs of the tables have every refresh.
    In subclasses, no call waits, and none raises."""

    late = ""
    """Why reports do not arrive; empty if they do."""

    def report_refresh(self, refresh: Refresh, until: Mapping[str, datetime]) -> None:
        """A table was refreshed, with its sources read until these times."""

    def report_replication(self, node: str, refresh: ReplicationRefresh, began: datetime) -> None:
        """A replication was refreshed, which began then."""

    def report_fresh(self, name: str) -> None:
        """A table was found to reflect its sources, or a replication its publisher."""

    def report_failure(self, name: str, error: Exception) -> None:
        """A refresh of a table raised an error."""

    def close(self, seconds: float) -> None:
        """Deliver what is left, for at most this time."""


@dataclass(frozen=True)
class Workload:
    """Stream tables and replications, the lake that holds them, and what was known before."""

    nodes: Nodes
    lake: Callable[[], Lake]
    """Opens the lake with its Spark."""
    logs: Lake
    """The same lake, for reading logs."""
    past: Callable[[], Mapping[str, RefreshMemory]]
    """Reads what is known elsewhere of past refreshes, when the worker begins."""
    reports: Reports = field(default_factory=Reports)
    backoff: Backoff = field(default_factory=Backoff)
    name: str = "streamtables"
    """The name of the resource; of workers with one name below a root, only one refreshes."""
    blocked: Callable[[], dict[str, dict[str, str]]] = dict
    """The sources that a table must not read now, since a blocking check refuses their rows."""
    registered: bool = False
    """Whether the lake stores the declarations of the replications: a refresh uses these then."""
