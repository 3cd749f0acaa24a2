"""`CatalogMemory`: where the tables of Spark's catalogs are, known without Spark.

Each answer is a document, ``<root>/_streamtables/catalogs/<digest of the name>``. It has no
credentials: such a catalog vends none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dagster_streamtables.runtime.catalogs.external_catalogs import Answer
from dagster_streamtables.runtime.catalogs.external_table import ExternalTable
from dagster_streamtables.runtime.delta.table_schema import digest
from dagster_streamtables.runtime.storage.documents import SHORT, Documents, without_format

_FORMAT = 1


@dataclass(frozen=True)
class StoredAnswer:
    name: str
    location: str | None
    """None if the catalog did not know the table."""
    id: str
    at: float

    def to_json(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "name": self.name,
            "location": self.location,
            "id": self.id,
            "at": self.at,
        }

    @classmethod
    def from_json(cls, values: Any) -> StoredAnswer:
        return cls(**without_format(values, _FORMAT))


class CatalogMemory:
    """The answers that one lake keeps. Threads and processes may share it."""

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._documents = Documents(
            root, "catalogs", StoredAnswer, storage_options, noun="answer of a catalog", kept=SHORT
        )

    def recall(self, name: str) -> Answer | None:
        """
        Raises:
            DamagedTable: The document cannot be read.
        """
        stored = self._documents.find(_key(name))
        if stored is None:
            return None
        known = stored.location and ExternalTable(stored.location, stored.id)
        return Answer(known or None, stored.at)

    def keep(self, name: str, answer: Answer) -> None:
        """
        Raises:
            ConflictingCommit: Other processes keep writing the same answer.
        """
        table = answer.table
        stored = StoredAnswer(
            name, table and table.location, table.id if table is not None else "", answer.at
        )
        self._documents.change(_key(name), lambda _: stored)


def _key(name: str) -> str:
    return digest(name.encode())[:16]
