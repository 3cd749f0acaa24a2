"""`Ledger`: a Delta log without rows, each of whose commits stores one JSON value.

It stores what several processes change at once, on this machine or in an object store: a commit
succeeds only if its version does not exist yet, which is what Delta demands of a store. Old commits
are deleted at checkpoints. A log is never deleted, so no writer can meet another log of the
same version numbers: what is removed is a value too.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import Field, PrimitiveType

from dagster_streamtables.runtime.delta.actions import info_in, informing
from dagster_streamtables.runtime.delta.log_folder import LocalLog, Mark, RemoteLog, log_at_place
from dagster_streamtables.runtime.errors.tables import unreadable_log
from dagster_streamtables.runtime.errors.translate import translate_log_errors

_SCHEMA = Schema([Field("value", PrimitiveType("string"))])
_VALUE, _WRITER = "streamtablesValue", "streamtablesWriter"
KEPT = "interval 1 day"


class OvertakenAppend(Exception):
    """Another writer committed the version first; nothing was written."""


@dataclass(frozen=True)
class LedgerEntry:
    """One commit of a ledger."""

    version: int
    value: Any
    """A JSON value."""


class Ledger:
    """A sequence of JSON values, numbered from 0. Threads and processes may share it."""

    def __init__(
        self,
        location: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        kept: str = KEPT,
        checkpoint_every: int = 20,
        short: bool = False,
    ) -> None:
        """
        Args:
            location: A folder, or the URI of one in an object store.
            storage_options: What delta-rs needs to reach it.
            kept: How long a commit is kept at least, as an interval of Delta; the newest is always
                kept. It takes effect when the ledger is created.
            checkpoint_every: Number of commits after which old ones are deleted; likewise.
            short: Whether one page of an object store's listing has all commits, usually. Then it
                is listed to find the newest one: one request instead of four.
        """
        self.location = location
        self._options = dict(storage_options or {}) or None
        self._every, self._short = checkpoint_every, short
        self._properties = {
            "delta.logRetentionDuration": kept,
            "delta.checkpointInterval": str(checkpoint_every),
        }
        self._log = log_at_place(location, storage_options)
        self._newest: tuple[LedgerEntry, Mark] | None = None

    def read(self) -> LedgerEntry | None:
        """The newest entry; None if there is none.

        Raises:
            DamagedTable: The newest commit is not one of a ledger.
        """
        with translate_log_errors(self.location):
            if self._short and isinstance(self._log, RemoteLog):
                known = self._newest_by_listing(self._log)
            else:
                known = self._newest_by_following()
        self._newest = known
        return None if known is None else known[0]

    def at(self, version: int) -> LedgerEntry | None:
        """One entry; None if its commit was deleted, or does not exist yet.

        Raises:
            DamagedTable: The commit is not one of a ledger.
        """
        with translate_log_errors(self.location):
            content = self._log.read(version) if version >= 0 else None
        return None if content is None else self._entry(version, content)

    def append(self, value: Any, after: int | None) -> int:
        """Commit a value as the version that follows `after`, and return that version.

        Args:
            value: A JSON value.
            after: The newest version that the caller knows; None to create the ledger.

        Raises:
            OvertakenAppend: That version exists already, or another writer asks for it, too.
        """
        writer = uuid.uuid4().hex
        version = 0 if after is None else after + 1
        try:
            self._commit(after, {_VALUE: json.dumps(value), _WRITER: writer})
        except (DeltaError, OSError) as error:
            with translate_log_errors(self.location):
                found = self._log.read(version)
                if found is None and not isinstance(error, CommitFailedError):
                    raise
            if found is None:
                # 409: another request for the same version was running, and may have failed, too.
                raise OvertakenAppend(f"{self.location}: version {version} is asked for") from error
            # A store that answers late is asked again, and then reports our own commit.
            if writer.encode() not in found:
                raise OvertakenAppend(f"{self.location}: version {version} exists") from error
        return version

    def _commit(self, after: int | None, told: Mapping[str, str]) -> None:
        properties = CommitProperties(custom_metadata=dict(told), max_commit_retries=0)
        if after is None:
            DeltaTable.create(
                self.location,
                _SCHEMA,
                mode="error",
                configuration=self._properties,
                storage_options=self._options,
                commit_properties=properties,
            )
            return
        # delta-rs would list the log after each commit, to see whether a checkpoint is due.
        due = (after + 2) % self._every == 0
        if not due and self._put(after, told):
            return
        table = DeltaTable(self.location, version=after, storage_options=self._options)
        hooks = PostCommitHookProperties(create_checkpoint=due, cleanup_expired_logs=due)
        table.create_write_transaction(
            [], "append", _SCHEMA, commit_properties=properties, post_commithook_properties=hooks
        )

    def _put(self, after: int, told: Mapping[str, str]) -> bool:
        """Whether the commit was written as a file. delta-rs lists the log, which has an entry for
        each second of days."""
        if not isinstance(self._log, LocalLog) or self._log.mark(after) is None:
            return False
        info = {"timestamp": time.time_ns() // 10**6, "operation": "WRITE", **told}
        return self._log.put(after + 1, informing(info))

    def _newest_by_listing(self, log: RemoteLog) -> tuple[LedgerEntry, Mark] | None:
        """The newest entry, by a listing of the log."""
        found = log.list_newest()
        if found is None:
            return None
        known, (version, mark) = self._newest, found
        if known is not None and (known[0].version, known[1]) == found:
            return known
        entry = self.at(version)
        # Between the two requests, so many others may follow that it is deleted.
        return self._newest_by_following() if entry is None else (entry, mark)

    def _newest_by_following(self) -> tuple[LedgerEntry, Mark] | None:
        """The newest entry, by the entries that follow the last known one."""
        known = self._newest
        if known is None or self._log.mark(known[0].version) != known[1]:
            version = self._log.newest()
            known = None if version is None else self._entry_with_mark(version)
        while known is not None:
            following = self._entry_with_mark(known[0].version + 1)
            if following is None:
                break
            known = following
        return known

    def _entry_with_mark(self, version: int) -> tuple[LedgerEntry, Mark] | None:
        # The mark first: if the file is replaced in between, the next read finds another mark.
        mark = self._log.mark(version)
        entry = None if mark is None else self.at(version)
        return None if mark is None or entry is None else (entry, mark)

    def _entry(self, version: int, content: bytes) -> LedgerEntry:
        try:
            return LedgerEntry(version, json.loads(info_in(content)[_VALUE]))
        except KeyError as error:
            why = f"version {version} is a foreign commit, without a value"
            raise unreadable_log(self.location, why) from error
        except ValueError as error:
            raise unreadable_log(self.location, f"version {version} is no JSON: {error}") from error
