"""Freshness policies: what Dagster watches, derived from the schedule that refreshes.

The policy is a monitor and drives nothing. It allows twice the duration before it fails, because a
refresh that starts in time still needs time to finish.
"""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
from dagster_shared.check import CheckError

from dagster_streamtables.orchestration.schedule import Cron, Schedule

# Dagster accepts no shorter window.
_SHORTEST_WINDOW = 60.0


def freshness_policy(schedule: Schedule | None) -> dg.FreshnessPolicy | None:
    """The policy of a schedule; None for a table that is refreshed on demand."""
    if schedule is None:
        return None
    if isinstance(schedule, Cron) and not schedule.has_seconds:
        return _cron_policy(schedule) or _window_policy(schedule)
    return _window_policy(schedule)


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
    longest = schedule.longest_gap()
    fail = max(_SHORTEST_WINDOW, 2 * longest)
    warn = timedelta(seconds=longest) if _SHORTEST_WINDOW <= longest < fail else None
    return dg.FreshnessPolicy.time_window(fail_window=timedelta(seconds=fail), warn_window=warn)
