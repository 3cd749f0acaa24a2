"""`Account`: what a refresh did and why, told in its own commit: the history of a table is its log.

A refresh that commits nothing, since nothing came, leaves no account, and one that fails leaves a
word in the table's control. A commit cannot hold what is known only after it: the rest of the time
and, of a MERGE, the rows it changed; both are beside the account, in the commit's own entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dagster_streamtables.runtime.delta.capture import Capture


@dataclass(frozen=True)
class ConsumedWindow:
    """The window of one source; its end is the frontier's version."""

    before: int | None
    capture: Capture
    rows: int | None

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> ConsumedWindow:
        return cls(values["before"], Capture(values["capture"]), values["rows"])


@dataclass(frozen=True)
class Account:
    """One refresh, until it began to commit."""

    action: str
    reason: str
    mode: str
    seconds: float
    until: float
    """When it began to commit, in seconds since 1970."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    windows: Mapping[str, ConsumedWindow] = field(default_factory=dict[str, ConsumedWindow])
    """Of each source, by its name in the query."""
    rows: tuple[int, int] | None = None
    """Inserted and deleted, where that is known before the commit."""
    expected: float | None = None
    """Seconds that it was expected to take, where mode AUTO chose between two ways."""

    fallback: str = ""
    """As of `Refresh`."""
    fallbacks: int = 0
    """Refreshes in a row that fell back, this one included; those without data do not end a row."""

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Account:
        windows = {
            name: ConsumedWindow.from_values(each) for name, each in values["windows"].items()
        }
        rows = values["rows"] and tuple(values["rows"])
        return cls(**{**values, "windows": windows, "rows": rows})
