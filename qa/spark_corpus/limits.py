"""A limit for the time of one query."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession


class TooSlow(BaseException):
    """The time is over; no `except Exception` on the way takes it for another error."""


_HARD = 5
"""Times the limit after which Python itself is interrupted, wherever it is."""
_AGAIN = 2.0


@contextmanager
def limited(session: SparkSession, seconds: float) -> Iterator[None]:
    """Raise `TooSlow` in the main thread if it takes longer than some seconds.

    What Spark runs is stopped at the limit. An exception that is raised in the middle of a call
    could leave a lock of the client held for ever: it comes only after five times as long.
    """
    over, done = threading.Event(), threading.Event()

    def interrupt() -> None:
        wait = seconds
        while not done.wait(wait):
            over.set()
            with suppress(Exception):
                session.interruptAll()
            wait = _AGAIN

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _HARD * seconds)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        yield
    except Exception as error:
        if over.is_set():
            raise TooSlow from error
        raise
    finally:
        done.set()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if over.is_set():
        raise TooSlow
