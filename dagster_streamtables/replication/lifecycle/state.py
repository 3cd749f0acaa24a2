"""`State`: everything that is known of a replication, as its ledger stores it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.status import TableState
from dagster_streamtables.runtime.observe.lease import Lease

_FORMAT = 1


@dataclass(frozen=True)
class Progress:
    """How far one table is."""

    target: str
    state: TableState = TableState.NEW
    position: int | None = None
    """Applied up to here. The log of the target is ahead of it after a crash."""
    committed: int | None = None
    """The position in the target's log when it was seen last: it never goes back."""
    origin_id: str = ""
    """Of the table at the publisher, likewise; empty if unknown."""
    table_id: str = ""
    """Of the target: one that is dropped and created again has another."""
    error: str = ""
    """Why it cannot go on; empty if it can."""
    fix: str = ""
    """What mends that."""
    since: str = ""
    """When it could not go on for the first time, in ISO 8601."""

    @property
    def is_held(self) -> bool:
        """Whether the publisher keeps the changes behind its position."""
        return self.state in (TableState.READY, TableState.STOPPED)

    @property
    def is_due(self) -> bool:
        """Whether its rows are to be copied."""
        return self.state in (TableState.NEW, TableState.AGAIN)


@dataclass(frozen=True)
class Skip:
    """A transaction that is left out."""

    position: int
    table: str | None = None
    """None for all tables, of which a server's transaction may change several."""

    def is_about(self, table: str) -> bool:
        return self.table in (None, table)

    def __str__(self) -> str:
        return str(self.position) if self.table is None else f"{self.table}@{self.position}"


@dataclass(frozen=True)
class State:
    replication: Replication
    enabled: bool
    slot: str | None
    """None once it is detached."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Under which the logs of the targets have their positions: a replication that is dropped and
    created again has another, and copies again."""
    begun: bool = False
    """Whether the slot is its own, or is about to be made."""
    publication: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """The tables and schemas of the publication that was made for it."""
    tables: Mapping[str, Progress] = field(default_factory=dict[str, Progress])
    """By the names of the published tables."""
    confirmed: str | None = None
    """What was about to be confirmed last."""
    skips: tuple[Skip, ...] = ()
    copied_again: tuple[str, ...] = ()
    """When its slot was lost, and all was copied again; in ISO 8601."""
    conflicts: Mapping[str, int] = field(default_factory=dict[str, int])
    error: str | None = None
    errors: int = 0
    failed_at: str | None = None
    refreshed_at: str | None = None
    longest_refresh: float = 0.0
    """In seconds, of those that succeeded with this declaration."""
    lease: Lease | None = None
    """Of the process that works at it."""

    def with_table(self, name: str, **changes: Any) -> State:
        """The same with other values of a table that it has."""
        return replace(self, tables={**self.tables, name: replace(self.tables[name], **changes)})

    @property
    def followed(self) -> dict[str, int]:
        """The position of each table whose changes are applied."""
        return {n: at for n, at in self.held.items() if self.tables[n].state is TableState.READY}

    @property
    def held(self) -> dict[str, int]:
        """The position of each table behind which the publisher keeps its changes."""
        return {
            name: each.position
            for name, each in self.tables.items()
            if each.is_held and each.position is not None
        }

    def to_json(self) -> dict[str, Any]:
        """A JSON value, without secrets."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            "format": _FORMAT,
            **values,
            "replication": self.replication.to_json(),
            "tables": {name: _plain(each) for name, each in self.tables.items()},
            "skips": [_plain(each) for each in self.skips],
            "lease": self.lease and self.lease.to_json(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> State:
        """
        Raises:
            ValueError: Another format.
        """
        known = dict(values)
        if known.pop("format", None) != _FORMAT:
            raise ValueError(f"it is not in the format {_FORMAT}")
        made = known["publication"]
        lease = known.pop("worker", None) or known.pop("lease", None)  # "worker": once
        return cls(
            **{
                **known,
                "replication": Replication.from_json(known["replication"]),
                "publication": made and (tuple(made[0]), tuple(made[1])),
                "tables": {name: _progress(each) for name, each in known["tables"].items()},
                "skips": tuple(Skip(**each) for each in known["skips"]),
                "copied_again": tuple(known["copied_again"]),
                "lease": lease and Lease.from_json(lease),
            }
        )


def _progress(values: Mapping[str, Any]) -> Progress:
    return Progress(**{**values, "state": TableState(values["state"])})


def _plain(value: Any) -> dict[str, Any]:
    found = {each.name: getattr(value, each.name) for each in fields(value)}
    return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in found.items()}
