"""`Closing`: whether a subscription was closed, to wait for where a signal may interrupt."""

from __future__ import annotations

import queue
from contextlib import suppress


class Closing:
    """A flag that any thread sets, and that one thread waits for.

    `threading.Event` is none that a signal may interrupt: its `wait` takes a lock back in Python,
    and an exception that the handler of a signal raises there leaves the lock untaken. The lock is
    given back all the same, so that "release unlocked lock" takes the place of the exception.
    The wait of a `SimpleQueue` is one call in C, which such an exception leaves as a whole.
    """

    def __init__(self) -> None:
        self._set = False
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._woken.put(None)

    def wait(self, seconds: float) -> None:
        """Return when it is set, or after so many seconds."""
        if not self._set:
            with suppress(queue.Empty):
                self._woken.get(timeout=seconds)
