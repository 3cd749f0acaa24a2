"""`Decisions`: what is due now, decided as by the sensor at a tick, but many times a second.

A publisher may take a second to answer, or hang. So `Publishers` asks each in a thread whether its
replication has something to do. `Suspensions` are read once a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from dagster_streamtables.declare.analysis import TableAnalysis
from dagster_streamtables.declare.schedule import OnChange
from dagster_streamtables.runtime.delta.table_locations import is_remote
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.scheduling import dueness
from dagster_streamtables.scheduling.dueness import Backoff, RefreshState
from dagster_streamtables.scheduling.other_definitions import OtherDefinitions
from dagster_streamtables.scheduling.refresh_states import (
    PATIENCE,
    PublisherAnswer,
    RefreshProgress,
    Versions,
    look,
    refresh_states,
    replication_state,
    suspension_reasons,
    waits,
)
from dagster_streamtables.worker.backlog import Backlog
from dagster_streamtables.worker.workload import RefreshMemory, Workload

if TYPE_CHECKING:
    from dagster_streamtables.declare.nodes import ReplicationNode


_EVERY = 0.5
"""Seconds between two questions, at least: an answer takes a connection to a server."""
_PUBLISHER_SHARE = 0.1
"""The part of the time that a publisher may be busy with answers."""
ASKS = "asks its publisher"


@dataclass(frozen=True)
class _Question:
    """A question, and its answer, if it has come."""

    at: datetime
    began: float
    ended: float = 0.0
    answer: PublisherAnswer | None = None

    @property
    def is_late(self) -> bool:
        return self.answer is None and time.monotonic() - self.began > PATIENCE

    @property
    def can_repeat(self) -> bool:
        pause = max(_EVERY, (self.ended - self.began) / _PUBLISHER_SHARE)
        return self.answer is not None and time.monotonic() - self.ended > pause


class Publishers:
    """The newest answers. Used by one thread."""

    def __init__(self, lake: Lake, wake: Callable[[], None]) -> None:
        """`wake` is called in other threads, when an answer arrives that changes something."""
        self._lake, self._wake = lake, wake
        self._asked: dict[str, _Question] = {}
        """The last question about each."""
        self._before: dict[str, PublisherAnswer] = {}
        """The answer to the question before, which holds until the next one comes."""
        self._lock = threading.Lock()
        self.asking: frozenset[str] = frozenset()
        """Those that had not answered when `situations` was called last."""

    def situations(
        self,
        replications: Mapping[str, ReplicationNode],
        known: Mapping[str, RefreshProgress],
        as_of: Mapping[str, datetime | None],
        now: datetime,
        backoff: Backoff,
    ) -> dict[str, RefreshState]:
        """The state of each due replication, by its name in the graph; one whose publisher has not
        answered yet counts as busy. `as_of` has the times until which each is known to equal its
        publisher."""
        found: dict[str, RefreshState] = {}
        for name, node in replications.items():
            if waits(known[name], now, backoff):
                found[name] = replication_state(known[name], PublisherAnswer())
                continue
            answer = self._answer(node, as_of[name], now)
            told = known[name] if answer else replace(known[name], run=ASKS)
            found[name] = replication_state(told, answer or PublisherAnswer())
        self.asking = frozenset(name for name, state in found.items() if state.run == ASKS)
        return found

    def forget(self, node: str) -> None:
        """A refresh has ended: the answers to earlier questions are no longer valid."""
        with self._lock:
            self._asked.pop(node, None)
            self._before.pop(node, None)

    def _answer(
        self, node: ReplicationNode, as_of: datetime | None, now: datetime
    ) -> PublisherAnswer | None:
        """The answer that is valid now; None if it has not come yet."""
        with self._lock:
            asked, before = self._asked.get(node.name), self._before.get(node.name)
        if asked is None or (asked.can_repeat and not (asked.answer or PublisherAnswer()).moved):
            asked = self._ask(node.name, node.replication.name, now)
        if asked.is_late:  # its refresh reports why
            return PublisherAnswer()
        if asked.answer is None:
            return before if isinstance(node.schedule, OnChange) else None
        due = dueness.due_at(node.schedule, as_of) if node.schedule is not None else now
        timely = isinstance(node.schedule, OnChange) or due <= asked.at <= now
        return asked.answer if timely or asked.answer.moved else None

    def _ask(self, node: str, name: str, now: datetime) -> _Question:
        from dagster_streamtables.replication.lifecycle.replication_manager import Replications

        asked = _Question(now, time.monotonic())
        with self._lock:
            last = self._asked.get(node)
            if last is not None and last.answer is not None:
                self._before[node] = last.answer
            self._asked[node] = asked

        def ask() -> None:
            answer = look(Replications(self._lake), name)
            with self._lock:
                if self._asked.get(node) is not asked:  # forgotten meanwhile
                    return
                self._asked[node] = replace(asked, ended=time.monotonic(), answer=answer)
                news = answer != self._before.get(node)
            if news:
                self._wake()

        threading.Thread(target=ask, name=f"ask {name}", daemon=True).start()
        return asked


_KNOWN_FOR = 1.0
"""Seconds for which an answer is used again. Each refresh reads it again before it begins."""


class Suspensions:
    """The answers of `suspension_reasons`, each read once a second."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._known: dict[str, tuple[float, str]] = {}

    def of(self, tables: Mapping[str, TableAnalysis]) -> dict[str, str]:
        """Why each table may not be refreshed; empty if it may."""
        now = time.monotonic()
        old = [t for n, t in tables.items() if now - self._known.get(n, (-9.0, ""))[0] > _KNOWN_FOR]
        for name, why in suspension_reasons(old, self._lake).items():
            self._known[name] = now, why
        return {name: self._known[name][1] for name in tables}

    def forget(self, name: str) -> None:
        """Its next answer is read again."""
        self._known.pop(name, None)


