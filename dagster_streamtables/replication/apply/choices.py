"""`Choices`: how rows and changes are applied."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dagster_streamtables.replication.apply.conflicts import OnConflict


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
    """Changes that are folded at once. More are folded in parts, on disk, and are written by an
    append if all are inserts, and else by an overwrite of the target."""
