"""`TableHandles`: handles of delta-rs for one table in an object store.

Opening a table reads all commits since its last checkpoint, each twice; a handle of an earlier
version reads only those since then. delta-rs moves a handle, so each log has one of its own, which
comes back once nothing refers to the log.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

Log = TypeVar("Log")
_UNUSED = 2
"""The number of handles that are kept: one for the next log, and one for a writer."""


class TableHandles(Generic[Log]):
    """Threads may share it."""

    def __init__(self) -> None:
        # `put` may run at any moment, in a finalizer, also during another call of the same thread.
        self._unused: SimpleQueue[tuple[DeltaTable, str]] = SimpleQueue()
        self._logs: deque[tuple[int, Log]] = deque(maxlen=2)
        self._successor: tuple[object, Log] | None = None

    def add(self, log: Log, table: DeltaTable, commit: str, after: object = None) -> None:
        """Keep a log, the newest one so far; of older ones, the last until a handle is taken.

        `after` identifies the version before it, if a writer of this process made the log.
        """
        # Not by a bound method: it would keep this object, and with it the log, for ever.
        weakref.finalize(log, self._unused.put, (table, commit)).atexit = False
        self._logs.append((table.version(), log))
        self._successor = None if after is None else (after, log)

    def successor_of(self, version: object) -> Log | None:
        """The newest log, if a writer of this process made it after a version."""
        successor = self._successor
        return successor[1] if successor is not None and successor[0] == version else None

    def log_at(self, version: int) -> Log | None:
        """A log that is open; None if that of the version is not."""
        return dict(self._logs.copy()).get(version)

    def give_back(self, table: DeltaTable, commit: str) -> None:
        """Nobody else may use it any more. `commit` is the digest of its version's commit."""
        self._unused.put((table, commit))

    def take(self, most: int, commit_at: Callable[[int], str | None]) -> DeltaTable | None:
        """A handle for the caller alone, of a version up to `most`; None if none is left.

        Its commit is the one that `commit_at` tells: after a table was restored from a copy, a
        handle may have the history that was lost, and delta-rs would follow it without an error.
        """
        while len(self._logs) > 1:
            with suppress(IndexError):  # another thread took it
                self._logs.popleft()  # whose handle has less to read than older ones
        found: list[tuple[DeltaTable, str]] = []
        with suppress(Empty):
            while True:
                found.append(self._unused.get_nowait())
        fit = [(table.version(), number) for number, (table, _) in enumerate(found)]
        fit = sorted(pair for pair in fit if pair[0] <= most)
        # By number: handles of one version are equal.
        chosen = fit[-1][1] if fit else None
        others = [each for number, each in enumerate(found) if number != chosen]
        for each in others[-_UNUSED + 1 :]:
            self._unused.put(each)
        if chosen is None:
            return None
        table, commit = found[chosen]
        return table if commit_at(table.version()) == commit else None


def follow(table: DeltaTable) -> bool:
    """Move a handle to the newest version; whether the log has the commits that it needs."""
    try:
        table.update_incremental()
    except (DeltaError, OSError):
        return False
    return True
