"""`Document`: a JSON document that many processes change at once, by compare-and-swap.

Every change commits the whole value; if another process commits first, the change is computed again
from the newer value. So no change is lost, and no lock can remain after a crash.

A document is a `Ledger`: a Delta log without rows, each of whose commits stores one JSON value, on
this machine or in an object store. A commit succeeds only if its version does not exist yet, as
Delta demands of every store. Old commits are deleted at checkpoints. A log is never deleted, so no
writer can meet another log of the same version numbers: deletion commits the value None.
"""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import Field, PrimitiveType

from dagster_streamtables.errors import ConflictingCommit, DamagedTable, InvalidDefinition
from dagster_streamtables.runtime.delta.actions import info_in, informing
from dagster_streamtables.runtime.delta.log_folder import LocalLog, Mark, RemoteLog, log_at_place
from dagster_streamtables.runtime.delta.table_locations import folders_in
from dagster_streamtables.runtime.errors.error_translation import translate_log_errors
from dagster_streamtables.runtime.errors.table_errors import unreadable_log
from dagster_streamtables.runtime.storage.conditional_puts import require_conditional_puts

_SCHEMA = Schema([Field("value", PrimitiveType("string"))])
_VALUE, _WRITER = "streamtablesValue", "streamtablesWriter"
KEPT = "interval 1 day"


class OvertakenAppend(Exception):
    """Another writer committed the version first; nothing was written."""


_Stored = TypeVar("_Stored")


