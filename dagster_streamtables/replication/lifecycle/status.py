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
    STOPPED = "stopped"
    """It is in trouble. Its publisher keeps the changes behind its position, and each refresh tries
    it again."""
    LOST = "lost"
    """It is in trouble, and its changes are not kept: only a new copy mends it."""
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
    """Why it cannot go on; empty if it can."""
    fix: str = ""
    """What mends that."""
    since: datetime | None = None
    """When it could not go on for the first time."""
    kept_until: datetime | None = None
    """Until when its publisher keeps its changes; None if it is not stopped, or for ever."""

    @property
    def is_current(self) -> bool:
        """Whether nothing keeps it from being brought to its publisher's rows."""
        return not self.error and self.state is not TableState.LOST


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
