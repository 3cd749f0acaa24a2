"""Freshness policies: what Dagster watches, derived from the schedule that refreshes.

The policy is a monitor and drives nothing. It tells that nobody looks at a table any more: its
sensor is off, or its refreshes fail. It counts from the last materialization. A table of which
nothing moved has none, so the sensor marks it fresh in time; but a mark is a materialization too,
in a list where people look for the last change. So no window is tighter than an hour. That a table
is late by a minute is told by the check `reflects_its_sources`, which counts from the rows that the
table lacks.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg
from croniter import croniter
from dagster._core.definitions.freshness import CronFreshnessPolicy, TimeWindowFreshnessPolicy
from dagster_shared.check import CheckError

from dagster_streamtables.orchestration.declare.schedule import Cron, Schedule

_SHORTEST_WINDOW = 3600.0


def freshness_policy(schedule: Schedule | None) -> dg.FreshnessPolicy | None:
    """The policy of a schedule; None for a table that is refreshed on demand."""
    if schedule is None:
        return None
    if isinstance(schedule, Cron) and not schedule.has_seconds:
        dense = schedule.shortest_gap() < _SHORTEST_WINDOW
        return (None if dense else _cron_policy(schedule)) or _window_policy(schedule)
    return _window_policy(schedule)


def passes(policy: dg.FreshnessPolicy, last: datetime, at: datetime) -> bool:
    """Whether Dagster calls a table fresh at a time, without a warning, that was last materialized
    at another."""
    if isinstance(policy, CronFreshnessPolicy):
        ticks = croniter(policy.deadline_cron, at.astimezone(ZoneInfo(policy.timezone)))
        deadline: datetime = ticks.get_prev(datetime)
        return last >= deadline - policy.lower_bound_delta
    if isinstance(policy, TimeWindowFreshnessPolicy):
        return at - last < (policy.warn_window or policy.fail_window).to_timedelta()
    return False


def _cron_policy(cron: Cron) -> dg.FreshnessPolicy | None:
    try:
        return dg.FreshnessPolicy.cron(
            deadline_cron=cron.expression,
            lower_bound_delta=timedelta(seconds=cron.shortest_gap()),
            timezone=cron.timezone,
        )
    except CheckError:  # a tick that Dagster cannot express, such as the second Monday
        return None


def _window_policy(schedule: Schedule) -> dg.FreshnessPolicy:
    fail = timedelta(seconds=max(_SHORTEST_WINDOW, 2 * schedule.longest_gap()))
    return dg.FreshnessPolicy.time_window(fail_window=fail, warn_window=fail / 2)
