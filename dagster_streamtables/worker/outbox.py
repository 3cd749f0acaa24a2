"""`Outbox`: reports that its own thread delivers, at a bounded rate, until they arrive.

Several refreshes of one table, or of one replication, are merged into one `Summary`.
"""

from __future__ import annotations

import gc
import math
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from dagster_streamtables.errors import one_line
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.replication_report import (
    ReplicationRefresh,
    TableRefresh,
)
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.model.refresh_report import Action, FullReason, Refresh, Window
from dagster_streamtables.worker.workload import Reports

_VERSIONS = 200
_IDLE = (Action.NO_DATA, Action.SKIP)


_LONGEST = 30.0
_LAST_TRIES, _LAST_PAUSE = 3, 0.5
_SHARE, _SLOWEST = 0.2, 30.0
"""The part of a core that reports may take, and the interval to which they are slowed down for it
at most: Dagster shows a table as late a minute after its last report."""


class Receiver(Protocol):
    """Where reports go. Each call may wait, and raises if the report cannot be delivered now."""

    def record_refreshes(self, name: str, summary: Summary | ReplicationSummary) -> None: ...
    def mark_fresh(self, name: str) -> None: ...
    def record_failure(self, name: str, error: Exception) -> None: ...


def interval(every: float, cost: float, tables: int) -> float:
    """Seconds between two reports of a table: a multiple of `every`, the shortest time, that bounds
    the share of a core. `cost` is the processor time of one report, in seconds.

    >>> interval(10, 0.06, 20), interval(10, 0.06, 50), interval(10, 0.06, 1000)
    (10, 20, 30)
    """
    return every * max(1, math.ceil(min(cost * tables / _SHARE, _SLOWEST) / every))


class Outbox(Reports):
    """Per table one summary waits at most, however long the receiver is away."""

    def __init__(self, receiver: Receiver, order: Sequence[str], every: float) -> None:
        """Delivers the reports in this order of tables, each after those it reads, and at most one
        of each table in `every` seconds."""
        self._receiver, self._every = receiver, every
        self._order = {name: place for place, name in enumerate(order)}
        self._waiting: dict[str, Summary | ReplicationSummary] = {}
        self._looked: set[str] = set()
        self._failed: dict[str, Exception] = {}
        self._told: dict[str, float] = {}
        self._lock = threading.Lock()
        self._wake, self._closed = threading.Event(), threading.Event()
        self._tries, self._cost = 0, 0.0
        self._thread = threading.Thread(target=self._deliver, name="reports", daemon=True)
        self._thread.start()

    def report_refresh(self, refresh: Refresh, until: Mapping[str, datetime]) -> None:
        self._add(refresh.table, Summary.of(refresh, until))
        self._wake.set()

    def report_replication(self, node: str, refresh: ReplicationRefresh, began: datetime) -> None:
        self._add(node, ReplicationSummary.of(refresh, began))
        self._wake.set()

    def report_fresh(self, name: str) -> None:
        with self._lock:
            self._looked.add(name)

    def report_failure(self, name: str, error: Exception) -> None:
        with self._lock:
            self._failed[name] = error
        self._wake.set()

    def close(self, seconds: float) -> None:
        self._closed.set()
        self._wake.set()
        self._thread.join(seconds)
        with self._lock:
            left = sorted(self._waiting)
        if left:
            logger.warning("not reported, but in the logs of the tables: %s", ", ".join(left))

    def _add(
        self, name: str, summary: Summary | ReplicationSummary, *, before: bool = False
    ) -> None:
        with self._lock:
            other = self._waiting.get(name)
            first, second = (summary, other) if before else (other, summary)
            self._waiting[name] = _merge_summaries(first, second)

    def _deliver(self) -> None:
        while not self._closed.is_set() or (self._waiting and self._tries < _LAST_TRIES):
            if self._turn():
                self._tries, self.late = 0, ""
                self._wake.wait(self._pause())
            elif self._closed.is_set():
                time.sleep(_LAST_PAUSE)
            else:  # news must not wake it: who cannot be told is not asked at each refresh
                self._closed.wait(min(_LONGEST, 0.5 * 2**self._tries))
            self._wake.clear()
        # SQLite's connections can only be closed by the thread that opened them.
        gc.collect()

    def _turn(self) -> bool:
        """Send the next summary, and what else waits. Returns whether all of it arrived."""
        now = time.monotonic()
        if (taken := self._take_next(now)) is not None:
            name, summary = taken
            began = time.thread_time()
            try:
                self._receiver.record_refreshes(name, summary)
            except Exception as error:
                self._add(name, summary, before=True)
                return self._postpone(error)
            self._told[name] = now
            spent = time.thread_time() - began
            self._cost = 0.8 * self._cost + 0.2 * spent if self._cost else spent
        return self._rest(now)

    def _take_next(self, now: float) -> tuple[str, Summary | ReplicationSummary] | None:
        """The first summary whose turn it is; one at a time, so that an error leaves the others."""
        with self._lock:
            ready = [n for n in self._waiting if self._closed.is_set() or self._may(n, now)]
            name = min(ready, key=lambda name: self._order.get(name, 0), default=None)
            return None if name is None else (name, self._waiting.pop(name))

    def _rest(self, now: float) -> bool:
        with self._lock:
            failed, self._failed = self._failed, {}
            looked, self._looked = self._looked, set()
        try:
            for name, error in failed.items():
                self._receiver.record_failure(name, error)
            for name in looked:
                self._receiver.mark_fresh(name)
        except Exception as error:
            with self._lock:
                self._failed, self._looked = failed | self._failed, looked | self._looked
            return self._postpone(error)
        return True

    def _postpone(self, error: Exception) -> bool:
        said = f"{type(error).__name__}: {one_line(first_line(str(error)))}"
        if not self.late:
            logger.warning("Dagster cannot be told, so it is told later: %s", said)
        self._tries, self.late = self._tries + 1, said
        return False

    def _may(self, name: str, now: float) -> bool:
        """Whether its turn has come: all tables have theirs at the same times, so that what Dagster
        knows of a table and of those that it reads fits together."""
        told, every = self._told.get(name), self._every_now
        return told is None or now // every > told // every

    @property
    def _every_now(self) -> float:
        return interval(self._every, self._cost, len(self._told))

    def _pause(self) -> float:
        """Seconds until the next report may be made."""
        now, every = time.monotonic(), self._every_now
        with self._lock:
            ready = any(self._may(name, now) for name in self._waiting)
        return 0.0 if ready or self._closed.is_set() else every - now % every


