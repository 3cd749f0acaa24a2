"""The logs of many tables, by location."""

from __future__ import annotations

import time
from collections.abc import Mapping

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from dagster_streamtables.runtime.delta.delta_log import TableLog, log_at
from dagster_streamtables.runtime.delta.log_folder import LocalLog, Mark
from dagster_streamtables.runtime.delta.log_paths import commit_file
from dagster_streamtables.runtime.delta.names import is_remote
from dagster_streamtables.runtime.errors.tables import empty
from dagster_streamtables.runtime.errors.translate import log_explained


class Logs:
    """The logs of many tables, each cached as long as its version is the newest.

    Threads may share it: the logs that it returns never change.
    """

    def __init__(self, storage_options: Mapping[str, str] | None = None) -> None:
        self.storage_options = storage_options
        self._kept: dict[str, tuple[TableLog, Mark | None]] = {}

    def newest(self, location: str) -> TableLog | None:
        """The table at its newest version; None if there is none at that location."""
        kept = self._still_newest(location)
        if kept is not None:
            return kept
        options = dict(self.storage_options or {}) or None
        with log_explained(location):
            try:
                table = DeltaTable(location, storage_options=options)
            except TableNotFoundError:
                return None
        log = TableLog(location, table, self.storage_options)
        mark = _mark(location, log.version)
        if mark is not None and not mark.size:
            raise empty(f"{location}/{commit_file(log.version)}")
        self._kept[location] = log, mark
        return log

    def at(self, location: str, version: int) -> TableLog | None:
        """The table at a version; None if its log no longer goes back so far."""
        return log_at(location, version, self.storage_options)

    def until(self, log: TableLog, moment: float, floor: int) -> TableLog:
        """The table as of a time in seconds since 1970, but not before the version `floor`.

        A commit is as old as its writer says or its file, whichever is older: the clock of a writer
        may be ahead. One that is in the future by both was there nevertheless when it was read.
        """
        version, now = log.version, time.time()
        while version > floor and moment < log.written_at(version) <= now:
            version -= 1
        return log if version == log.version else log.at(version) or log

    def forget(self, location: str) -> None:
        self._kept.pop(location, None)

    def _still_newest(self, location: str) -> TableLog | None:
        """The cached table if its version is still the newest, and unchanged.

        The location may have another table by now, or a restored copy of this one: the file of the
        cached version must be the same file.
        """
        log, mark = self._kept.get(location, (None, None))
        if log is None or mark is None or mark != _mark(location, log.version):
            return None
        return log if _mark(location, log.version + 1) is None else None


def _mark(location: str, version: int) -> Mark | None:
    """The mark of a commit; None if it was deleted, or if each request is a round trip."""
    return None if is_remote(location) else LocalLog(location).mark(version)
