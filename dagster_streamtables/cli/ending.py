"""`GracefulExit`: a command that runs until it is interrupted, and leaves nothing torn."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalInterrupt(BaseException):
    """SIGINT or SIGTERM came. No `Exception`, since reading would be tried again."""


class GracefulExit:
    """Turns signals into `SignalInterrupt`, at once while the command reads or waits.

    What must not be torn is done in `whole`: a first signal waits until that is over; a second one
    does not, since the reader of the output may have stopped reading.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._asked = 0

    def __enter__(self) -> GracefulExit:
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():  # else signals go elsewhere
            self._before = {each: signal.signal(each, self._on_signal) for each in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Not interrupted by one signal: if it came, `SignalInterrupt` is raised at the end."""
        with self.hold_signals():
            yield
        self.check()

    @contextmanager
    def hold_signals(self) -> Iterator[None]:
        """The same, without raising at the end."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def check(self) -> None:
        """
        Raises:
            Interrupted: A signal came, and nothing is under way that must not be torn.
        """
        if self._asked and not self._depth:
            raise SignalInterrupt

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._asked += 1
        if not self._depth or self._asked > 1:
            raise SignalInterrupt
