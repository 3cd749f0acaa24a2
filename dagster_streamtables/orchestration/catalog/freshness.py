"""Freshness policies of Dagster, derived from the schedule of a table.

A policy only monitors. It reports tables that are no longer refreshed, because the sensor is off or
the refreshes fail. It counts from the last materialization. A table whose sources do not change is
not materialized, so the sensor marks it fresh before the policy's window ends; but each mark is a
materialization in the list where people look for the last change. So no window is shorter than an
hour. Shorter delays are for the check `reflects_its_sources`, which counts from the commit of the
first rows that the table does not reflect.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg
from croniter import croniter

# `FreshnessPolicy` has constructors, but no public way to read its windows.
from dagster._core.definitions.freshness import CronFreshnessPolicy, TimeWindowFreshnessPolicy

# What `FreshnessPolicy.cron` raises.
from dagster_shared.check import CheckError

from dagster_streamtables.orchestration.declare.schedule import Cron, Schedule

_SHORTEST_WINDOW = 3600.0


def freshness_policy(schedule: Schedule | None) -> dg.FreshnessPolicy | None:
    """The policy for a schedule; None for a table that is refreshed on demand."""
    if schedule is None:
        return None
    if isinstance(schedule, Cron) and not schedule.has_seconds:
        dense = schedule.shortest_gap() < _SHORTEST_WINDOW
        return (None if dense else _cron_policy(schedule)) or _window_policy(schedule)
    return _window_policy(schedule)


def passes(policy: dg.FreshnessPolicy, last: datetime, at: datetime) -> bool:
    """Whether Dagster shows a table that was last materialized at `last` as fresh, without a
    warning, at `at`."""
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
    except CheckError:  # Dagster does not support it, such as the second Monday of a month
        return None


def _window_policy(schedule: Schedule) -> dg.FreshnessPolicy:
    fail = timedelta(seconds=max(_SHORTEST_WINDOW, 2 * schedule.longest_gap()))
    return dg.FreshnessPolicy.time_window(fail_window=fail, warn_window=fail / 2)
