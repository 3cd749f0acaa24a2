"""`ReplicationState`: the stored state of a replication. `ReplicationLease`: who may change it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lifecycle.replication import NAME, Replication
from dagster_streamtables.replication.lifecycle.replication_errors import (
    MissingReplication,
    ReplicationInUse,
)
from dagster_streamtables.replication.lifecycle.replication_report import TableState
from dagster_streamtables.runtime.observe.lease import LENGTH, Lease, renewing
from dagster_streamtables.runtime.storage.documents import SHORT, Documents, without_format

_FORMAT = 1


@dataclass(frozen=True)
class Progress:
    """How far one table is."""

    target: str
    state: TableState = TableState.NEW
    position: int | None = None
    """Applied up to here. The log of the target is ahead of it after a crash."""
    committed: int | None = None
    """The last seen position in the target's log: it never decreases."""
    origin_id: str = ""
    """The id of the table at the publisher; empty if unknown."""
    table_id: str = ""
    """The id of the target: one that is dropped and created again has another."""
    error: str = ""
    """Why it cannot go on; empty if it can."""
    fix: str = ""
    """How to fix that."""
    since: str = ""
    """When it first could not go on, in ISO 8601."""

    @property
    def is_in_slot(self) -> bool:
        """Whether the publisher keeps the changes after its position."""
        return self.state in (TableState.READY, TableState.STOPPED)

    @property
    def is_due(self) -> bool:
        """Whether its rows must be copied."""
        return self.state in (TableState.NEW, TableState.AGAIN)

    def without_trouble(self, state: TableState, **changes: Any) -> Progress:
        """The same in another state, without an error."""
        return replace(self, state=state, error="", fix="", since="", **changes)


@dataclass(frozen=True)
class Skip:
    """A transaction that is left out."""

    position: int
    table: str | None = None
    """None for all tables, several of which a server's transaction may change."""

    def is_about(self, table: str) -> bool:
        return self.table in (None, table)

    def __str__(self) -> str:
        return str(self.position) if self.table is None else f"{self.table}@{self.position}"


