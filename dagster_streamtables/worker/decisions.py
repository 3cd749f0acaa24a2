"""`Decisions`: what is due now, as the sensor decides it at a tick, many times a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime

from dagster_streamtables.declare.analyze import TableAnalysis
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.observe.log_heads import LatestVersions
from dagster_streamtables.scheduling import dueness
from dagster_streamtables.scheduling.other_definitions import OtherDefinitions
from dagster_streamtables.scheduling.situation import Versions, refresh_states, suspension_reasons
from dagster_streamtables.worker.backlog import Backlog
from dagster_streamtables.worker.driven import Workload
from dagster_streamtables.worker.memory import RefreshMemory
from dagster_streamtables.worker.publishers import Publishers

_KNOWN_FOR = 1.0
"""Seconds for which an answer is used again. A refresh asks by itself before it begins."""


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
        """
        Args:
            logs: The lake, for reading logs.
            wake: Called when there is something new to decide about.
        """
        self._heads = LatestVersions(logs.location, logs.storage_options)
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
        """A refresh has ended: what was found out before it may hold no more."""
        self._publishers.forget(name)
        self._suspensions.forget(name)

    def redefine(self, name: str) -> None:
        """A table has another definition from now on."""
        self._others.forget(name)

    def _read_blocks(self, driven: Workload) -> dict[str, dict[str, str]]:
        """What Dagster says of blocking checks; it is not asked at each look."""
        at, found = self._refused
        if time.monotonic() >= at + _ASKED_EVERY:
            found = driven.blocked()
            self._refused = time.monotonic(), found
        return found

    def make(
        self, driven: Workload, memory: Mapping[str, RefreshMemory], backlog: Backlog, now: datetime
    ) -> dueness.TickPlan:
        """What is due, and what to do with it."""
        began, nodes = time.thread_time(), driven.nodes
        for known in memory.values():
            known.set_back(now)
        last = {name: memory[name].as_of for name in nodes.names}
        early = {n for n in backlog.behind(nodes.readers) if memory[n].is_recent(now)}
        found = dueness.due(nodes.schedules, nodes.reads, last, now)
        due = [name for name in found if name not in early]
        past = {name: memory[name].decision_input(name in backlog) for name in due}
        replications = {n: nodes.replications[n] for n in due if n in nodes.replications}
        tables = {n: nodes.tables[n] for n in due if n in nodes.tables}
        suspended, versions = self._suspensions.of(tables), Versions(self._heads)
        states = {
            **self._publishers.situations(replications, past, last, now, driven.backoff),
            **refresh_states(
                tables, past, versions, suspended, self._others, now, self._read_blocks(driven)
            ),
        }
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
        """Seconds until the next one.

        Args:
            poll: The shortest time between two.
        """
        poll = max(poll, self._took / _SHARE)
        if self._remote:
            return max(poll, _REMOTE_POLL)
        quiet = time.monotonic() > self._moved_at + _QUIET_AFTER
        return max(poll, _IDLE) if quiet else poll
