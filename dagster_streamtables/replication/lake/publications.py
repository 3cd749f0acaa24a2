"""`Publications`: the publications of a lake.

Each is a ledger, ``<root>/_streamtables/publications/<name>``. Each change is one commit of the
whole value: of two processes that change a publication at once, the second reads it again and
decides anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from dagster_streamtables.errors import ConflictingCommit, InvalidDefinition, RefusedOperation
from dagster_streamtables.replication.lake.publication import Publication, PublicationEntry
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.published_table import Operation
from dagster_streamtables.runtime.delta.names import folders_in
from dagster_streamtables.runtime.errors.tables import damaged
from dagster_streamtables.runtime.observe.control import FOLDER
from dagster_streamtables.runtime.storage.ledger import Entry as Stored, Ledger, OvertakenAppend

_FOLDER = f"{FOLDER}/publications"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_ATTEMPTS = 50
_Changed = TypeVar("_Changed", Publication, None)


class Publications:
    """The publications below one root. Threads and processes may share them.

    Methods raise `InvalidDefinition` for what cannot be the name of a publication, and, except for
    `create` and `find`, `PublisherProblem` if there is none of that name.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        """
        Args:
            root: As for `Lake`.
            storage_options: What delta-rs needs to reach an object store.
        """
        self._root = root.rstrip("/")
        self._options = storage_options
        self._ledgers: dict[str, Ledger] = {}

    def names(self) -> list[str]:
        """The names of the publications, sorted."""
        found = sorted(filter(_NAME.fullmatch, folders_in(self._root, _FOLDER, self._options)))
        return [name for name in found if self.find(name) is not None]

    def find(self, name: str) -> Publication | None:
        """The publication of a name; None if there is none."""
        ledger = self._ledger(name)
        return _publication(ledger, ledger.read())

    def read(self, name: str) -> Publication:
        """The publication of a name."""
        return self._existing(name, self.find(name))

    def create(self, publication: Publication) -> Publication:
        """
        Raises:
            RefusedOperation: There is one of that name.
        """

        def created(known: Publication | None) -> Publication:
            if known is not None:
                raise RefusedOperation(
                    f'there is a publication "{publication.name}" already',
                    fix="choose another name, alter it, or drop it first",
                )
            return publication

        return self._commit(publication.name, created)

    def add(self, name: str, *entries: PublicationEntry) -> Publication:
        """Publish more tables. A replication has them after its next refresh.

        Raises:
            InvalidDefinition: It names one of them already.
        """
        return self.alter(name, lambda known: known.added(entries))

    def remove(self, name: str, *tables: str) -> Publication:
        """
        Raises:
            InvalidDefinition: It does not name one of them.
        """
        return self.alter(name, lambda known: known.without(tables))

    def set(self, name: str, *entries: PublicationEntry) -> Publication:
        """Name these tables in place of all that it names."""
        return self.alter(name, lambda known: replace(known, tables=entries))

    def publish(self, name: str, operations: Collection[str | Operation]) -> Publication:
        """Set the operations that it publishes."""
        chosen: frozenset[Operation] = frozenset(operations)  # type: ignore[assignment]
        return self.alter(name, lambda known: replace(known, operations=chosen))

    def alter(self, name: str, change: Callable[[Publication], Publication]) -> Publication:
        """Change a publication; its name stays."""

        def changed(known: Publication | None) -> Publication:
            return replace(change(self._existing(name, known)), name=name)

        return self._commit(name, changed)

    def rename(self, name: str, to: str) -> Publication:
        """Two commits: for a moment, or after a crash, both names are there.

        Raises:
            RefusedOperation: There is one of the new name.
        """
        renamed = self.create(replace(self.read(name), name=to))
        self.drop(name)
        return renamed

    def drop(self, name: str) -> None:
        """Publish its tables no more; a replication that reads it is told at its next refresh."""

        def dropped(known: Publication | None) -> None:
            self._existing(name, known)

        self._commit(name, dropped)

    def _existing(self, name: str, publication: Publication | None) -> Publication:
        if publication is None:
            raise PublisherProblem(
                f'there is no publication "{name}"',
                where=self._root,
                fix=f"create it, or name one of these: {', '.join(self.names()) or 'none yet'}",
            )
        return publication

    def _commit(self, name: str, change: Callable[[Publication | None], _Changed]) -> _Changed:
        ledger = self._ledger(name)
        for _ in range(_ATTEMPTS):
            stored = ledger.read()
            before = _publication(ledger, stored)
            after = change(before)
            if after is not None and after == before:
                return after
            value = None if after is None else after.to_json()
            try:
                ledger.append(value, None if stored is None else stored.version)
            except OvertakenAppend:
                continue
            return after
        raise ConflictingCommit(
            f'others keep changing publication "{name}"',
            why="each attempt found that another process had committed first",
            fix="try again; nothing of this attempt was written",
        )

    def _ledger(self, name: str) -> Ledger:
        if not _NAME.fullmatch(name):
            raise InvalidDefinition(
                f'"{name}" is no name of a publication',
                why="it is the name of a folder",
                fix="use up to 100 letters, digits, underscores and hyphens",
            )
        if name not in self._ledgers:
            self._ledgers[name] = Ledger(f"{self._root}/{_FOLDER}/{name}", self._options)
        return self._ledgers[name]


def _publication(ledger: Ledger, stored: Stored | None) -> Publication | None:
    if stored is None or stored.value is None:  # it was dropped
        return None
    try:
        return Publication.from_json(stored.value)
    except (ValueError, TypeError, KeyError) as error:
        reason = f"the publication in it cannot be read: {error}"
        raise damaged(ledger.location, reason) from error
