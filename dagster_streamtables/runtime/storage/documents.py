"""`Documents`: the documents of one kind below one root, by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.delta.names import folders_in
from dagster_streamtables.runtime.storage.document import FOLDER, Document, Value
from dagster_streamtables.runtime.storage.ledger import KEPT

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")

_Value = TypeVar("_Value", bound=Value)
_Changed = TypeVar("_Changed", bound=Value | None)


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
