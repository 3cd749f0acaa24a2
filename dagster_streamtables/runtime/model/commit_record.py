"""`Account`: what a refresh did and why, stored in its commit. A table's history is its log.

A refresh that commits nothing has no account, and a failed one is recorded in the table's control.
A commit cannot contain what is known only after it: the rest of the time and, of a MERGE, the rows
that it changed. Both are in the commit's own entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dagster_streamtables.runtime.delta.source_change import Capture


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
    """One refresh, until the start of its commit."""

    action: str
    reason: str
    mode: str
    seconds: float
    until: float
    """The start of the commit, in seconds since 1970."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    windows: Mapping[str, ConsumedWindow] = field(default_factory=dict[str, ConsumedWindow])
    """The window of each source, by its name in the query."""
    rows: tuple[int, int] | None = None
    """Inserted and deleted rows, if known before the commit."""
    expected: float | None = None
    """The seconds that mode AUTO expected, if it chose between two ways."""

    fallback: str = ""
    """As in `Refresh`."""
    fallbacks: int = 0
    """Consecutive refreshes that fell back, including this one, ignoring refreshes without data."""

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Account:
        windows = {
            name: ConsumedWindow.from_values(each) for name, each in values["windows"].items()
        }
        rows = values["rows"] and tuple(values["rows"])
        return cls(**{**values, "windows": windows, "rows": rows})
