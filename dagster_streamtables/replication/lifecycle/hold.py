"""`Hold`: the right of one process to work at a replication, and to store what comes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lifecycle.errors import ReplicationInUse
from dagster_streamtables.replication.lifecycle.state import State, Store
from dagster_streamtables.runtime.observe.lease import LENGTH, Lease, renewing

_PAUSE = 0.1
"""Seconds between two looks at whether the other has finished."""


@dataclass
class Hold:
    """The lease of a replication, which is a part of its state."""

    store: Store
    name: str
    lease: Lease
    state: State
    last: Callable[[State], State] = lambda state: state
    """A change that is stored when the lease is released."""

    def save(self, change: Callable[[State], State]) -> State:
        """Store a change, unless another process has taken over.

        Raises:
            ReplicationInUse: Another process has.
        """

        def changed(state: State) -> State:
            if not self._is_ours(state):
                raise _taken_over(self.name, state.lease)
            after = change(state)
            return after if after == state else replace(after, lease=self.lease.renewed())

        self.state = self.store.change(self.name, changed)
        return self.state

    def renew(self) -> None:
        self.store.change(
            self.name,
            lambda state: (
                replace(state, lease=self.lease.renewed()) if self._is_ours(state) else state
            ),
        )

    def release(self) -> None:
        def released(state: State | None) -> State | None:
            if state is None or not self._is_ours(state):
                return state
            return replace(self.last(state), lease=None)

        # A full disk must not hide an error; the lease ends by itself.
        with suppress(StreamTablesError, OSError):
            self.store.commit(self.name, released)  # type: ignore[type-var]

    def _is_ours(self, state: State) -> bool:
        return state.lease is not None and state.lease.id == self.lease.id


@contextmanager
def hold(store: Store, name: str, *, wait: float = 0.0) -> Iterator[Hold]:
    """Be the only process that works at a replication.

    Args:
        store: Has it.
        name: The replication.
        wait: Seconds for which to wait for another process.

    Raises:
        MissingReplication: There is none of that name.
        ReplicationInUse: Another process works at it for longer.
    """
    ours = _take(store, name, time.monotonic() + wait)
    try:
        with renewing(ours.renew):
            yield ours
    finally:
        ours.release()


def _take(store: Store, name: str, deadline: float) -> Hold:
    lease = Lease.begin(LENGTH)

    def taken(state: State) -> State:
        other = state.lease
        if other is not None and other.runs():
            raise ReplicationInUse(
                f'another process refreshes replication "{name}"',
                why=f"{other} does, until {other.until.isoformat(timespec='seconds')} if it does "
                "not go on",
                fix="nothing, if it is to be refreshed only: the other does the same; else wait",
            )
        return replace(state, lease=lease.renewed())

    while True:
        try:
            return Hold(store, name, lease, store.change(name, taken))
        except ReplicationInUse:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE)


def _taken_over(name: str, by: Lease | None) -> ReplicationInUse:
    return ReplicationInUse(
        f'another process has taken replication "{name}" over',
        why=f"{by} works at it now" if by else "its lease ended",
        fix="nothing: what was applied here is not applied again",
    )