@dataclass(frozen=True)
class LedgerEntry(Generic[_Stored]):
    """One commit of a ledger, with its JSON value; or of a document, with None if it deletes it."""

    version: int
    value: _Stored


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
            storage_options: The options of delta-rs for the store.
            kept: The minimum time for which a replaced commit is kept, as an interval of Delta; it
                takes effect when the ledger is created.
            checkpoint_every: Number of commits after which old ones are deleted; likewise.
            short: Whether one page of a store's listing usually has all commits. A listing then
                finds the newest one with one request instead of four.
        """
        self.location = location
        self._options = dict(storage_options or {}) or None
        self._every, self._short = checkpoint_every, short
        self._properties = {
            "delta.logRetentionDuration": kept,
            "delta.checkpointInterval": str(checkpoint_every),
        }
        self._log = log_at_place(location, storage_options)
        self._newest: tuple[LedgerEntry[Any], Mark] | None = None

    def read(self) -> LedgerEntry[Any] | None:
        """The newest entry; None if missing.

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

    def at(self, version: int) -> LedgerEntry[Any] | None:
        """One entry; None if its commit was deleted or does not exist yet. Raises as `read`."""
        with translate_log_errors(self.location):
            content = self._log.read(version) if version >= 0 else None
        return None if content is None else self._entry(version, content)

    def append(self, value: Any, after: int | None) -> int:
        """Commit a JSON value as the version that follows `after`, and return that version.

        `after` is the newest known version; None creates the ledger.

        Raises:
            OvertakenAppend: That version exists already, or another writer also requests it.
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
                # 409: a concurrent request for the same version, which may also have failed.
                raise OvertakenAppend(f"{self.location}: version {version} is asked for") from error
            # After a lost answer, delta-rs tries again and meets our own commit.
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
        # delta-rs would list the log after each commit to find out if a checkpoint is due.
        due = (after + 2) % self._every == 0
        if not due and self._put(after, told):
            return
        table = DeltaTable(self.location, version=after, storage_options=self._options)
        hooks = PostCommitHookProperties(create_checkpoint=due, cleanup_expired_logs=due)
        table.create_write_transaction(
            [], "append", _SCHEMA, commit_properties=properties, post_commithook_properties=hooks
        )

    def _put(self, after: int, told: Mapping[str, str]) -> bool:
        """Whether the commit was written as a file: delta-rs would list the log, which is long."""
        if not isinstance(self._log, LocalLog) or self._log.mark(after) is None:
            return False
        info = {"timestamp": time.time_ns() // 10**6, "operation": "WRITE", **told}
        return self._log.put(after + 1, informing(info))

    def _newest_by_listing(self, log: RemoteLog) -> tuple[LedgerEntry[Any], Mark] | None:
        found = log.list_newest()
        if found is None:
            return None
        known, (version, mark) = self._newest, found
        if known is not None and (known[0].version, known[1]) == found:
            return known
        entry = self.at(version)
        # Between the two requests, later commits may have deleted it.
        return self._newest_by_following() if entry is None else (entry, mark)

    def _newest_by_following(self) -> tuple[LedgerEntry[Any], Mark] | None:
        """The newest entry, found by reading on from the last known one."""
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

    def _entry_with_mark(self, version: int) -> tuple[LedgerEntry[Any], Mark] | None:
        # The mark first: if the file is replaced in between, the next read finds another mark.
        mark = self._log.mark(version)
        entry = None if mark is None else self.at(version)
        return None if mark is None or entry is None else (entry, mark)

    def _entry(self, version: int, content: bytes) -> LedgerEntry[Any]:
        try:
            return LedgerEntry(version, json.loads(info_in(content)[_VALUE]))
        except KeyError as error:
            why = f"version {version} is a foreign commit, without a value"
            raise unreadable_log(self.location, why) from error
        except ValueError as error:
            raise unreadable_log(self.location, f"version {version} is no JSON: {error}") from error


FOLDER = "_streamtables"
"""The folder below the root with the documents and everything else that is not a table."""
SHORT = "interval 10 minutes"
"""The time to keep replaced commits of a document that changes often."""
_ATTEMPTS = 60
_PAUSE, _LONGEST_PAUSE = 0.001, 1.0


class Value(Protocol):
    """The content of a document; a change to an equal value is not written.

    `from_json` raises ValueError, TypeError, KeyError or AttributeError for a foreign value.
    """

    def to_json(self) -> Any: ...

    @classmethod
    def from_json(cls, values: Any) -> Self: ...


def without_format(values: Mapping[str, Any], format: int) -> dict[str, Any]:
    """A stored value without its key ``format``; ValueError if that is another format."""
    known = dict(values)
    if known.pop("format", None) != format:
        raise ValueError(f"it is not in the format {format}")
    return known


_Value = TypeVar("_Value", bound=Value)
_Changed = TypeVar("_Changed", bound=Value | None)


class Document(Generic[_Value]):
    """One document. Threads and processes may share it."""

    def __init__(
        self,
        root: str,
        path: str,
        kind: type[_Value],
        storage_options: Mapping[str, str] | None = None,
        *,
        noun: str,
        kept: str = KEPT,
        checkpoint_every: int | None = None,
        earlier: Callable[[], _Value | None] = lambda: None,
    ) -> None:
        """
        Args:
            root: As for `Lake`.
            path: The folder of the ledger, below ``_streamtables``.
            kind: The class of the value.
            storage_options: As for `Ledger`; likewise `kept`.
            noun: The name of the document in error messages.
            checkpoint_every: As for `Ledger`; by default, the ledger is short.
            earlier: Returns the value of the document before its first commit.
        """
        self.location = f"{root.rstrip('/')}/{FOLDER}/{path}"
        self._root, self._options, self._kind, self._noun = root, storage_options, kind, noun
        self._earlier = earlier
        self._ledger = Ledger(
            self.location,
            storage_options,
            kept=kept,
            short=checkpoint_every is None,
            checkpoint_every=checkpoint_every or 20,
        )

    def read(self) -> _Value | None:
        """The value; None if missing.

        Raises:
            DamagedTable: It cannot be read; likewise `newest`, `at` and `change`.
        """
        return self._value(self._ledger.read())

    def newest(self) -> LedgerEntry[_Value | None] | None:
        """The newest commit; None if missing."""
        entry = self._ledger.read()
        return None if entry is None else LedgerEntry(entry.version, self._value(entry))

    def at(self, version: int) -> LedgerEntry[_Value | None] | None:
        """One commit; None if it was deleted or does not exist yet."""
        entry = self._ledger.at(version)
        return None if entry is None else LedgerEntry(entry.version, self._value(entry))

    def change(self, change: Callable[[_Value | None], _Changed]) -> _Changed:
        """Replace the value by a function of it, and return the new one; None is a missing value.

        `change` is called again each time that another process committed first.

        Raises:
            ConflictingCommit: Other processes committed first, at each attempt.
        """
        for entry in self._attempts():
            before = self._value(entry)
            after = change(before)
            value = None if after is None else after.to_json()
            if after == before or self._commit(value, entry):
                return after
        raise self._conflict()

    def delete(self, *, earlier: bool = False) -> bool:
        """Delete the value, even one that cannot be read, and return whether it existed.

        Without a ledger, it existed if `earlier` does.

        Raises:
            ConflictingCommit: Other processes committed first, at each attempt.
        """
        for entry in self._attempts():
            exists = earlier if entry is None else entry.value is not None
            if not exists or self._commit(None, entry):
                return exists
        raise self._conflict()

    def _value(self, entry: LedgerEntry[Any] | None) -> _Value | None:
        if entry is None:
            return self._earlier()
        if entry.value is None:  # it was deleted
            return None
        try:
            return self._kind.from_json(entry.value)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedTable(
                f"the {self._noun} cannot be read",
                where=self.location,
                why=f"its newest commit, {entry.version}, is none of this version: {error!r}",
                fix="upgrade this process if a newer one wrote it; else restore the folder, or "
                "delete it",
            ) from error

    def _attempts(self) -> Iterator[LedgerEntry[Any] | None]:
        """The newest entry, before each attempt; random, growing pauses separate the attempts."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0, min(_LONGEST_PAUSE, _PAUSE * 2**attempt)))
            yield self._ledger.read()

    def _commit(self, value: Any, before: LedgerEntry[Any] | None) -> bool:
        """Whether the value was committed; False if another process was first."""
        require_conditional_puts(self._root, self._options)
        try:
            self._ledger.append(value, None if before is None else before.version)
        except OvertakenAppend:
            return False
        return True

    def _conflict(self) -> ConflictingCommit:
        return ConflictingCommit(
            f"other processes keep changing the {self._noun}",
            where=self.location,
            why="each attempt found that another process had committed first",
            fix="try again; nothing of this attempt was written",
        )


