"""`Documents`: named JSON documents below one root, which many processes change at once.

Each document is a `Ledger`, ``<root>/_streamtables/<folder>/<name>``. Every change is one commit of
the whole value, by compare-and-swap: if another process commits first, the change is computed again
from what it committed. So no change is lost, and no lock can remain after a crash.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

from dagster_streamtables.errors import ConflictingCommit, InvalidDefinition
from dagster_streamtables.runtime.delta.names import folders_in
from dagster_streamtables.runtime.errors.tables import damaged
from dagster_streamtables.runtime.storage.conditional_puts import require_conditional_puts
from dagster_streamtables.runtime.storage.ledger import KEPT, Entry, Ledger, OvertakenAppend

FOLDER = "_streamtables"
"""The folder below the root with the documents, and all else that is not a table."""
SHORT = "interval 10 minutes"
"""How long to keep the commits of a document that is changed often."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_ATTEMPTS = 60
_PAUSE, _LONGEST_PAUSE = 0.001, 1.0


class Document(Protocol):
    def to_json(self) -> Any:
        """A JSON value."""
        ...

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """
        Raises:
            ValueError: The value is not one of this class; likewise TypeError, KeyError.
        """
        ...


_Document = TypeVar("_Document", bound=Document)
_Changed = TypeVar("_Changed", bound=Document | None)


class Documents(Generic[_Document]):
    """The documents of one kind below one root. Threads and processes may share them.

    Methods raise `InvalidDefinition` for what cannot be the name of a document.
    """

    def __init__(
        self,
        root: str,
        folder: str,
        kind: type[_Document],
        storage_options: Mapping[str, str] | None = None,
        *,
        noun: str,
        kept: str = KEPT,
        name: re.Pattern[str] = _NAME,
        earlier: Callable[[str], _Document | None] = lambda name: None,
    ) -> None:
        """
        Args:
            root: As for `Lake`.
            folder: The folder of the ledgers, below ``_streamtables``.
            kind: The class of the documents.
            storage_options: What delta-rs needs to reach an object store.
            noun: What a document is called in error messages.
            kept: How long a replaced value is kept at least, as an interval of Delta.
            name: Matches the valid names.
            earlier: The document of a name that has no ledger yet.
        """
        self._root, self._folder = root.rstrip("/"), f"{FOLDER}/{folder}"
        self._kind, self._noun = kind, noun
        self._options = storage_options
        self._kept, self._name, self._earlier = kept, name, earlier
        self._ledgers: dict[str, Ledger] = {}

    def names(self) -> list[str]:
        """The names of all documents, sorted, including deleted ones: it only lists the folder."""
        return sorted(
            filter(self._name.fullmatch, folders_in(self._root, self._folder, self._options))
        )

    def place(self, name: str) -> str:
        """The folder of a document's ledger."""
        return f"{self._root}/{self._folder}/{name}"

    def find(self, name: str) -> _Document | None:
        """The document of a name; None if missing.

        Raises:
            DamagedTable: It cannot be read.
        """
        return self._document(name, self._ledger(name).read())

    def change(self, name: str, change: Callable[[_Document | None], _Changed]) -> _Changed:
        """Replace a document by a function of it. An equal document is not written.

        Args:
            name: The document.
            change: Computes the new document from the present one, either of which is None if
                missing. It is called again each time that another process committed first.

        Raises:
            ConflictingCommit: Other processes committed first, at each attempt.
            DamagedTable: The document cannot be read.
        """
        ledger = self._ledger(name)
        for entry in self._attempts(name, ledger):
            before = self._document(name, entry)
            after = change(before)
            value = None if after is None else after.to_json()
            if after == before or self._commit(ledger, value, entry):
                return after
        raise self._crowded(name)

    def delete(self, name: str, *, earlier: bool = False) -> bool:
        """Delete a document, even one whose value cannot be read.

        The log of its ledger stays, so that a process that knows its version numbers cannot meet
        another log.

        Args:
            name: The document.
            earlier: Whether it exists if it has no ledger yet.

        Returns:
            Whether it existed.

        Raises:
            ConflictingCommit: Other processes committed first, at each attempt.
        """
        ledger = self._ledger(name)
        for entry in self._attempts(name, ledger):
            exists = earlier if entry is None else entry.value is not None
            if not exists or self._commit(ledger, None, entry):
                return exists
        raise self._crowded(name)

    def _document(self, name: str, entry: Entry | None) -> _Document | None:
        if entry is None:
            return self._earlier(name)
        if entry.value is None:  # it was deleted
            return None
        try:
            return self._kind.from_json(entry.value)
        except (ValueError, TypeError, KeyError) as error:
            why = f"the {self._noun} in it cannot be read: {error}"
            raise damaged(self.place(name), why) from error

    def _attempts(self, name: str, ledger: Ledger) -> Iterator[Entry | None]:
        """The newest entry of each attempt. Random, growing pauses let hundreds of processes
        take turns."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0, min(_LONGEST_PAUSE, _PAUSE * 2**attempt)))
            yield ledger.read()

    def _commit(self, ledger: Ledger, value: Any, before: Entry | None) -> bool:
        """Whether the value was committed: another process may have been first."""
        require_conditional_puts(self._root, self._options)
        try:
            ledger.append(value, None if before is None else before.version)
        except OvertakenAppend:
            return False
        return True

    def _crowded(self, name: str) -> ConflictingCommit:
        return ConflictingCommit(
            f'others keep changing {self._noun} "{name}"',
            why="each attempt found that another process had committed first",
            fix="try again; nothing of this attempt was written",
        )

    def _ledger(self, name: str) -> Ledger:
        if not self._name.fullmatch(name):
            raise InvalidDefinition(
                f'"{name}" is no name of a {self._noun}',
                why="it is the name of a folder",
                fix="use up to 100 letters, digits, underscores and hyphens",
            )
        if name not in self._ledgers:
            self._ledgers[name] = Ledger(
                self.place(name), self._options, kept=self._kept, short=True
            )
        return self._ledgers[name]
