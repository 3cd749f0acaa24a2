"""The newest commits of many tables, and the states of stream tables, for frequent requests.

A sensor asks every few seconds about hundreds of tables, of which few changed. So each log folder
is listed once, and afterwards only the end of the log is checked: is the newest known commit still
the same, and is there a next one? Only a commit that is new is read. No snapshot of a table is
built or kept.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from dagster_streamtables.runtime.catalogs.external_catalogs import ExternalCatalogs
from dagster_streamtables.runtime.delta.actions import (
    actions_of,
    by_kind,
    data_changes,
    info_in,
    user_metadata,
)
from dagster_streamtables.runtime.delta.delta_log import Head, log_at
from dagster_streamtables.runtime.delta.log_folder import LocalLog, Mark, RemoteLog, log_at_place
from dagster_streamtables.runtime.delta.table_locations import commit_file, is_remote
from dagster_streamtables.runtime.delta.table_schema import digest
from dagster_streamtables.runtime.model.refresh_work import HeadWithState
from dagster_streamtables.runtime.model.table_state import StreamTableState

_SURE = 60.0
"""Seconds between two looks whether a log in an object store without a new commit has still its
newest one: a table is rarely dropped, and a refresh asks anyway."""
_AT_ONCE = 16
"""Number of logs in an object store that are read concurrently: each takes a round trip."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class _End:
    version: int
    identity: Mark | str | None
    """Of the newest commit: a table that was dropped and recreated has another."""


_Newest = tuple[Head, StreamTableState | None]
"""The newest commit of a log and, if a refresh made it, its state."""


class LatestVersions:
    """The ends of many logs; each folder is listed once.

    Threads may share it: two that read the same log at the same time find the same.
    """

    def __init__(
        self,
        find: Callable[[str], str | None],
        storage_options: Mapping[str, str] | None = None,
        catalogs: ExternalCatalogs | None = None,
    ) -> None:
        """
        Args:
            find: The name of a table → its path or URI; None if it does not exist.
            storage_options: What delta-rs needs to reach an object store.
            catalogs: Those that `find` asks, which vend credentials for some tables.
        """
        self._find = find if catalogs else functools.cache(find)
        self._storage_options = dict(storage_options or {})
        self._catalogs = catalogs or ExternalCatalogs()
        self._folders: dict[str, tuple[Mapping[str, str], LocalLog | RemoteLog]] = {}
        """By location, each with the options by which it is read."""
        self._sure_until: dict[str, float] = {}
        self._seen: dict[str, _End] = {}
        self._newest: dict[str, tuple[_End, _Newest]] = {}
        self._find_state: dict[str, tuple[_End, HeadWithState | None]] = {}

    def head(self, name: str) -> Head | None:
        """The newest commit of a table; None if it does not exist."""
        location = self._find(name)
        if location is None:
            return None
        folder = self._folder(location)
        end = self._end(folder, location)
        return None if end is None else self._read(folder, location, end)[0]

    def heads(self, names: Iterable[str]) -> dict[str, Head | None]:
        """The newest commits of many tables, without those that cannot be read."""
        names = list(dict.fromkeys(names))
        remote = bool(self._catalogs) or any(is_remote(self._find(name) or "") for name in names)
        return dict(filter(None, answers(self._try_head, names, remote=remote)))

    def is_unknown(self, name: str) -> bool:
        """Whether a table without a head may exist: see `ExternalCatalogs.is_unknown`."""
        return self._catalogs.is_unknown(name)

    def state(self, name: str) -> StreamTableState | None:
        """The newest state of a stream table; None if it was never refreshed."""
        stored = self.head_with_state(name)
        return None if stored is None else stored.state

    def head_with_state(self, name: str, *, seen: bool = False) -> HeadWithState | None:
        """A stream table with its newest state, or if `seen`, as of the last look at its log; None
        if it was never refreshed."""
        location = self._find(name)
        if location is None:
            return None
        folder = self._folder(location)
        end = (self._seen.get(location) if seen else None) or self._end(folder, location)
        if end is None:
            return None
        before, stored = self._find_state.get(location, (None, None))
        if before != end:
            goes_on = before is not None and self._goes_on(folder, before)
            known = (before.version, stored) if before is not None and goes_on else (-1, None)
            newest = self._read(folder, location, end)
            self._find_state[location] = end, _find_state(folder, location, newest, *known)
        return self._find_state[location][1]

    def _try_head(self, name: str) -> tuple[str, Head | None] | None:
        with suppress(Exception):  # the table's own status or refresh reports the error
            return name, self.head(name)
        return None

    def _read(self, folder: LocalLog | RemoteLog, location: str, end: _End) -> _Newest:
        before, newest = self._newest.get(location, (None, None))
        if newest is None or before != end or end.identity is None:
            newest = _newest(folder, location, end.version, self._options(location))
            self._newest[location] = end, newest
        return newest

    def _end(self, folder: LocalLog | RemoteLog, location: str) -> _End | None:
        end = self._seen.pop(location, None)
        now = time.monotonic()
        sure = isinstance(folder, RemoteLog) and now < self._sure_until.get(location, 0.0)
        if end is None or not sure or folder.has(end.version + 1):
            end = self._follow(folder, end)
            self._sure_until[location] = now + _SURE
        if end is not None:
            self._seen[location] = end
        return end

    def _follow(self, folder: LocalLog | RemoteLog, end: _End | None) -> _End | None:
        """The end of a log now, from its last known one."""
        if end is None or not self._goes_on(folder, end):
            version = folder.newest()
            if version is None:
                return None
            end = _End(version, folder.identity(version))
        newest = end.version
        while folder.has(newest + 1):
            newest += 1
        return end if newest == end.version else _End(newest, folder.identity(newest))

    @staticmethod
    def _goes_on(folder: LocalLog | RemoteLog, end: _End) -> bool:
        return end.identity is not None and folder.identity(end.version) == end.identity

    def _folder(self, location: str) -> LocalLog | RemoteLog:
        options = self._options(location)
        known, folder = self._folders.get(location, (None, None))
        if folder is None or known != options:
            folder = log_at_place(location, options)
            self._folders[location] = options, folder
        return folder

    def _options(self, location: str) -> Mapping[str, str]:
        return self._catalogs.storage_options(location, self._storage_options) or {}


