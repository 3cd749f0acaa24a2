"""`Publishers`: whether replications have something to do, asked in threads of their own.

A publisher may take a second to answer, or hang, and the worker decides many times a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from dagster_streamtables.declare.schedule import OnChange
from dagster_streamtables.scheduling import dueness
from dagster_streamtables.scheduling.dueness import Backoff, RefreshState
from dagster_streamtables.scheduling.replication_situation import (
    PATIENCE,
    PublisherAnswer,
    look,
    replication_state,
    waits,
)
from dagster_streamtables.scheduling.situation import RefreshProgress

if TYPE_CHECKING:
    from dagster_streamtables.declare.replications import ReplicationNode
    from dagster_streamtables.runtime.lake import Lake

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
        """
        Args:
            lake: For reading what is known of replications.
            wake: Called in other threads when an answer has come that changes something.
        """
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
        """The situation of each replication; one that has not answered yet counts as busy.

        Args:
            replications: The replications that are due, by their names in the graph.
            known: What is remembered of each.
            as_of: Until when each is known to be like its publisher.
            now: The time of the decision.
            backoff: The delay before failed ones are tried again.
        """
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
        """A refresh has ended: what was asked before it says nothing any more."""
        with self._lock:
            self._asked.pop(node, None)
            self._before.pop(node, None)

    def _answer(
        self, node: ReplicationNode, as_of: datetime | None, now: datetime
    ) -> PublisherAnswer | None:
        """What holds now; None if that is yet to be answered."""
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
        from dagster_streamtables.replication.lifecycle.replications import Replications

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
