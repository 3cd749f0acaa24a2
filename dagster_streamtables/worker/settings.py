"""`WorkerSettings`: how a worker looks, works and reports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from dagster_streamtables.setting import Range, normalize_fields


@dataclass(frozen=True)
class WorkerSettings:
    """How a worker looks, works and reports."""

    max_concurrent: Annotated[int, Range(1)] = 4
    """How many tables are refreshed at the same time, on one Spark."""
    poll: Annotated[timedelta, Range(0, above=True)] = timedelta(seconds=0.05)
    """The shortest time between two looks at the logs. On an object store, where each log takes a
    request, it is a second at least."""
    heartbeat: Annotated[timedelta, Range(0, above=True)] = timedelta(seconds=5)
    """The time between two heartbeats. After three that are missed, the sensor takes over."""
    grace: Annotated[timedelta, Range(0)] = timedelta(seconds=30)
    """How long a stopped worker waits for the refreshes that run; their commits are then left
    undone."""
    stuck_after: Annotated[timedelta, Range(0, above=True)] = timedelta(hours=1)
    """A table whose refresh lasts longer is left to the sensor."""

    def __post_init__(self) -> None:
        normalize_fields(self)
