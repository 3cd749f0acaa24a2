"""`TableHandles`: handles of delta-rs for one table in an object store.

Opening a table reads all commits since its last checkpoint, each twice; a handle of an earlier
version reads only those since then. delta-rs moves a handle, so each log has one of its own, which
comes back once nothing refers to the log.
"""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

Log = TypeVar("Log")
_UNUSED = 2
"""The number of handles that are kept: one for the next log, and one for a writer."""


class TableHandles(Generic[Log]):
    """Threads may share it. All its handles are of one history: a table that was dropped and made
    again, or restored from a copy, has others."""

    def __init__(self) -> None:
        # `put` may run at any moment, in a finalizer, also during another call of the same thread.
        self._unused: SimpleQueue[DeltaTable] = SimpleQueue()
        self._logs: deque[tuple[int, Log]] = deque(maxlen=2)

    def add(self, log: Log, table: DeltaTable) -> None:
        """Keep a log, the newest one so far, until two others came after it."""
        weakref.finalize(log, self.give_back, table).atexit = False
        self._logs.append((table.version(), log))

    def log_at(self, version: int) -> Log | None:
        """A log that is open; None if that of the version is not."""
        return dict(self._logs.copy()).get(version)

    def take(self, version: int | None = None) -> DeltaTable | None:
        """A handle for the caller alone, at a version or at the newest one; None if none is left,
        or the log no longer has the commits that it needs."""
        found: list[DeltaTable] = []
        with suppress(Empty):
            while True:
                found.append(self._unused.get_nowait())
        if not found:
            return None
        # Not by `remove`: handles of one version are equal.
        *others, table = sorted(found, key=DeltaTable.version)
        for each in others[-_UNUSED + 1 :]:
            self._unused.put(each)
        if version is not None and table.version() == version:
            return table
        try:
            table.update_incremental()
        except (DeltaError, OSError):
            return None
        return table if version is None or table.version() == version else None

    def give_back(self, table: DeltaTable) -> None:
        """Nobody else may use it any more."""
        self._unused.put(table)
