"""`Worker`: the loop that looks at logs, decides, starts refreshes, and takes their results.

`run_task` is one refresh, of a stream table or of a replication. `WorkerGroup` is the workers of
one process, one for each resource of stream tables.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from dagster_streamtables.errors import InvalidDefinition, SuspendedTable
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.replication_errors import in_a_line
from dagster_streamtables.replication.lifecycle.replication_report import ReplicationRefresh
from dagster_streamtables.runtime.model.refresh_report import Refresh
from dagster_streamtables.runtime.observe.lease import BEATS, Heartbeat, Heartbeats, WorkerLease
from dagster_streamtables.scheduling import dueness
from dagster_streamtables.setting import Range, normalize_fields
from dagster_streamtables.worker.backlog import Backlog, Task
from dagster_streamtables.worker.decisions import Decisions
from dagster_streamtables.worker.reload import Reload
from dagster_streamtables.worker.warm_up import warm
from dagster_streamtables.worker.worker_log import WorkerLog
from dagster_streamtables.worker.workload import RefreshMemory, Workload

_WAIT = 10.0
"""Seconds for another process that refreshes the same replication."""
_AFTER_TROUBLE = 1.0
_LEFT_OVER = 30.0
"""Seconds for which reports of replaced definitions are still delivered."""


@dataclass(frozen=True)
class TaskResult:
    """The result of one task."""

    task: Task
    definition: str | None
    """The definition that it refreshed."""
    timed: bool
    """Whether its query uses the current time."""
    until: dict[str, datetime]
    """Until when it read the sources that it shares with other tables."""
    came: Refresh | ReplicationRefresh | Exception
    began: datetime


def run_task(task: Task, driven: Workload) -> TaskResult:
    """Refresh the table or the replication of a task. Raises nothing."""
    began, until = datetime.now(UTC), _until(task, driven)
    examined = driven.nodes.tables.get(task.name)
    try:
        came = _refresh(task, driven, until)
    except Exception as error:
        came = error
    timed = examined is not None and examined.is_time_dependent
    return TaskResult(task, driven.nodes.definition(task.name), timed, until, came, began)


def _refresh(
    task: Task, driven: Workload, until: dict[str, datetime]
) -> Refresh | ReplicationRefresh:
    lake = driven.lake()
    node = driven.nodes.replications.get(task.name)
    if node is None:
        return lake.refresh(driven.nodes.tables[task.name].table, until=until or None)
    from dagster_streamtables.replication.lifecycle.replication_manager import Replications

    known = node.replication.name if driven.registered else node.replication
    return Replications(lake).refresh(known, wait=_WAIT, strict=False).require_some()


def _until(task: Task, driven: Workload) -> dict[str, datetime]:
    """Until when its refresh reads the sources that it shares with other tables: the time of the
    decision or, if a replication of the same decision wrote them, the end of that refresh."""
    examined = driven.nodes.tables.get(task.name)
    shared = [] if examined is None else [s for s in examined.sources if s in driven.nodes.shared]
    return {each: task.ended.get(driven.nodes.writers.get(each, ""), task.began) for each in shared}


@dataclass(frozen=True)
class WorkerSettings:
    """How a worker looks, works and reports."""

    max_concurrent: Annotated[int, Range(1)] = 4
    """How many tables are refreshed at the same time, on one Spark."""
    poll: Annotated[timedelta, Range(0, above=True)] = timedelta(seconds=0.05)
    """The shortest time between two looks at the logs. On an object store, where each log takes a
    request, it is a second at least."""
    heartbeat: Annotated[timedelta, Range(0, above=True)] = timedelta(seconds=5)
    """The time between two heartbeats. After three that are missed, the sensor takes over."""
    grace: Annotated[timedelta, Range(0)] = timedelta(seconds=30)
    """How long a stopped worker waits for the refreshes that run; their commits are then left
    undone."""
    stuck_after: Annotated[timedelta, Range(0, above=True)] = timedelta(hours=1)
    """A table whose refresh lasts longer is left to the sensor."""

    def __post_init__(self) -> None:
        normalize_fields(self)


class Worker:
    """Refreshes what is due until it is stopped. One thread decides; others only refresh."""

    def __init__(
        self,
        driven: Workload,
        settings: WorkerSettings | None = None,
        *,
        reload: Reload | None = None,
    ) -> None:
        """`reload` loads new definitions; without it, these stay."""
        self.driven, self.settings = driven, settings or WorkerSettings()
        self.backlog = Backlog()
        self.memory: dict[str, RefreshMemory] = {
            name: RefreshMemory() for name in driven.nodes.names
        }
        self.lines = WorkerLog()
        self._reload = reload
        lake = driven.logs
        beats = Heartbeats(lake.root, lake.storage_options, driven.name)
        me = Heartbeat.of_this_process(self.settings.heartbeat.total_seconds())
        self.lease = WorkerLease(beats, me)
        self._pool = ThreadPoolExecutor(self.settings.max_concurrent, thread_name_prefix="refresh")
        self._ended: deque[TaskResult] = deque()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._decisions = Decisions(lake, self._wake.set)
        self._held = self._applied = False
        self._fine_at = time.monotonic()

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
        """Return after a time, or as soon as a refresh ends."""
        self._wake.wait(seconds)
        self._wake.clear()

    def turn(self) -> bool:
        """Take results, decide, and start what may start. Returns whether that succeeded."""
        now = datetime.now(UTC)
        try:
            self._take()
            self._renew()
            # Before the heartbeat: a worker that cannot decide misses its heartbeats, and the
            # sensor takes over.
            plan = self._decisions.make(self.driven, self.memory, self.backlog, now)
            self._applied = self._holds()
            if self._applied:
                self._apply(plan, now)
                self._start(now)
        except Exception as error:  # whatever it is, the next turn may succeed
            self.lines.trouble(error)
            return False
        self.lines.fine()
        self._fine_at = time.monotonic()
        return True

    @property
    def is_quiet(self) -> bool:
        """Whether the last turn found nothing to do and nothing runs."""
        waits = self._ended or self.backlog.tasks or self._decisions.asking
        return self._applied and not waits

    def health(self) -> dict[str, Any]:
        """Whether it can decide, and what it does; for other threads. A worker that stands by is
        healthy, and so is one whose tables fail: it tries them again."""
        age = time.monotonic() - self._fine_at
        limit = BEATS * self.settings.heartbeat.total_seconds()
        state = "stops" if self._stop.is_set() else "works" if self._held else "stands by"
        return {
            "healthy": age < limit,
            "state": state,
            "worker": self.lease.me.place,
            "trouble": self.lines.trouble_now,
            **self._about(),
        }

    def _holds(self) -> bool:
        """Write a heartbeat if it is time. Returns whether the decision may be carried out."""
        if self.lease.due:
            self.lease.renew(**self._heartbeat_fields())
        held, was = self.lease.is_active, self._held
        self._held = held
        if held and not was:
            past = self.driven.past()
            names = self.driven.nodes.names
            self.memory = {name: past.get(name) or RefreshMemory() for name in names}
            self.lines.works(self.driven)
            threading.Thread(target=warm, args=(self.driven, self._is_idle), daemon=True).start()
            self._wake.set()  # the decision was made without memory
        elif was and not held:
            self.backlog.clear()
        if not held:
            self.lines.stands_by(self.lease.holder, self.driven)
        return held and was

    def _renew(self) -> None:
        """Take new definitions, if there are any; what runs goes on."""
        new = self._reload.take() if self._reload is not None else None
        if new is None:
            return
        old, self.driven = self.driven, new
        if old.reports is not new.reports:
            threading.Thread(target=old.reports.close, args=(_LEFT_OVER,), daemon=True).start()
        for name in new.nodes.names:
            known = self.memory.setdefault(name, RefreshMemory())
            if new.nodes.definition(name) != old.nodes.definition(name):
                known.redefined, known.failures, known.again_at = True, 0, None
                self._decisions.redefine(name)
        self.memory = {name: self.memory[name] for name in new.nodes.names}
        self.backlog.keep(new.nodes.names)
        self.lines.log_reload(new)

    def _apply(self, plan: dueness.TickPlan, now: datetime) -> None:
        driven = self.driven
        if plan.refresh:
            late = {
                name: dueness.deadline(driven.nodes.schedules[name], self.memory[name].as_of)
                for name in plan.refresh
            }
            self.backlog.add(plan.refresh, driven.nodes.reads, late, now)
        for name in plan.fresh:
            self.memory[name].as_of = now
            driven.reports.report_fresh(name)
        # What waits for a refresh of this worker is in its turn soon.
        busy = {*self.backlog.tasks, *self._decisions.asking}
        for name in plan.held:  # each after those it reads
            busy |= {name} if busy.intersection(driven.nodes.reads[name]) else set()
        self.lines.holds({n: why for n, why in plan.held.items() if n not in busy})

    def _start(self, now: datetime) -> None:
        while len(self.backlog.running) < self.settings.max_concurrent:
            task = self.backlog.next(now)
            if task is None:
                return
            self._pool.submit(self._refresh, task, self.driven)

    def _refresh(self, task: Task, driven: Workload) -> None:
        """Runs in a thread of the pool."""
        self._ended.append(run_task(task, driven))
        self._wake.set()

    def _take(self) -> None:
        while self._ended:
            done = self._ended.popleft()
            name, came, now = done.task.name, done.came, datetime.now(UTC)
            known = self.memory.setdefault(name, RefreshMemory())
            self._decisions.forget(name)
            if isinstance(came, SuspendedTable):  # meanwhile; the next decision holds it
                self.backlog.fail(name)
                continue
            if isinstance(came, Exception):
                if known.note_failure(came, now):
                    self.driven.reports.report_failure(name, came)
                self.lines.log_failure(done.task, came, known, self.backlog.fail(name))
                continue
            self.backlog.finish(name, now)
            if isinstance(came, Refresh):
                as_of = min([came.started or done.began, *done.until.values()])
                known.note_refresh(came, as_of, now, timed=done.timed)
            else:
                current = self.driven.nodes.definition(name) == done.definition
                known.note_replication(done.began, now, current=current)
                known.error = "; ".join(map(in_a_line, came.stopped.values()))
            self.lines.log_refresh(came, done.task, now)
            if isinstance(came, Refresh):
                self.driven.reports.report_refresh(came, done.until)
            else:
                self.driven.reports.report_replication(name, came, done.began)

    def _is_idle(self) -> bool:
        """Whether nothing is to be refreshed now; for other threads."""
        return not self.backlog.tasks and not self._stop.is_set()

    def _pause(self) -> float:
        """Seconds until the next look, if no refresh ends before."""
        beat = self.settings.heartbeat.total_seconds() / 2
        if not self._held:
            return beat
        return min(self._decisions.pause(self.settings.poll.total_seconds()), beat)

    def _heartbeat_fields(self) -> dict[str, Any]:
        now, stuck_after = datetime.now(UTC), self.settings.stuck_after
        stuck = {
            task.name
            for task in self.backlog.running
            if task.running is not None and now - task.running > stuck_after
        }
        return {
            "tables": tuple(name for name in self.driven.nodes.names if name not in stuck),
            "definitions": self.driven.nodes.fingerprint,
            "about": self._about(),
        }

    def _about(self) -> dict[str, Any]:
        return {
            **self.lines.numbers(self.backlog, self.driven, self.memory),
            "not_loaded": self._reload.error if self._reload is not None else "",
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
            self.lease.end(**self._heartbeat_fields())
        except Exception as error:
            self.lines.trouble(error)
        if self.backlog.running:
            logger.warning("stopped with unfinished refreshes: their commits are left undone")
        return not self.backlog.running


class WorkerGroup:
    """Runs workers at the same time, until they are stopped together."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        """Raises `InvalidDefinition` if two of them have one name below one root."""
        self.workers = list(workers)
        places = Counter((each.driven.logs.root, each.driven.name) for each in self.workers)
        for (root, name), count in places.items():
            if count > 1:
                raise InvalidDefinition(
                    f'{count} code locations have the resource "{name}" below one root',
                    where=root,
                    why="of two workers with one name below a root, one stands by",
                    fix="give each call of build_definitions another name",
                )

    def stop(self) -> None:
        for each in self.workers:
            each.stop()

    def run(self) -> bool:
        """Work until stopped, or until one of them ends. Returns whether every refresh had ended by
        then."""
        if len(self.workers) == 1:
            return self.workers[0].run()
        whole: dict[int, bool] = {}

        def run(number: int, worker: Worker) -> None:
            try:
                whole[number] = worker.run()
            finally:
                self.stop()

        threads = [
            threading.Thread(target=run, args=each, name=f"worker {each[1].driven.name}")
            for each in enumerate(self.workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(whole) == len(self.workers) and all(whole.values())

    def health(self) -> dict[str, Any]:
        """The health of the only worker, or of all."""
        if len(self.workers) == 1:
            return self.workers[0].health()
        found = [
            {"name": each.driven.name, "root": each.driven.logs.root, **each.health()}
            for each in self.workers
        ]
        return {"healthy": all(each["healthy"] for each in found), "workers": found}
