"""What a refresh is asked to do, and what it finds when it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dagster_streamtables.compiler import Plan, Text
from dagster_streamtables.runtime.decide import Source
from dagster_streamtables.runtime.state import Stored
from dagster_streamtables.runtime.table import StreamTable


@dataclass(frozen=True)
class Job:
    """All that one refresh needs to know of its table before it starts."""

    table: StreamTable
    text: Text
    """Its query in Spark SQL, views and all."""
    fingerprint: str
    plan: Plan | None
    """None in mode FULL, and in AUTO where the query cannot be maintained."""
    refusal: str | None
    location: str
    stored: Stored | None
    sources: Mapping[str, Source]
    full: bool
    waiting: str | None = None
    """For what it waits, where newer versions of its sources do not agree with each other."""
    blocked: bool = False
    """No versions of its sources agree."""
    storage_options: Mapping[str, str] | None = None
    now: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    """What the query is told when it asks for the time."""

    @property
    def timed(self) -> bool:
        return self.plan is not None and self.plan.timed