@dataclass(frozen=True)
class ReplicationState:
    replication: Replication
    enabled: bool
    slot: str | None
    """None once it is detached."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The logs of the targets have their positions under it: a replication that is dropped and
    created again has another, and copies again."""
    begun: bool = False
    """Whether the slot is its own, or is about to be created."""
    publication: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """The tables and schemas of the publication that was created for it."""
    tables: Mapping[str, Progress] = field(default_factory=dict[str, Progress])
    """By the names of the published tables."""
    confirmed: str | None = None
    """What was about to be confirmed last."""
    skips: tuple[Skip, ...] = ()
    copied_again: tuple[str, ...] = ()
    """The times at which its slot was lost, and all was copied again; in ISO 8601."""
    conflicts: Mapping[str, int] = field(default_factory=dict[str, int])
    error: str | None = None
    errors: int = 0
    failed_at: str | None = None
    refreshed_at: str | None = None
    longest_refresh: float = 0.0
    """The seconds of the longest successful refresh."""
    lease: Lease | None = None
    """The lease of the process that works at it."""

    def with_table(self, name: str, state: TableState, **changes: Any) -> ReplicationState:
        """The same with a known table in another state, without an error."""
        progress = self.tables[name].without_trouble(state, **changes)
        return replace(self, tables={**self.tables, name: progress})

    @property
    def slot_positions(self) -> dict[str, int]:
        """The position of each table after which the publisher keeps its changes."""
        return {
            name: each.position
            for name, each in self.tables.items()
            if each.is_in_slot and each.position is not None
        }

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without secrets."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            "format": _FORMAT,
            **values,
            "replication": self.replication.to_json(),
            "tables": {name: asdict(each) for name, each in self.tables.items()},
            "skips": [asdict(each) for each in self.skips],
            "lease": self.lease and self.lease.to_json(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ReplicationState:
        """Raise `ValueError` for another format."""
        known = without_format(values, _FORMAT)
        made = known["publication"]
        lease = known.pop("worker", None) or known.pop("lease", None)  # "worker": once
        return cls(
            **{
                **known,
                "replication": Replication.from_json(known["replication"]),
                "publication": made and (tuple(made[0]), tuple(made[1])),
                "tables": {
                    name: Progress(**{**each, "state": TableState(each["state"])})
                    for name, each in known["tables"].items()
                },
                "skips": tuple(Skip(**each) for each in known["skips"]),
                "copied_again": tuple(known["copied_again"]),
                "lease": lease and Lease.from_json(lease),
            }
        )


_Changed = TypeVar("_Changed", ReplicationState, None)


class Store:
    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self._documents = Documents(
            root,
            "replications",
            ReplicationState,
            storage_options,
            noun="replication",
            kept=SHORT,
            name=NAME,
        )

    def all(self) -> dict[str, ReplicationState]:
        """The existing replications, by name, sorted."""
        names = self._documents.names()
        return {name: found for name in names if (found := self.find(name)) is not None}

    def find(self, name: str) -> ReplicationState | None:
        """None if there is none of that name."""
        return self._documents.find(name)

    def read(self, name: str) -> ReplicationState:
        """Raise `MissingReplication` if there is none of that name."""
        return self._existing(name, self.find(name))

    def change(self, name: str, change: Callable[[ReplicationState], _Changed]) -> _Changed:
        """Change an existing state, or drop it by returning None.

        Raises:
            MissingReplication: There is none of that name.
        """
        return self.commit(name, lambda state: change(self._existing(name, state)))

    def commit(self, name: str, change: Callable[[ReplicationState | None], _Changed]) -> _Changed:
        """Commit the result, which is computed again if another process was first."""
        return self._documents.change(name, change)

    def _existing(self, name: str, state: ReplicationState | None) -> ReplicationState:
        if state is None:
            raise MissingReplication(
                f'there is no replication "{name}"',
                where=self._root,
                fix=f"create it, or name one of these: {', '.join(self.all()) or 'none yet'}",
            )
        return state


_PAUSE = 0.1
"""Seconds between two looks at whether the other has finished."""


@dataclass
class ReplicationLease:
    """The lease of a replication, which is a part of its state."""

    store: Store
    name: str
    lease: Lease
    state: ReplicationState
    last: Callable[[ReplicationState], ReplicationState] = lambda state: state
    """A change that is stored when the lease is released."""

    def save(self, change: Callable[[ReplicationState], ReplicationState]) -> ReplicationState:
        """Store a change, unless another process has taken over.

        Raises:
            ReplicationInUse: It has.
        """

        def apply_change(state: ReplicationState) -> ReplicationState:
            if not self._is_ours(state):
                by = state.lease
                raise ReplicationInUse(
                    f'another process has taken replication "{self.name}" over',
                    why=f"{by} works at it now" if by else "its lease ended",
                    fix="nothing: what was applied here is not applied again",
                )
            after = change(state)
            return after if after == state else replace(after, lease=self.lease.extend())

        self.state = self.store.change(self.name, apply_change)
        return self.state

    def renew(self) -> None:
        self.store.change(
            self.name,
            lambda state: (
                replace(state, lease=self.lease.extend()) if self._is_ours(state) else state
            ),
        )

    def release(self) -> None:
        def release_lease(state: ReplicationState | None) -> ReplicationState | None:
            if state is None or not self._is_ours(state):
                return state
            return replace(self.last(state), lease=None)

        # A full disk must not hide an error; the lease ends by itself.
        with suppress(StreamTablesError, OSError):
            self.store.commit(self.name, release_lease)  # type: ignore[type-var]

    def _is_ours(self, state: ReplicationState) -> bool:
        return state.lease is not None and state.lease.id == self.lease.id


@contextmanager
def hold_lease(store: Store, name: str, *, wait: float = 0.0) -> Iterator[ReplicationLease]:
    """Be the only process that works at a replication, after waiting some seconds for another.

    Raises:
        MissingReplication: There is none of that name.
        ReplicationInUse: Another process works at it for longer.
    """
    ours = _take(store, name, time.monotonic() + wait)
    try:
        with renewing(ours.renew):
            yield ours
    finally:
        ours.release()


def _take(store: Store, name: str, deadline: float) -> ReplicationLease:
    lease = Lease.begin(LENGTH)

    def take_lease(state: ReplicationState) -> ReplicationState:
        other = state.lease
        if other is not None and other.runs():
            raise ReplicationInUse(
                f'another process refreshes replication "{name}"',
                why=f"{other} does, until {other.until.isoformat(timespec='seconds')} if it does "
                "not go on",
                fix="nothing, if it is to be refreshed only: the other does the same; else wait",
            )
        return replace(state, lease=lease.extend())

    while True:
        try:
            return ReplicationLease(store, name, lease, store.change(name, take_lease))
        except ReplicationInUse:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE)