_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


class Documents(Generic[_Value]):
    """The documents of one kind, by name. Threads and processes may share them.

    Methods raise as those of `Document`, and `InvalidDefinition` for an invalid name.
    """

    def __init__(
        self,
        root: str,
        folder: str,
        kind: type[_Value],
        storage_options: Mapping[str, str] | None = None,
        *,
        noun: str,
        kept: str = KEPT,
        name: re.Pattern[str] = _NAME,
        earlier: Callable[[str], _Value | None] = lambda name: None,
    ) -> None:
        """
        Args:
            root: As for `Document`; likewise `kind`, `storage_options`, `noun` and `kept`.
            folder: The folder of the ledgers, below ``_streamtables``.
            name: Matches the valid names.
            earlier: Returns the value of a document before its first commit, by name.
        """
        self._root, self._folder = root.rstrip("/"), folder
        self._kind, self._noun = kind, noun
        self._options = storage_options
        self._kept, self._name, self._earlier = kept, name, earlier
        self._documents: dict[str, Document[_Value]] = {}

    def names(self) -> list[str]:
        """The names of all documents, sorted, including deleted ones."""
        found = folders_in(self._root, f"{FOLDER}/{self._folder}", self._options)
        return sorted(filter(self._name.fullmatch, found))

    def find(self, name: str) -> _Value | None:
        """The value of a name; None if missing."""
        return self._document(name).read()

    def change(self, name: str, change: Callable[[_Value | None], _Changed]) -> _Changed:
        return self._document(name).change(change)

    def delete(self, name: str, *, earlier: bool = False) -> bool:
        return self._document(name).delete(earlier=earlier)

    def _document(self, name: str) -> Document[_Value]:
        if not self._name.fullmatch(name):
            raise InvalidDefinition(
                f'"{name}" is not a valid name of a {self._noun}',
                why="it is the name of a folder",
                fix="use up to 100 letters, digits, underscores and hyphens",
            )
        if name not in self._documents:
            self._documents[name] = Document(
                self._root,
                f"{self._folder}/{name}",
                self._kind,
                self._options,
                noun=f'{self._noun} "{name}"',
                kept=self._kept,
                earlier=lambda: self._earlier(name),
            )
        return self._documents[name]
