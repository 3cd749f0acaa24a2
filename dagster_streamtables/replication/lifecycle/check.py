"""`ReplicationCheck`: targets compared with their origin at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    """Of the origin, as it is published."""
    missing: int
    """Rows that the origin has and the target lacks."""
    unexpected: int
    """Rows that the target has and the origin does not."""
    sample: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Some of them, with ``__difference`` (``missing`` or ``unexpected``) and ``__copies``."""
    note: str = ""
    """Why they need not be equal, such as operations that are not published; empty if they must."""
    error: str = ""
    """Why they were not compared, since the table cannot go on; empty if they were."""


@dataclass(frozen=True)
class ReplicationCheck:
    """Targets of a replication against their origin."""

    name: str
    """Of the replication."""
    tables: Mapping[str, TableCheck]
    """By target."""
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether all are equal that must be."""
        return all(each.equal or (each.note and not each.error) for each in self.tables.values())
