"""Freshness policies of Dagster, derived from the schedule of a table.

A policy judges by the last materialization. So it also reports that the sensor is off, or that
refreshes fail. A table whose sources do not change is not materialized; the sensor marks it fresh
before the policy would warn, and each mark is a materialization in the list where people look for
the last change. So no window is shorter than five minutes: an idle table is marked less often than
a busy one is refreshed. The check `reflects_its_sources` is exact to the second.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import dagster as dg
from croniter import croniter

from dagster_streamtables.dagster_private import (
    CheckError,
    CronFreshnessPolicy,
    TimeWindowFreshnessPolicy,
)
from dagster_streamtables.declare.schedule import Cron, Schedule

_SHORTEST_WINDOW = 300.0
_WARNING = 60.0
"""Seconds in which the shortest window warns before it fails."""
_HOUR = timedelta(hours=1)


@lru_cache(maxsize=1024)
def freshness_policy(schedule: Schedule | None) -> dg.FreshnessPolicy | None:
    """The policy for a schedule; None for a table that is refreshed on demand.

    Kept, since many tables have one schedule: Dagster takes 20 ms to judge a cron expression.
    """
    if schedule is None:
        return None
    if isinstance(schedule, Cron) and not schedule.has_seconds:
        dense = schedule.shortest_gap() < _SHORTEST_WINDOW
        if (policy := None if dense else _cron_policy(schedule)) is not None:
            return policy
    gap = schedule.longest_gap()
    return dg.FreshnessPolicy.time_window(
        fail_window=timedelta(seconds=max(2 * gap, _SHORTEST_WINDOW)),
        warn_window=timedelta(seconds=max(gap, _SHORTEST_WINDOW - _WARNING)),
    )


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
    """Dagster judges at a deadline: a table must be materialized within the time before it.

    A refresh has an hour from its tick. Where the hour of the expression cannot be moved, it has
    until the next tick, so that a missing refresh shows one period later.
    """
    gap = timedelta(seconds=cron.shortest_gap())
    deadline = _an_hour_later(cron.expression) if gap > _HOUR else None
    try:
        return dg.FreshnessPolicy.cron(
            deadline_cron=deadline or cron.expression,
            lower_bound_delta=_HOUR if deadline else gap,
            timezone=cron.timezone,
        )
    except CheckError:  # Dagster does not support it, such as the second Monday of a month
        return None


def _an_hour_later(expression: str) -> str | None:
    """A cron expression whose ticks come an hour later; None if that moves some to the next day,
    and it does not tick every day.

    >>> _an_hour_later("30 6,23 * * *"), _an_hour_later("30 6,23 * * 1")
    ('30 7,0 * * *', None)
    """
    minute, _, *days = expression.split()
    hours = croniter.expand(expression)[0][1]
    if hours == ["*"] or (23 in hours and days != ["*"] * 3):
        return None
    return " ".join([minute, ",".join(str((int(hour) + 1) % 24) for hour in hours), *days])
