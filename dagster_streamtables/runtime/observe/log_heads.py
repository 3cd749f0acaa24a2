"""The newest versions of many tables, and the frontiers of stream tables, for frequent requests.

A sensor asks every few seconds about hundreds of tables, of which few changed. So each log folder
is listed once, and afterwards only the end of the log is checked: is the newest known commit still
the same file, and is there a next one? No snapshot of a table is built or kept.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from dagster_streamtables.runtime.delta.actions import info_in, user_metadata
from dagster_streamtables.runtime.delta.log_folder import LocalLog, Mark, RemoteLog, log_at_place
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.model.state import State

_AT_ONCE = 16
"""Number of logs in an object store that are read concurrently: each takes a round trip."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class _Head:
    """The last known end of a log."""

    version: int
    mark: Mark | None
    """The mark of the newest commit: a table that was dropped and recreated has another one."""


class Heads:
    """The ends of many logs; each folder is listed once.

    Threads may share it: two that read the same log at the same time find the same.
    """

    def __init__(
        self,
        location: Callable[[str], str],
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            location: Returns the path or URI of a table, by its name.
            storage_options: What delta-rs needs to reach an object store.
        """
        self._location = functools.cache(location)
        self._options = dict(storage_options or {})
        self._folders: dict[str, LocalLog | RemoteLog] = {}
        self._seen: dict[str, _Head] = {}
        self._states: dict[str, tuple[_Head, State | None]] = {}

    def version(self, name: str) -> int | None:
        """The newest version of a table; None if it does not exist."""
        head = self._head(self._folder(name), self._location(name))
        return None if head is None else head.version

    def versions(self, names: Iterable[str]) -> dict[str, int | None]:
        """The newest versions of many tables, without those that cannot be read."""
        names = list(dict.fromkeys(names))
        remote = any(is_remote(self._location(name)) for name in names)
        return dict(filter(None, answers(self._asked, names, remote=remote)))

    def frontier(self, name: str, *, seen: bool = False) -> Mapping[str, int] | None:
        """The version of each source that a stream table reflects; None if never refreshed."""
        state = self.state(name, seen=seen)
        return None if state is None else state.frontier

    def state(self, name: str, *, seen: bool = False) -> State | None:
        """The newest state of a stream table; None if never refreshed.

        Args:
            name: The table.
            seen: As of the last look at its log, if there was one.
        """
        location, folder = self._location(name), self._folder(name)
        head = (self._seen.get(location) if seen else None) or self._head(folder, location)
        if head is None:
            return None
        before, state = self._states.get(location, (None, None))
        if before != head:
            known = before.version if before is not None and self._goes_on(folder, before) else -1
            state = _state(folder, head.version, known) or (state if known >= 0 else None)
            self._states[location] = head, state
        return state

    def _asked(self, name: str) -> tuple[str, int | None] | None:
        with suppress(Exception):  # the table's own status or refresh reports the error
            return name, self.version(name)
        return None

    def _head(self, folder: LocalLog | RemoteLog, location: str) -> _Head | None:
        head = self._seen.pop(location, None)
        newest = head.version if head and self._goes_on(folder, head) else folder.newest()
        if newest is None:
            return None
        mark = head.mark if head is not None and newest == head.version else folder.mark(newest)
        for version in itertools.count(newest + 1):
            following = folder.mark(version)
            if following is None:
                break
            newest, mark = version, following
        self._seen[location] = found = _Head(newest, mark)
        return found

    @staticmethod
    def _goes_on(folder: LocalLog | RemoteLog, head: _Head) -> bool:
        return head.mark is not None and folder.mark(head.version) == head.mark

    def _folder(self, name: str) -> LocalLog | RemoteLog:
        location = self._location(name)
        if location not in self._folders:
            self._folders[location] = log_at_place(location, self._options)
        return self._folders[location]


def answers(
    question: Callable[[str], _Answer], names: Iterable[str], *, remote: bool
) -> list[_Answer]:
    """The answers for some names: concurrently if each takes a round trip."""
    if not remote:
        return [question(name) for name in names]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="heads") as pool:
        return list(pool.map(question, names))


def _state(folder: LocalLog | RemoteLog, newest: int, known: int) -> State | None:
    """The newest state in the commits after `known`; None if they have none."""
    for version in range(newest, known, -1):
        content = folder.read(version)
        if content is None:
            return None
        state = State.from_json(user_metadata(info_in(content)))
        if state is not None:
            return state
    return None
