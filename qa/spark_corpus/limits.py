"""A limit for the time of one query."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TooSlow(BaseException):
    """The time is over; no `except Exception` on the way takes it for another error."""


@contextmanager
def limited(session: SparkSession, seconds: float) -> Iterator[None]:
    """Raise `TooSlow` in the main thread after some seconds, and stop what Spark runs by then.

    Args:
        session: Its statements are interrupted.
        seconds: The limit.
    """

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except TooSlow:
        session.interruptAll()
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