_REMOTE_POLL = 1.0
_IDLE = 0.25
"""The longest time between two looks at logs on a file system while nothing happens."""
_QUIET_AFTER = 10.0
_ASKED_EVERY = 1.0
"""Seconds between two questions to Dagster."""
_SHARE = 0.1
"""The part of a core that looking at logs may take."""


class Decisions:
    """Used by one thread."""

    def __init__(self, logs: Lake, wake: Callable[[], None]) -> None:
        """`wake` is called when there is something new to decide about."""
        self._heads = logs.latest_versions()
        self._suspensions = Suspensions(logs)
        self._remote = is_remote(logs.root)
        self._publishers = Publishers(logs, wake)
        self._others = OtherDefinitions()
        self._refused: tuple[float, dict[str, dict[str, str]]] = -_ASKED_EVERY, {}
        self._moved_at = time.monotonic()
        self._took = 0.0

    @property
    def asking(self) -> frozenset[str]:
        """Replications whose publishers had not answered at the last decision."""
        return self._publishers.asking

    def forget(self, name: str) -> None:
        """A refresh has ended: what was read before may no longer be true."""
        self._publishers.forget(name)
        self._suspensions.forget(name)

    def redefine(self, name: str) -> None:
        """A table has another definition from now on."""
        self._others.forget(name)

    def make(
        self, driven: Workload, memory: Mapping[str, RefreshMemory], backlog: Backlog, now: datetime
    ) -> dueness.TickPlan:
        """What is due, and what to do with it."""
        began, nodes = time.thread_time(), driven.nodes
        for name, known in memory.items():
            known.set_back(now)
            known.run = "this worker" if name in backlog else ""
        last = {name: memory[name].as_of for name in nodes.names}
        early = {n for n in backlog.behind(nodes.readers) if memory[n].is_recent(now)}
        found = dueness.due(nodes.schedules, nodes.reads, last, now)
        due = [name for name in found if name not in early]
        past = {name: memory[name] for name in due}
        replications = {n: nodes.replications[n] for n in due if n in nodes.replications}
        tables = {n: nodes.tables[n] for n in due if n in nodes.tables}
        suspended, versions = self._suspensions.of(tables), Versions(self._heads)
        states = self._publishers.situations(replications, past, last, now, driven.backoff)
        if time.monotonic() >= self._refused[0] + _ASKED_EVERY:
            blocked = driven.blocked()
            self._refused = time.monotonic(), blocked
        others, refused = self._others, self._refused[1]
        states |= refresh_states(tables, past, versions, suspended, others, now, refused)
        plan = dueness.decide(states, nodes.reads, now, driven.backoff, nodes.writers)
        for name in plan.refresh:
            if states[name].redefined:
                self._others.ask(name, versions.head_with_state(name), now)
        # Not the time that passed: where Spark uses all cores, that is many times as long.
        self._took = time.thread_time() - began
        if plan.refresh:
            self._moved_at = time.monotonic()
        return plan

    def pause(self, poll: float) -> float:
        """Seconds until the next decision; `poll` is the shortest time between two."""
        poll = max(poll, self._took / _SHARE)
        if self._remote:
            return max(poll, _REMOTE_POLL)
        quiet = time.monotonic() > self._moved_at + _QUIET_AFTER
        return max(poll, _IDLE) if quiet else poll
