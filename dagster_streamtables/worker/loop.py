"""`Worker`: the loop that looks at logs, decides, starts refreshes, and takes what came of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.automation import dueness
from dagster_streamtables.orchestration.automation.situation import Versions, situations
from dagster_streamtables.orchestration.declare.analyze import Examined
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.model.report import Refresh
from dagster_streamtables.runtime.observe.lease import Beats, Heartbeat, Lease
from dagster_streamtables.runtime.observe.log_heads import Heads
from dagster_streamtables.worker.backlog import Backlog, Task
from dagster_streamtables.worker.driven import Driven
from dagster_streamtables.worker.lines import Lines
from dagster_streamtables.worker.memory import Memory
from dagster_streamtables.worker.reload import Reload
from dagster_streamtables.worker.settings import WorkerSettings
from dagster_streamtables.worker.suspensions import Suspensions

_REMOTE_POLL = 1.0
_IDLE = 0.25
"""The longest time between two looks at logs on a file system while nothing happens."""
_QUIET_AFTER = 10.0
_AFTER_TROUBLE = 1.0
_LEFT_OVER = 30.0
"""Seconds for which reports of replaced definitions are still delivered."""
_SHARE = 0.1
"""The part of a core that looking at logs may take."""


class Worker:
    """Refreshes what is due until it is stopped. One thread decides; others only refresh."""

    def __init__(
        self,
        driven: Driven,
        settings: WorkerSettings | None = None,
        *,
        reload: Reload | None = None,
    ) -> None:
        """
        Args:
            driven: What it drives.
            settings: How.
            reload: Brings new definitions; without it, these stay.
        """
        self.driven, self.settings = driven, settings or WorkerSettings()
        self.backlog = Backlog()
        self.memory: dict[str, Memory] = {name: Memory() for name in driven.tables}
        self.lines = Lines()
        self._reload = reload
        lake = driven.logs
        self._heads = Heads(lake.location, lake.storage_options)
        self._suspensions = Suspensions(lake)
        beats = Beats(lake.root, lake.storage_options, driven.name)
        me = Heartbeat.of_this_process(self.settings.heartbeat.total_seconds())
        self.lease = Lease(beats, me)
        self._pool = ThreadPoolExecutor(self.settings.max_concurrent, thread_name_prefix="refresh")
        self._ended: deque[tuple[Task, Examined, Refresh | Exception]] = deque()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._held = self._applied = False
        self._moved_at = time.monotonic()
        self._looked_for = 0.0

    def stop(self) -> None:
        """Begin no more refreshes, and return from `run`. Safe in a signal handler."""
        self._stop.set()
        self._wake.set()

    def run(self) -> bool:
        """Work until stopped. Returns whether every refresh had ended by then."""
        try:
            while not self._stop.is_set():
                self.wait(self._pause() if self.turn() else _AFTER_TROUBLE)
        finally:
            whole = self.finish()
        return whole

    def wait(self, seconds: float) -> None:
        """Return after so long, or as soon as a refresh ends."""
        self._wake.wait(seconds)
        self._wake.clear()

    def turn(self) -> bool:
        """Take what has come, decide, and start what may start. Returns whether that succeeded."""
        now = datetime.now(UTC)
        try:
            self._take()
            self._renew()
            # Before the heartbeat: a worker that cannot decide misses its heartbeats, and the
            # sensor takes over.
            plan = self._decide(now)
            self._applied = self._holds()
            if self._applied:
                self._apply(plan, now)
                self._start(now)
        except Exception as error:  # whatever it is, the next turn may succeed
            self.lines.trouble(error)
            return False
        self.lines.fine()
        return True

    @property
    def settled(self) -> bool:
        """Whether the last turn found nothing to do and nothing runs."""
        return self._applied and not self._ended and not self.backlog.tasks

    def _holds(self) -> bool:
        """Write a heartbeat if it is time. Returns whether the decision may be carried out."""
        held, was = self._beats(), self._held
        self._held = held
        if held and not was:
            self.memory = self._remembered()
            self.lines.works(self.driven)
            self._pool.submit(_warm, self.driven)
            self._wake.set()  # the decision was made without memory
        elif was and not held:
            self.backlog.clear()
        if not held:
            self.lines.stands_by(self.lease.holder, self.driven)
        return held and was

    def _beats(self) -> bool:
        if self.lease.due:
            self.lease.turn(**self._said())
        return self.lease.held

    def _remembered(self) -> dict[str, Memory]:
        past = self.driven.past()
        return {name: past.get(name) or Memory() for name in self.driven.tables}

    def _renew(self) -> None:
        """Take new definitions, if there are any; what runs goes on."""
        new = self._reload.take() if self._reload is not None else None
        if new is None:
            return
        old, self.driven = self.driven, new
        if old.reports is not new.reports:
            threading.Thread(target=old.reports.close, args=(_LEFT_OVER,), daemon=True).start()
        for name, examined in new.tables.items():
            known = self.memory.setdefault(name, Memory())
            before = old.tables.get(name)
            if before is None or before.declared != examined.declared:
                known.redefined, known.failures, known.again_at = True, 0, None
        self.memory = {name: self.memory[name] for name in new.tables}
        self.backlog.keep(new.tables)
        self.lines.reloaded(new)

    def _decide(self, now: datetime) -> dueness.TickPlan:
        """What is due, as the sensor decides it at a tick."""
        began, driven = time.monotonic(), self.driven
        last = {name: self.memory[name].as_of for name in driven.tables}
        names = dueness.due(driven.schedules, driven.reads, last, now)
        early = {n for n in self.backlog.behind(driven.readers) if self.memory[n].is_recent(now)}
        due = {name: driven.tables[name] for name in names if name not in early}
        known = {name: self.memory[name].known(name in self.backlog) for name in due}
        suspended = self._suspensions.of(due)
        states = situations(due, known, Versions(self._heads), suspended, now)
        plan = dueness.decide(states, driven.reads, now, driven.backoff)
        self._looked_for = time.monotonic() - began
        return plan

    def _apply(self, plan: dueness.TickPlan, now: datetime) -> None:
        driven = self.driven
        if plan.refresh:
            self._moved_at = time.monotonic()
            late = {
                name: dueness.deadline(driven.schedules[name], self.memory[name].as_of)
                for name in plan.refresh
            }
            self.backlog.add(plan.refresh, driven.reads, late, now)
        for name in plan.fresh:
            self.memory[name].as_of = now
            driven.reports.looked(name)
        # What waits for a refresh of this worker is in its turn soon.
        waits = {n for n in plan.held if any(each in self.backlog for each in driven.reads[n])}
        busy = waits | self.backlog.tasks.keys()
        self.lines.holds({n: why for n, why in plan.held.items() if n not in busy})

    def _start(self, now: datetime) -> None:
        while len(self.backlog.running) < self.settings.max_concurrent:
            task = self.backlog.next(now)
            if task is None:
                return
            self._pool.submit(self._refresh, task, self.driven)

    def _refresh(self, task: Task, driven: Driven) -> None:
        """Runs in a thread of the pool."""
        examined = driven.tables[task.name]
        came: Refresh | Exception
        try:
            came = driven.lake().refresh(examined.table, until=_until(task, driven) or None)
        except Exception as error:
            came = error
        self._ended.append((task, examined, came))
        self._wake.set()

    def _take(self) -> None:
        """What came of the refreshes that ended."""
        while self._ended:
            task, examined, came = self._ended.popleft()
            now, known = datetime.now(UTC), self.memory.setdefault(task.name, Memory())
            until = _until(task, self.driven)
            if isinstance(came, Exception):
                known.failed(came, now)
                self.driven.reports.failed(task.name, came)
                self.lines.failed(task, came, known, self.backlog.failed(task.name))
                continue
            present = self.driven.tables.get(task.name)
            current = present is not None and present.declared == examined.declared
            as_of = min([came.started or task.running or now, *until.values()])
            known.refreshed(came, as_of, now, current=current, timed=examined.timed)
            self.backlog.done(task.name)
            self.lines.refreshed(came, task, now)
            self.driven.reports.refreshed(came, until)

    def _pause(self) -> float:
        """Seconds until the next look, if no refresh ends before."""
        beat = self.settings.heartbeat.total_seconds() / 2
        if not self._held:
            return beat
        poll = max(self.settings.poll.total_seconds(), self._looked_for / _SHARE)
        if is_remote(self.driven.logs.root):
            poll = max(poll, _REMOTE_POLL)
        elif time.monotonic() > self._moved_at + _QUIET_AFTER:
            poll = max(poll, _IDLE)
        return min(poll, beat)

    def _said(self) -> dict[str, Any]:
        """What the next heartbeat says."""
        now, stuck_after = datetime.now(UTC), self.settings.stuck_after
        stuck = {
            task.name
            for task in self.backlog.running
            if task.running is not None and now - task.running > stuck_after
        }
        return {
            "tables": tuple(name for name in self.driven.tables if name not in stuck),
            "definitions": self.driven.fingerprint,
            "about": {
                **self.lines.numbers(self.backlog, self.driven, self.memory),
                "not_loaded": self._reload.error if self._reload is not None else "",
            },
        }

    def finish(self) -> bool:
        """End what runs, report what is left, and make room for another worker."""
        self.backlog.clear()
        end = time.monotonic() + self.settings.grace.total_seconds()
        self.lines.stops(self.backlog)
        while self.backlog.running and (left := end - time.monotonic()) > 0:
            self.wait(min(left, 1.0))
            self._take()
            self.backlog.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.driven.reports.close(max(5.0, end - time.monotonic()))
        try:
            self.lease.end(**self._said())
        except Exception as error:
            self.lines.trouble(error)
        if self.backlog.running:
            logger.warning("stopped with unfinished refreshes: their commits are left undone")
        return not self.backlog.running


def _warm(driven: Driven) -> None:
    """Start Spark beside the first decisions. Runs in a thread of the pool."""
    for name, examined in [*driven.tables.items()][:1]:
        with suppress(Exception):  # the first refresh reports it
            driven.lake().access.session(name, examined.table.session_timezone)


def _until(task: Task, driven: Driven) -> dict[str, datetime]:
    """Until when its refresh reads the sources that it shares with other tables."""
    sources = driven.reads.get(task.name, ())
    return {source: task.began for source in sources if source in driven.shared}
