"""`Turn`: one process works at a replication, wherever others run.

It is a commit of the replication's ledger, not a lock on one machine, and is renewed while work
goes on. The exactness of what is applied does not rest on it: it saves that two do the same work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lifecycle.errors import ReplicationInUse
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.replication.lifecycle.store import Store
from dagster_streamtables.replication.lifecycle.worker import LEASE, Worker

_PAUSE = 0.1
"""Seconds between two looks at whether the other has finished."""


@dataclass
class Turn:
    store: Store
    name: str
    worker: Worker
    state: State
    last: Callable[[State], State] = lambda state: state
    """A change that is stored along with the end of the turn."""

    def save(self, change: Callable[[State], State]) -> State:
        """Store a change, as long as nobody else has taken over.

        Raises:
            ReplicationInUse: Somebody has.
        """

        def changed(state: State) -> State:
            if state.worker is None or state.worker.id != self.worker.id:
                raise taken_over(self.name, state.worker)
            after = change(state)
            return after if after == state else replace(after, worker=self.worker.renewed())

        self.state = self.store.change(self.name, changed)
        return self.state

    def _renew(self) -> None:
        def renewed(state: State) -> State:
            mine = state.worker is not None and state.worker.id == self.worker.id
            return replace(state, worker=self.worker.renewed()) if mine else state

        # What is wrong is told when the work is saved.
        with suppress(StreamTablesError, OSError):
            self.store.change(self.name, renewed)


@contextmanager
def turn(store: Store, name: str, *, wait: float = 0.0) -> Iterator[Turn]:
    """Be the only one who works at a replication.

    Args:
        store: Has it.
        name: The replication.
        wait: Seconds for which to wait for another.

    Raises:
        MissingReplication: There is none of that name.
        ReplicationInUse: Another works at it, for longer.
    """
    mine = _take(store, name, time.monotonic() + wait)
    over = threading.Event()
    thread = threading.Thread(target=_renewing, args=(mine, over, LEASE / 3), daemon=True)
    thread.start()
    try:
        yield mine
    finally:
        over.set()
        thread.join()
        _release(mine)


def _take(store: Store, name: str, deadline: float) -> Turn:
    worker = Worker.here()

    def taken(state: State) -> State:
        other = state.worker
        if other is not None and other.works:
            raise ReplicationInUse(
                f'another process refreshes replication "{name}"',
                why=f"{other} does, until {other.until.isoformat(timespec='seconds')} if it does "
                "not go on",
                fix="nothing, if it is to be refreshed only: the other does the same; else wait",
            )
        return replace(state, worker=worker.renewed())

    while True:
        try:
            return Turn(store, name, worker, store.change(name, taken))
        except ReplicationInUse:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE)


def _renewing(mine: Turn, over: threading.Event, every: timedelta) -> None:
    while not over.wait(every.total_seconds()):
        mine._renew()


def _release(mine: Turn) -> None:
    def released(state: State | None) -> State | None:
        if state is None or state.worker is None or state.worker.id != mine.worker.id:
            return state
        return replace(mine.last(state), worker=None)

    # A full disk must not hide an error; the lease ends by itself.
    with suppress(StreamTablesError, OSError):
        mine.store.commit(mine.name, released)  # type: ignore[type-var]


def taken_over(name: str, by: Worker | None) -> ReplicationInUse:
    return ReplicationInUse(
        f'another process has taken replication "{name}" over',
        why=f"{by} works at it now" if by else "its turn ended",
        fix="nothing: what was applied here is not applied again",
    )
