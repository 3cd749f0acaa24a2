"""`Publications`: the publications of a lake.

Each is a document, ``<root>/_streamtables/publications/<name>``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.replication.lake.publication import Publication, PublicationEntry
from dagster_streamtables.replication.model.errors import PublisherProblem
from dagster_streamtables.replication.model.published_table import Operation
from dagster_streamtables.runtime.storage.documents import Documents


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
        self._documents = Documents(
            root, "publications", Publication, storage_options, noun="publication"
        )

    def names(self) -> list[str]:
        """The names of the publications, sorted."""
        return [name for name in self._documents.names() if self.find(name) is not None]

    def find(self, name: str) -> Publication | None:
        """The publication of a name; None if there is none."""
        return self._documents.find(name)

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

        return self._documents.change(publication.name, created)

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

        return self._documents.change(name, changed)

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

        self._documents.change(name, dropped)

    def _existing(self, name: str, publication: Publication | None) -> Publication:
        if publication is None:
            raise PublisherProblem(
                f'there is no publication "{name}"',
                where=self._root,
                fix=f"create it, or name one of these: {', '.join(self.names()) or 'none yet'}",
            )
        return publication
