"""`Document`: a JSON document that many processes change at once; `Documents`: those of one kind.

A document is a `Ledger`. Every change is one commit of the whole value, by compare-and-swap: if
another process commits first, the change is computed again from what it committed. So no change is
lost, and no lock can remain after a crash.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from dagster_streamtables.errors import ConflictingCommit, DamagedTable, InvalidDefinition
from dagster_streamtables.runtime.delta.names import folders_in
from dagster_streamtables.runtime.storage.conditional_puts import require_conditional_puts
from dagster_streamtables.runtime.storage.ledger import KEPT, Ledger, LedgerEntry, OvertakenAppend

FOLDER = "_streamtables"
"""The folder below the root with the documents, and all else that is not a table."""
SHORT = "interval 10 minutes"
"""How long to keep the commits of a document that is changed often."""
_ATTEMPTS = 60
_PAUSE, _LONGEST_PAUSE = 0.001, 1.0


class Value(Protocol):
    """What a document contains. Equal values are the same document."""

    def to_json(self) -> Any:
        """A JSON value."""
        ...

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """
        Raises:
            ValueError: The value is not one of this class; likewise TypeError, KeyError,
                AttributeError.
        """
        ...


def without_format(values: Mapping[str, Any], format: int) -> dict[str, Any]:
    """A stored value without its key ``format``.

    Raises:
        ValueError: It is in another format.
    """
    known = dict(values)
    if known.pop("format", None) != format:
        raise ValueError(f"it is not in the format {format}")
    return known


_Value = TypeVar("_Value", bound=Value)
_Changed = TypeVar("_Changed", bound=Value | None)


@dataclass(frozen=True)
class Revision(Generic[_Value]):
    """One commit of a document."""

    version: int
    value: _Value | None
    """None if the commit deleted the document."""


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
            storage_options: What delta-rs needs to reach an object store.
            noun: What the document is called in error messages.
            kept: How long a replaced value is kept at least, as an interval of Delta; it takes
                effect when the ledger is created.
            checkpoint_every: Number of commits between two checkpoints, if old values are read
                again; likewise. By default there are only a few commits.
            earlier: The value that the document has before its first commit.
        """
        self.location = f"{root.rstrip('/')}/{FOLDER}/{path}"
        self._root, self._options, self._kind, self._noun = root, storage_options, kind, noun
        self._earlier = earlier
        few = checkpoint_every is None
        self._ledger = Ledger(
            self.location,
            storage_options,
            kept=kept,
            short=few,
            checkpoint_every=20 if checkpoint_every is None else checkpoint_every,
        )

    def read(self) -> _Value | None:
        """The value; None if missing.

        Raises:
            DamagedTable: It cannot be read.
        """
        return self._value(self._ledger.read())

    def newest(self) -> Revision[_Value] | None:
        """The newest commit; None if there is none.

        Raises:
            DamagedTable: It cannot be read.
        """
        entry = self._ledger.read()
        return None if entry is None else Revision(entry.version, self._value(entry))

    def at(self, version: int) -> Revision[_Value] | None:
        """One commit; None if it was deleted, or does not exist yet.

        Raises:
            DamagedTable: It cannot be read.
        """
        entry = self._ledger.at(version)
        return None if entry is None else Revision(entry.version, self._value(entry))

    def change(self, change: Callable[[_Value | None], _Changed]) -> _Changed:
        """Replace the value by a function of it. An equal value is not written.

        Args:
            change: Computes the new value from the present one, either of which is None if
                missing. It is called again each time that another process committed first.

        Raises:
            ConflictingCommit: Other processes committed first, at each attempt.
            DamagedTable: The value cannot be read.
        """
        for entry in self._attempts():
            before = self._value(entry)
            after = change(before)
            value = None if after is None else after.to_json()
            if after == before or self._commit(value, entry):
                return after
        raise self._conflict()

    def delete(self, *, earlier: bool = False) -> bool:
        """Delete the value, even one that cannot be read.

        The log of the ledger stays, so that a process that knows its version numbers cannot meet
        another log.

        Args:
            earlier: Whether it exists if it has no ledger yet.

        Returns:
            Whether it existed.

        Raises:
            ConflictingCommit: Other processes committed first, at each attempt.
        """
        for entry in self._attempts():
            exists = earlier if entry is None else entry.value is not None
            if not exists or self._commit(None, entry):
                return exists
        raise self._conflict()

    def _value(self, entry: LedgerEntry | None) -> _Value | None:
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

    def _attempts(self) -> Iterator[LedgerEntry | None]:
        """The newest entry of each attempt. Random, growing pauses let hundreds of processes
        take turns."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0, min(_LONGEST_PAUSE, _PAUSE * 2**attempt)))
            yield self._ledger.read()

    def _commit(self, value: Any, before: LedgerEntry | None) -> bool:
        """Whether the value was committed: another process may have been first."""
        require_conditional_puts(self._root, self._options)
        try:
            self._ledger.append(value, None if before is None else before.version)
        except OvertakenAppend:
            return False
        return True

    def _conflict(self) -> ConflictingCommit:
        return ConflictingCommit(
            f"others keep changing the {self._noun}",
            where=self.location,
            why="each attempt found that another process had committed first",
            fix="try again; nothing of this attempt was written",
        )


_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


class Documents(Generic[_Value]):
    """Threads and processes may share them.

    Methods raise what those of `Document` do, and `InvalidDefinition` for what cannot be the name
    of a document.
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
            root: As for `Lake`.
            folder: The folder of the ledgers, below ``_streamtables``.
            kind: The class of the values.
            storage_options: What delta-rs needs to reach an object store.
            noun: What a document is called in error messages.
            kept: How long a replaced value is kept at least, as an interval of Delta.
            name: Matches the valid names.
            earlier: The value of a name whose document has no commit yet.
        """
        self._root, self._folder = root.rstrip("/"), folder
        self._kind, self._noun = kind, noun
        self._options = storage_options
        self._kept, self._name, self._earlier = kept, name, earlier
        self._documents: dict[str, Document[_Value]] = {}

    def names(self) -> list[str]:
        """The names of all documents, sorted, including deleted ones: it only lists the folder."""
        found = folders_in(self._root, f"{FOLDER}/{self._folder}", self._options)
        return sorted(filter(self._name.fullmatch, found))

    def find(self, name: str) -> _Value | None:
        """The value of a name; None if missing."""
        return self._document(name).read()

    def change(self, name: str, change: Callable[[_Value | None], _Changed]) -> _Changed:
        """Replace a value by a function of it."""
        return self._document(name).change(change)

    def delete(self, name: str, *, earlier: bool = False) -> bool:
        """Delete a value; whether it existed."""
        return self._document(name).delete(earlier=earlier)

    def _document(self, name: str) -> Document[_Value]:
        if not self._name.fullmatch(name):
            raise InvalidDefinition(
                f'"{name}" is no name of a {self._noun}',
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
