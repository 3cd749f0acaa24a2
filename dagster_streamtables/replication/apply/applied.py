"""`Applied`: what a copy or changes did to their target."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Applied:
    """What was applied to a target."""

    version: int | None
    """The version that was committed; None if nothing was, because it was applied already or had
    no effect."""
    position: int | None
    """All changes up to it are applied."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: Counter[str] = field(default_factory=Counter)
    """Changes that did not fit the rows of the target, by kind."""

    def then(self, later: Applied) -> Applied:
        """Both, as one."""
        return Applied(
            self.version if later.version is None else later.version,
            later.position,
            self.inserted + later.inserted,
            self.updated + later.updated,
            self.deleted + later.deleted,
            self.conflicts + later.conflicts,
        )
