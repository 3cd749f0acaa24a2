"""Processes that are named to others, on any machine: whether one still lives.

A number alone is not enough, as a process gets that of one that has ended: what was named is gone
if the process with its number began at another time.
"""

from __future__ import annotations

import os
import socket
import uuid
from functools import cache

_SAME = 5.0
"""Seconds by which the system may tell the beginning of a process differently: clocks are set."""


def machine() -> str:
    """This machine, or this container, as one word."""
    return _machine(os.getpid())


@cache
def _machine(_process: int) -> str:
    return f"{socket.gethostname()}/{uuid.getnode():012x}"


def begun(pid: int) -> float | None:
    """When a process of this machine began, in seconds since 1970; None if none works any more.

    Raises:
        psutil.Error: The system does not tell.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def is_gone(pid: int, began: float) -> bool:
    """Whether a process of this machine is known to have ended."""
    import psutil

    try:
        found = begun(pid)
    except psutil.Error:
        return False
    return found is None or abs(found - began) > _SAME


def named(*pids: int) -> str:
    """This machine and some processes of it: ``machine pid@begun …``, of those that live."""
    marks = (f"{pid}@{began:.0f}" for pid in pids if (began := begun(pid)) is not None)
    return " ".join([machine(), *marks])


def are_gone(name: str) -> bool:
    """Whether all the named processes have ended; of another machine's, that is never known."""
    where, *marks = name.split() or [""]
    parts = [mark.partition("@") for mark in marks]
    return (
        where == machine()
        and bool(parts)
        and all(is_gone(int(pid), float(began)) for pid, _, began in parts)
    )
