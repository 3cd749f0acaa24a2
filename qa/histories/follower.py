"""What follows the sources of a history, whose rows are compared with its queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from qa.histories.oracle import Held
from qa.histories.roots import Root

Followed = tuple[Mapping[str, int], str]
"""The versions of the sources that a root took, and a line of what was done."""


class Follower(Protocol):
    more: list[Root]
    """Roots that it follows in addition to those of the history."""

    def follow(self, root: Root) -> Followed:
        """Take what happened since the last time, or raise what the product raises."""
        ...

    def held(self, root: Root) -> Held: ...
