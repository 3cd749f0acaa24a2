"""What contradicts itself in a log, before it is known when its files were written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dagster_streamtables.runtime.doctor.findings import Trace


@dataclass(frozen=True)
class Contradiction:
    trace: Trace
    first: int
    """The first version in doubt, by the versions alone."""
    last: int
    what: str
    found: Collection[str]
    """Paths, or what the log says."""
    sure: bool
    is_dated: bool = False
    """Whether the commit in doubt came soon after the files of these paths were written."""
