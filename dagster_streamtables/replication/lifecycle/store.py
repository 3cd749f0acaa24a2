"""`Store`: the states of the replications of a lake.

Each is a document, ``<root>/_streamtables/replications/<name>``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from dagster_streamtables.replication.lifecycle.errors import MissingReplication
from dagster_streamtables.replication.lifecycle.replication import NAME
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.runtime.storage.document import SHORT
from dagster_streamtables.runtime.storage.documents import Documents

_Changed = TypeVar("_Changed", State, None)


class Store:
    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self._documents = Documents(
            root, "replications", State, storage_options, noun="replication", kept=SHORT, name=NAME
        )

    def all(self) -> dict[str, State]:
        """The replications that there are, by name, sorted."""
        names = self._documents.names()
        return {name: found for name in names if (found := self.find(name)) is not None}

    def find(self, name: str) -> State | None:
        """None if there is none of that name."""
        return self._documents.find(name)

    def read(self, name: str) -> State:
        """
        Raises:
            MissingReplication: There is none of that name.
        """
        return self._existing(name, self.find(name))

    def change(self, name: str, change: Callable[[State], _Changed]) -> _Changed:
        """Change one that is there; None drops it.

        Raises:
            MissingReplication: There is none of that name.
        """
        return self.commit(name, lambda state: change(self._existing(name, state)))

    def commit(self, name: str, change: Callable[[State | None], _Changed]) -> _Changed:
        """Commit what a replication becomes, computed again if another process was first."""
        return self._documents.change(name, change)

    def _existing(self, name: str, state: State | None) -> State:
        if state is None:
            raise MissingReplication(
                f'there is no replication "{name}"',
                where=self._root,
                fix=f"create it, or name one of these: {', '.join(self.all()) or 'none yet'}",
            )
        return state
