"""The status of a replication, and the reports of a refresh and of a comparison with its origin."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.apply.contract import ApplyResult
from dagster_streamtables.replication.lifecycle.replication import Replication


class TableState(enum.StrEnum):
    """How far a table of a replication is."""

    NEW = "new"
    """The next refresh copies its rows."""
    AGAIN = "again"
    """The next refresh copies its rows, replacing the existing ones."""
    READY = "ready"
    """Its changes are applied from its position on."""
    STOPPED = "stopped"
    """It is in trouble. Its publisher keeps the changes after its position, and each refresh tries
    it again."""
    LOST = "lost"
    """It is in trouble, and its changes are not kept: only a new copy fixes it."""
    REMOVED = "removed"
    """It is no longer published; its rows stay as they are."""


@dataclass(frozen=True)
class TableStatus:
    """One table of a replication."""

    name: str
    """The name at the publisher."""
    target: str
    """The table of the lake."""
    state: TableState
    position: int | None
    """All changes up to it are applied: a version of a lake's table, or a server's LSN."""
    version: int | None
    """The newest version of the target; None if missing."""
    rows: int | None
    """The number of rows of the target; None if its log does not have it."""
    error: str = ""
    """Why it cannot go on; empty if it can."""
    fix: str = ""
    """How to fix that."""
    since: datetime | None = None
    """When it first could not go on."""
    kept_until: datetime | None = None
    """Until when its publisher keeps its changes; None if it is not stopped, or without a limit."""

    @property
    def is_current(self) -> bool:
        """Whether its changes are being applied."""
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
    """Transactions that will be left out."""
    worker: str = ""
    """The process that refreshes it now; empty if none does."""
    warnings: tuple[str, ...] = ()
    """What may go wrong, such as another replication to the same table."""


@dataclass(frozen=True)
class TableRefresh:
    """The effect of a refresh on one target."""

    name: str
    """The table at the publisher."""
    copied: int | None = None
    """The number of copied rows; None if none had to be copied."""
    inserted: int = 0
    """By changes, like the following numbers."""
    updated: int = 0
    deleted: int = 0
    conflicts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Changes that did not fit the rows of the target, by kind."""
    version: int | None = None
    """The last committed version of the target; None if none was committed."""
    position: int | None = None
    """All changes up to it are applied."""

    def with_copy(self, applied: ApplyResult) -> TableRefresh:
        """The same with a copy that followed."""
        copied = (self.copied or 0) + applied.inserted + applied.updated
        return self._with(applied, copied=copied, inserted=0, updated=0, deleted=0)

    def with_changes(self, applied: ApplyResult) -> TableRefresh:
        """The same with changes that followed."""
        return self._with(
            applied,
            inserted=self.inserted + applied.inserted,
            updated=self.updated + applied.updated,
            deleted=self.deleted + applied.deleted,
        )

    def _with(self, applied: ApplyResult, **counts: int) -> TableRefresh:
        return replace(
            self,
            conflicts=dict(Counter(self.conflicts) + applied.conflicts),
            version=self.version if applied.version is None else applied.version,
            position=applied.position,
            **counts,
        )


@dataclass(frozen=True)
class ReplicationRefresh:
    """The effect of a refresh, table by table."""

    name: str
    """The name of the replication."""
    tables: Mapping[str, TableRefresh]
    """By target, also of tables without changes."""
    complete: bool
    """Whether nothing was left at the publisher when it was read last."""
    seconds: float
    skipped: tuple[str, ...] = ()
    """Transactions that were left out, as they were requested."""
    stopped: Mapping[str, StreamTablesError] = field(default_factory=dict[str, StreamTablesError])
    """By target, why it was not brought up to date while the others were."""

    def require(self) -> ReplicationRefresh:
        """
        Raises:
            StreamTablesError: Why a table is not up to date.
        """
        for _, error in sorted(self.stopped.items()):
            raise error
        return self

    def require_some(self) -> ReplicationRefresh:
        """
        Raises:
            StreamTablesError: Why a table is not up to date, if none is.
        """
        return self if self.tables else self.require()

    @property
    def action(self) -> str:
        """`COPY` if rows were copied, `CHANGES` if changes were applied, else `NO_DATA`."""
        if any(each.copied is not None for each in self.tables.values()):
            return "COPY"
        moved = any(each.version is not None for each in self.tables.values())
        return "CHANGES" if moved else "NO_DATA"

    @property
    def conflicts(self) -> Mapping[str, int]:
        """Of all tables, by kind."""
        total: Counter[str] = Counter()
        for each in self.tables.values():
            total.update(each.conflicts)
        return dict(total)

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.action}"]
        for target, each in sorted(self.tables.items()):
            copied = [] if each.copied is None else [f"{each.copied} copied"]
            counts = (
                (each.inserted, "inserted"),
                (each.updated, "updated"),
                (each.deleted, "deleted"),
                (sum(each.conflicts.values()), "conflicts"),
            )
            said = copied + [f"{number} {what}" for number, what in counts if number]
            parts += [f"{target} {', '.join(said)}"] if said else []
        parts += [f"{target} is in trouble" for target in sorted(self.stopped)]
        return "; ".join(parts)


@dataclass(frozen=True)
class TableCheck:
    """One target against its origin, counting copies of rows."""

    name: str
    """The table at the publisher."""
    target: str
    equal: bool
    position: int
    """The moment: the target has all changes up to it, and the origin was read there."""
    version: int
    """The version of the target that was compared."""
    rows: int
    """The number of published rows of the origin."""
    missing: int
    """Rows that the origin has and the target lacks."""
    unexpected: int
    """Rows that the target has and the origin does not."""
    sample: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Some of them, with ``__difference`` (``missing`` or ``unexpected``) and ``__copies``."""
    note: str = ""
    """Why they may differ, such as operations that are not published; empty if they must be
    equal."""
    error: str = ""
    """Why they were not compared, since the table cannot go on; empty if they were."""


@dataclass(frozen=True)
class ReplicationCheck:
    """Targets of a replication against their origin."""

    name: str
    """The name of the replication."""
    tables: Mapping[str, TableCheck]
    """By target."""
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether all are equal that must be."""
        return all(each.equal or (each.note and not each.error) for each in self.tables.values())
