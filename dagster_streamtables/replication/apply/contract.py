"""`Choices`: how changes are applied. `Conflicts`: which do not fit. `ApplyResult`: the outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

OnConflict = Literal["error", "apply", "skip"]
"""error: stop at a row that exists already, ignore a missing one, as PostgreSQL does. apply: the
publisher's row wins. skip: the target's row stays, missing or not."""


class ConflictKind(StrEnum):
    INSERT_EXISTS = "insert_exists"
    UPDATE_EXISTS = "update_exists"
    UPDATE_MISSING = "update_missing"
    DELETE_MISSING = "delete_missing"


STOPS = frozenset({ConflictKind.INSERT_EXISTS, ConflictKind.UPDATE_EXISTS})
"""Violations of the key, at which PostgreSQL stops."""


@dataclass
class Conflicts:
    counts: Counter[str] = field(default_factory=Counter)
    first: tuple[int, ConflictKind] | None = None
    """The index of the first change that stops."""

    def add(self, kind: ConflictKind, change: int) -> None:
        self.counts[kind.value] += 1
        if kind in STOPS and (self.first is None or change < self.first[0]):
            self.first = change, kind


@dataclass(frozen=True)
class Choices:
    """How changes are applied."""

    on_conflict: OnConflict = "error"
    add_columns: bool = False
    """Add published columns that the target lacks."""
    record_idle: bool = True
    """Commit a position without an effect. If not, the caller has to remember it."""
    commit_by_commit: bool = False
    """One commit for each transaction, not for each batch."""
    skip: Collection[int] = ()
    """Positions of transactions that are left out."""
    in_memory: int = 1_000_000
    """The number of changes that are folded at once. More are folded in parts, on disk, and written
    by an append if all are inserts, else by an overwrite of the target."""


@dataclass(frozen=True)
class ApplyResult:
    """What was applied to a target."""

    version: int | None
    """The committed version; None if there was nothing to commit."""
    position: int | None
    """All changes up to it are applied."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: Counter[str] = field(default_factory=Counter)
    """Changes that did not fit the rows of the target, by kind."""

    def then(self, later: ApplyResult) -> ApplyResult:
        """Both, as one."""
        return ApplyResult(
            self.version if later.version is None else later.version,
            later.position,
            self.inserted + later.inserted,
            self.updated + later.updated,
            self.deleted + later.deleted,
            self.conflicts + later.conflicts,
        )
