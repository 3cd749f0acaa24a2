"""`SensorSettings`: the settings of a refresh sensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated

import dagster as dg

from dagster_streamtables.scheduling.dueness import Backoff
from dagster_streamtables.setting import Display, Range, normalize_fields


@dataclass(frozen=True)
class SensorSettings:
    """When a refresh sensor ticks, and how it decides."""

    name: Annotated[str, Display(default="the name of the resource, then `_refresh`")] = ""
    """The name of the sensor."""
    enabled: bool = True
    """Whether the sensor is on until a user switches it in the UI."""
    interval_seconds: Annotated[int, Range(1)] = 5
    """The time between two ticks. Dagster's minimum is five seconds."""
    stuck_after: Annotated[timedelta, Range(0, above=True)] = timedelta(hours=1)
    """Unfinished runs that are older no longer block the refreshes of their tables."""
    retry_first: Annotated[timedelta, Range(0, above=True)] = Backoff.first
    """The delay before a failed table is retried. It doubles with each failure in a row, and up to
    a quarter is added at random."""
    retry_longest: Annotated[timedelta, Range(0, above=True)] = Backoff.longest
    """The longest delay between retries."""
    conditions: bool = False
    """Whether automation conditions of the assets start the refreshes, by the same decisions. The
    sensor then only observes sources and marks tables as fresh."""
    observe_sources: bool = True
    """Record new versions of the observed sources, without a run."""

    def __post_init__(self) -> None:
        normalize_fields(self)

    @property
    def backoff(self) -> Backoff:
        """The delays before failed tables are retried."""
        return Backoff(self.retry_first, self.retry_longest)

    @property
    def status(self) -> dg.DefaultSensorStatus:
        """The default status of the sensor."""
        return dg.DefaultSensorStatus.RUNNING if self.enabled else dg.DefaultSensorStatus.STOPPED

    def with_default_name(self, resource_key: str) -> SensorSettings:
        """The same settings, with a name."""
        return self if self.name else replace(self, name=f"{resource_key}_refresh")
