"""Changes that do not fit the rows of their target, named and counted as PostgreSQL 18 does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

OnConflict = Literal["error", "apply", "skip"]
"""error: stop at a row that is there already, pass over one that is missing, as PostgreSQL does.
apply: the publisher's row wins. skip: the target's row stays, missing or not."""


class Kind(StrEnum):
    INSERT_EXISTS = "insert_exists"
    UPDATE_EXISTS = "update_exists"
    UPDATE_MISSING = "update_missing"
    DELETE_MISSING = "delete_missing"


STOPS = frozenset({Kind.INSERT_EXISTS, Kind.UPDATE_EXISTS})
"""A violation of the key, at which PostgreSQL's apply stops."""


@dataclass
class Conflicts:
    counts: Counter[str] = field(default_factory=Counter)
    first: tuple[int, Kind] | None = None
    """The index of the first change that stops an apply."""

    def add(self, kind: Kind, change: int) -> None:
        self.counts[kind.value] += 1
        if kind in STOPS and (self.first is None or change < self.first[0]):
            self.first = change, kind
