"""`Logs`: the logs of many tables, each at its newest version."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from dagster_streamtables.runtime.catalogs.external_catalogs import ExternalCatalogs
from dagster_streamtables.runtime.delta.delta_log import TableLog, log_at
from dagster_streamtables.runtime.delta.log_folder import LocalLog, Mark
from dagster_streamtables.runtime.delta.table_handles import TableHandles
from dagster_streamtables.runtime.delta.table_locations import commit_file, is_remote
from dagster_streamtables.runtime.errors.error_translation import translate_log_errors
from dagster_streamtables.runtime.errors.table_errors import empty


class Logs:
    """The logs of many tables, each cached as long as its version is the newest.

    Threads may share it: the logs that it returns never change.
    """

    def __init__(
        self,
        storage_options: Mapping[str, str] | None = None,
        catalogs: ExternalCatalogs | None = None,
    ) -> None:
        """Args: catalogs: Vend credentials for some tables."""
        self.storage_options = storage_options
        self._catalogs = catalogs or ExternalCatalogs()
        self._kept: dict[str, tuple[TableLog, Mark | str | None]] = {}

    def newest(self, location: str) -> TableLog | None:
        """The table at its newest version; None if missing."""
        before = None
        with suppress(OSError, DeltaError):  # if the log cannot be read, opening it says why
            kept = self._kept_log(location)
            if kept is not None and kept.is_newest:
                return kept
            before = kept
        with translate_log_errors(location):
            log = self._open(location, before)
        if log is None:
            return None
        # In an object store it is the digest, which a refresh asks for, too.
        identity = log.commit if is_remote(location) else LocalLog(location).mark(log.version)
        if isinstance(identity, Mark) and not identity.size:
            raise empty(f"{location}/{commit_file(log.version)}")
        log.share()
        self._kept[location] = log, identity
        return log

    def _kept_log(self, location: str) -> TableLog | None:
        """The last known log of a table; None if it is not part of the table's history any more."""
        kept, identity = self._kept.get(location, (None, None))
        if kept is not None and kept.storage_options != self.options_at(location):
            return None  # the credentials were replaced
        successor = None if kept is None else kept.successor
        if successor is not None:
            kept, identity = successor, successor.commit
            self._kept[location] = kept, identity
        return kept if kept is not None and kept.still_has(identity) else None

    def _open(self, location: str, before: TableLog | None) -> TableLog | None:
        """The newest version of a table. In an object store it goes on from an earlier one."""
        options = self.options_at(location)
        table = None if before is None else before.move_handle()
        try:
            table = table or DeltaTable(location, storage_options=dict(options or {}) or None)
        except TableNotFoundError:
            return None
        if before is not None and is_remote(location) and table.metadata().id == before.id:
            return before.next_log(table)
        handles = TableHandles[TableLog]() if is_remote(location) else None
        name = self._catalogs.name_in_spark(location)
        return TableLog(location, table, options, name, _handles=handles)

    def options_at(self, location: str) -> Mapping[str, str] | None:
        """The options by which delta-rs reads a table."""
        return self._catalogs.storage_options(location, self.storage_options)

    def at(self, location: str, version: int) -> TableLog | None:
        """The table at a version; None if its log no longer has it."""
        name = self._catalogs.name_in_spark(location)
        return log_at(location, version, self.options_at(location), name)

    def until(self, log: TableLog, moment: float, floor: int) -> TableLog:
        """The table as of a time in seconds since 1970, but not before the version `floor`.

        The time of a commit is that of `written_at`, since the clock of a writer may be ahead. A
        commit in the future by both clocks counts as past.
        """
        version, now = log.version, time.time()
        while version > floor and moment < log.written_at(version) <= now:
            version -= 1
        return log if version == log.version else log.at(version) or log

    def forget(self, location: str) -> None:
        self._kept.pop(location, None)
