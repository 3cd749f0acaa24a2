"""`Store`: the states of the replications of a lake.

Each is a ledger, ``<root>/_streamtables/replications/<name>``. Each change is one commit of the
whole value: of two processes that change it at once, the second reads it again and decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from dagster_streamtables.errors import ConflictingCommit, InvalidDefinition
from dagster_streamtables.replication.lifecycle.errors import MissingReplication
from dagster_streamtables.replication.lifecycle.replication import NAME
from dagster_streamtables.replication.lifecycle.state import State
from dagster_streamtables.runtime.delta.names import folders_in
from dagster_streamtables.runtime.errors.tables import damaged
from dagster_streamtables.runtime.observe.control import FOLDER
from dagster_streamtables.runtime.storage.ledger import Entry, Ledger, OvertakenAppend

_FOLDER = f"{FOLDER}/replications"
_ATTEMPTS = 50
# It is rewritten at each refresh, and only its newest value is ever read.
_KEPT = "interval 10 minutes"
_Changed = TypeVar("_Changed", State, None)


class Store:
    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self._options = storage_options
        self._ledgers: dict[str, Ledger] = {}

    def all(self) -> dict[str, State]:
        """The replications that there are, by name, sorted."""
        names = sorted(filter(NAME.fullmatch, folders_in(self._root, _FOLDER, self._options)))
        return {name: found for name in names if (found := self.find(name)) is not None}

    def find(self, name: str) -> State | None:
        """None if there is none of that name."""
        ledger = self._ledger(name)
        return _state(ledger, ledger.read())

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
        """Commit what a replication becomes, decided anew each time that somebody was first."""
        ledger = self._ledger(name)
        for _ in range(_ATTEMPTS):
            entry = ledger.read()
            before = _state(ledger, entry)
            after = change(before)
            if after == before:
                return after
            value = None if after is None else after.to_json()
            try:
                ledger.append(value, None if entry is None else entry.version)
            except OvertakenAppend:
                continue
            return after
        raise ConflictingCommit(
            f'others keep changing replication "{name}"',
            why="each attempt found that another process had committed first",
            fix="try again; nothing of this attempt was written",
        )

    def _existing(self, name: str, state: State | None) -> State:
        if state is None:
            raise MissingReplication(
                f'there is no replication "{name}"',
                where=self._root,
                fix=f"create it, or name one of these: {', '.join(self.all()) or 'none yet'}",
            )
        return state

    def _ledger(self, name: str) -> Ledger:
        if not NAME.fullmatch(name):
            raise InvalidDefinition(
                f'"{name}" is no name of a replication',
                why="it is the name of a folder",
                fix="use up to 100 letters, digits, underscores and hyphens",
            )
        if name not in self._ledgers:
            place = f"{self._root}/{_FOLDER}/{name}"
            self._ledgers[name] = Ledger(place, self._options, kept=_KEPT)
        return self._ledgers[name]


def _state(ledger: Ledger, entry: Entry | None) -> State | None:
    if entry is None or entry.value is None:  # it was dropped
        return None
    try:
        return State.from_json(entry.value)
    except (ValueError, TypeError, KeyError) as error:
        reason = f"the replication in it cannot be read: {error}"
        raise damaged(ledger.location, reason) from error
