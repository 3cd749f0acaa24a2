"""`ReplicationStatus`: what is known of a replication and of each of its tables."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from dagster_streamtables.replication.lifecycle.replication import Replication


class TableState(enum.StrEnum):
    """How far a table of a replication is."""

    NEW = "new"
    """Its rows are to be copied by the next refresh."""
    AGAIN = "again"
    """Likewise, and they take the place of those that are there."""
    READY = "ready"
    """Its changes are applied from its position on."""
    REMOVED = "removed"
    """It is not published any more; its rows stay as they are."""


@dataclass(frozen=True)
class TableStatus:
    """One table of a replication."""

    name: str
    """At the publisher."""
    target: str
    """The table of the lake."""
    state: TableState
    position: int | None
    """All changes up to it are applied: a version of a lake's table, or a server's LSN."""
    version: int | None
    """The newest version of the target; None if there is none."""
    rows: int | None
    """Of the target; None if its log does not tell."""
    error: str = ""
    """Why its last copy failed; empty if it did not."""


@dataclass(frozen=True)
class ReplicationStatus:
    """A replication, its tables, and how its last refreshes ended."""

    name: str
    replication: Replication
    """The declaration."""
    enabled: bool
    slot: str | None
    """Its slot at the publisher; None once it is detached."""
    tables: tuple[TableStatus, ...]
    error: str | None
    """The last error; None if the last refresh succeeded."""
    errors: int
    """Failed refreshes in a row."""
    failed_at: datetime | None
    """When the last of them failed."""
    refreshed_at: datetime | None
    """When a refresh last succeeded."""
    conflicts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Changes that did not fit the rows of their target, since it was created, by kind."""
    skips: tuple[str, ...] = ()
    """Transactions that are going to be left out."""
    worker: str = ""
    """Who refreshes it now; empty if nobody does."""
    warnings: tuple[str, ...] = ()
    """What may go wrong, such as another replication to the same table."""