@dataclass(frozen=True)
class Summary:
    """What happened to a table since the last report of it."""

    refresh: Refresh
    """The last refresh that did anything, with all windows joined and all rows added up."""
    until: Mapping[str, datetime]
    """Until when the last refresh read its sources."""
    count: int = 1
    """Number of refreshes."""
    rebuilt: str = ""
    """Why one of them rebuilt the table; empty if none did, or if it was the first of all."""

    @classmethod
    def of(cls, refresh: Refresh, until: Mapping[str, datetime]) -> Summary:
        anew = refresh.action is Action.REINITIALIZE and refresh.version != 0
        return cls(refresh, until, rebuilt=refresh.reason if anew else "")

    def then(self, later: Summary) -> Summary:
        """This, and what happened after it."""
        one, two = self.refresh, later.refresh
        if two.action is Action.SKIP and one.action is not Action.SKIP:
            return replace(self, count=self.count + later.count)
        told = one if two.action in _IDLE and one.action not in _IDLE else two
        whole = one.action is not Action.SKIP
        joined = replace(
            told,
            version=two.version,
            data_version=two.data_version,
            started=two.started,
            data_timestamp=two.data_timestamp or one.data_timestamp,
            row_count=two.row_count if two.row_count is not None else one.row_count,
            size_bytes=two.size_bytes if two.size_bytes is not None else one.size_bytes,
            files=two.files if two.files is not None else one.files,
            read=two.read or one.read,
            seen=two.seen or one.seen,
            windows={
                name: _merge_windows(one.windows.get(name) if whole else None, window)
                for name, window in two.windows.items()
            },
            inserted=one.inserted + two.inserted,
            deleted=one.deleted + two.deleted,
            fallback=two.fallback or one.fallback,
            full_reason=_full_reason(one, two),
        )
        rebuilt = later.rebuilt or self.rebuilt
        return Summary(joined, later.until, self.count + later.count, rebuilt)


def _full_reason(*refreshes: Refresh) -> FullReason | None:
    """The last one that nobody asked for; if there is none, the last one."""
    found = [each.full_reason for each in refreshes if each.full_reason is not None]
    unwanted = [each for each in found if not each.is_deliberate]
    return (unwanted or found or [None])[-1]


@dataclass(frozen=True)
class ReplicationSummary:
    """What happened to a replication since the last report of it."""

    refresh: ReplicationRefresh
    """The last refresh, with what those before it did to each table added."""
    began: datetime
    """When the last refresh began."""
    count: int = 1
    """Number of refreshes."""
    versions: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """By target, the newest Delta versions that they made."""

    @classmethod
    def of(cls, refresh: ReplicationRefresh, began: datetime) -> ReplicationSummary:
        made = {t: (d.version,) for t, d in refresh.tables.items() if d.version is not None}
        return cls(refresh, began, versions=made)

    def then(self, later: ReplicationSummary) -> ReplicationSummary:
        one, two = self.refresh.tables, later.refresh.tables
        tables = {name: _merge_tables(one.get(name), done) for name, done in two.items()}
        refresh = replace(later.refresh, tables=tables)
        versions = {
            name: (*self.versions.get(name, ()), *later.versions.get(name, ()))[-_VERSIONS:]
            for name in {*self.versions, *later.versions}
        }
        return ReplicationSummary(refresh, later.began, self.count + later.count, versions)


def _merge_windows(before: Window | None, after: Window) -> Window:
    if before is None:
        return after
    known = before.rows is not None and after.rows is not None
    rows = (before.rows or 0) + (after.rows or 0) if known else None
    return replace(after, before=before.before, rows=rows)


def _merge_tables(one: TableRefresh | None, two: TableRefresh) -> TableRefresh:
    if one is None:
        return two
    copies = [each for each in (one.copied, two.copied) if each is not None]
    return TableRefresh(
        two.name,
        sum(copies) if copies else None,
        one.inserted + two.inserted,
        one.updated + two.updated,
        one.deleted + two.deleted,
        dict(Counter(one.conflicts) + Counter(two.conflicts)),
        one.version if two.version is None else two.version,
        one.position if two.position is None else two.position,
    )


def _merge_summaries(
    one: Summary | ReplicationSummary | None, two: Summary | ReplicationSummary | None
) -> Summary | ReplicationSummary:
    """What happened in this order. After a change of definitions, a name may mean another thing."""
    if isinstance(one, Summary) and isinstance(two, Summary):
        return one.then(two)
    if isinstance(one, ReplicationSummary) and isinstance(two, ReplicationSummary):
        return one.then(two)
    found = two or one
    assert found is not None
    return found
