"""Processes that are named to others, on any machine: whether one still lives.

A number alone is not enough, as a process gets that of one that has ended: what was named is gone
if the process with its number has another birth.
"""

from __future__ import annotations

import os
import socket
import uuid
from functools import cache
from pathlib import Path

import psutil

from dagster_streamtables.runtime.spark.supervisor import birth


def machine() -> str:
    """This machine, or this container, as one word: where a process has its number."""
    return _machine(os.getpid())


@cache
def _machine(_process: int) -> str:
    return f"{socket.gethostname()}/{uuid.getnode():012x}/{_namespace()}"


def _namespace() -> str:
    """Containers that share the network of their host have its name, and their own numbers."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        return ""


def is_dead(pid: int, born: str) -> bool:
    """Whether a process of this machine is known to have ended."""
    try:
        return birth(pid) != born
    except psutil.Error:
        return False


def describe_processes(*pids: int) -> str:
    """This machine and some processes of it: ``machine pid@birth …``, of those that live."""
    marks = (f"{pid}@{born}" for pid in pids if (born := birth(pid)) is not None)
    return " ".join([machine(), *marks])


def are_dead(name: str) -> bool:
    """Whether all the named processes have ended; of another machine's, that is never known."""
    where, *marks = name.split() or [""]
    parts = [mark.partition("@") for mark in marks]
    return (
        where == machine()
        and bool(parts)
        and all(is_dead(int(pid), born) for pid, _, born in parts)
    )
