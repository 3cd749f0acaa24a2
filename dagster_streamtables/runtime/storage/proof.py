"""`prove`: whether a commit was made is what the log says, whatever the writer says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

_Commit = TypeVar("_Commit")


def prove(write: Callable[[], object], find: Callable[[], _Commit | None]) -> _Commit | None:
    """Write, and find the commit in the log.

    An error does not disprove it: a connection may end or a checkpoint fail after the commit, and a
    writer without an answer from a store retries and meets its own commit. Success does not prove
    it: Spark skips a commit whose transaction number is taken. And the newest commit may be a later
    one, by another process.

    Args:
        write: Makes the commit.
        find: Finds it in the log; None if it is not there.

    Returns:
        The commit; None if another one came first, and nothing was written.

    Raises:
        Exception: What `write` raised, unless the commit was made.
    """
    try:
        write()
    except Exception:
        with suppress(Exception):  # report the first error
            found = find()
            if found is not None:
                return found
        raise
    return find()