def answers(
    question: Callable[[str], _Answer], names: Iterable[str], *, remote: bool
) -> list[_Answer]:
    """The answers for some names: concurrently if each takes a round trip."""
    if not remote:
        return [question(name) for name in names]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="heads") as pool:
        return list(pool.map(question, names))


def _newest(
    folder: LocalLog | RemoteLog, location: str, version: int, options: Mapping[str, str]
) -> _Newest:
    content = folder.read(version)
    if content is not None:
        return Head(version, digest(content)), _state(content)
    log = log_at(location, version, options or None)  # a checkpoint is left of it
    return Head(version, log.commit if log is not None else ""), None


def _find_state(
    folder: LocalLog | RemoteLog,
    location: str,
    newest: _Newest,
    known: int,
    before: HeadWithState | None,
) -> HeadWithState | None:
    """A stream table by the commits after `known`, where it was `before`; None without a state."""
    (head, last), disturbed = newest, False
    for version in range(head.version, known, -1):
        state = last if version == head.version else None
        content = b"" if state is not None else folder.read(version)
        if content is None:
            return None
        state = state or _state(content)
        if state is not None:
            base = version - 1 if state.base is None else state.base
            between = range(base + 1, version)  # foreign appends while the refresh computed
            disturbed |= any(_changes_rows(folder.read(v), location, v) for v in between)
            return HeadWithState(head, state, version, disturbed)
        disturbed |= _changes_rows(content, location, version)
    if before is None:
        return None
    return HeadWithState(head, before.state, before.committed, before.disturbed or disturbed)


def _state(content: bytes) -> StreamTableState | None:
    return StreamTableState.from_json(user_metadata(info_in(content)))


def _changes_rows(content: bytes | None, location: str, version: int) -> bool:
    """Whether a commit adds or removes rows; also if it is missing."""
    if content is None:
        return True
    kinds = by_kind(actions_of(content, f"{location}/{commit_file(version)}"))
    return any(data_changes([*kinds.get("add", ()), *kinds.get("remove", ())]))
