"""The settings of the checks of a code location."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import dagster as dg

from dagster_streamtables.declare.schedule import Cron as Schedule, parse_schedule
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.checks.sample import Sample
from dagster_streamtables.runtime.observe.events import WARN_BEFORE
from dagster_streamtables.setting import Predicate, Range, normalize_fields


def _is_cron(text: str) -> bool:
    """Whether Dagster accepts the text as a cron expression, so without seconds."""
    try:
        found = parse_schedule(text, min_schedule_seconds=0)
    except InvalidDefinition:
        return False
    return isinstance(found, Schedule) and len(text.split()) in (1, 5)


def _is_zone(text: str) -> bool:
    return text in zoneinfo.available_timezones()


MAX_LAG = timedelta(hours=1)
Cron = Annotated[str, Predicate(_is_cron, "a cron expression of five fields")]
Zone = Annotated[str, Predicate(_is_zone, "a time zone such as Europe/Berlin")]


@dataclass(frozen=True)
class CheckSettings:
    """When checks run, and how. The schedule of each is a cron expression of five fields, or None:
    then it runs only when launched by hand."""

    equality: Cron | None = "0 3 * * *"
    """When to compare tables with their queries, which costs a run of the query, for a sample."""
    state: Cron | None = "30 * * * *"
    """When to check the state of stored tables, which costs a scan of each."""
    columns: Cron | None = "15 * * * *"
    """When to check the columns of tables and sources."""
    quick: Annotated[timedelta, Range(0)] | None = timedelta(minutes=5)
    """How often the sensor evaluates freshness and retention, which read only logs. Every refresh
    evaluates them, too. `None`, in YAML `null`, turns this off."""
    freshness: Cron | None = None
    """When to check freshness in a separate run."""
    retention: Cron | None = None
    """When to check retention in a separate run."""
    pinned: Cron | None = "*/15 * * * *"
    """When to check that the slots of change assets hold what their next runs need."""
    lag: Cron | None = "*/15 * * * *"
    """When to check how far the slots of change assets are behind."""
    origin: Cron | None = "0 4 * * *"
    """When to compare replicated tables with their origin, which reads the origin as a whole."""
    replication: Cron | None = "*/15 * * * *"
    """When to check that the slots of replications are there, and how far they are behind."""
    timezone: Zone = "UTC"
    """The time zone of the cron expressions."""
    enabled: bool = True
    """Whether the schedules are on until somebody switches them in the UI."""
    sample: Sample | None = 0.05
    """The fraction of rows that the equality check compares, such as 0.01. `None`, in YAML `null`,
    means all."""
    grace: Annotated[timedelta, Range(0)] = timedelta()
    """The time that a refresh may take, which the freshness check adds to the schedule."""
    warn_before: Annotated[timedelta, Range(0)] = WARN_BEFORE
    """How long before history may be lost, or a slot let go, the check of it fails."""

    max_lag: Annotated[timedelta, Range(0)] = MAX_LAG
    """The age of a change from which on the lag check of a change asset, or of a replicated table,
    fails."""

    def __post_init__(self) -> None:
        normalize_fields(self)

    @property
    def status(self) -> dg.DefaultScheduleStatus:
        """The default status of the schedules."""
        on, off = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
        return on if self.enabled else off
