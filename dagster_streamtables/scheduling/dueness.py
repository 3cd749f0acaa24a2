"""Which tables are due, and what to do with them: pure functions of schedules, states and the time.

The sensor is level-triggered: each tick evaluates the current state, not the events since the last
tick. So nothing has to be repaired after a lost tick, a restart, or a failed run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random
from typing import Annotated

from dagster_streamtables.declare import graph
from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS, Schedule
from dagster_streamtables.setting import Range, normalize_fields

_MORE = 0.25
_SENSOR_LOOP = 5
"""Seconds between two ticks that Dagster's daemon allows."""
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Backoff:
    """The delay before a failed table is retried. It doubles with each failure in a row.

    Each table adds up to a quarter of its own, so that tables which failed together, for the same
    reason, do not retry together.
    """

    first: Annotated[timedelta, Range(0, above=True)] = timedelta(seconds=30)
    longest: Annotated[timedelta, Range(0, above=True)] = timedelta(hours=1)

    def __post_init__(self) -> None:
        normalize_fields(self)

    def until(self, failures: int, failed_at: datetime) -> datetime:
        """When to retry: always the same time for the same failure.

        Examples:
            >>> at = datetime(2026, 1, 1, tzinfo=UTC)
            >>> [int((Backoff().until(n, at) - at).total_seconds()) for n in (1, 2, 3, 100)]
            [35, 70, 141, 4246]
        """
        # The exponent is bounded so that years of failures do not overflow.
        pause = min(self.longest, self.first * 2 ** min(failures - 1, 30))
        return failed_at + pause * (1 + _MORE * Random(failed_at.timestamp()).random())


@dataclass(frozen=True)
class RefreshState:
    """One stream table, or replication, at one moment."""

    work: tuple[str, ...] = ()
    """What a refresh would have to do, each a clause; empty if it would find nothing."""
    redefined: bool = False
    """Whether that includes rows of another definition."""
    missing: tuple[str, ...] = ()
    """Sources that do not exist, if the table was never refreshed."""
    run: str = ""
    """The id of an unfinished run that refreshes it."""
    suspended: str = ""
    """Why it is suspended; empty if it is not."""
    by_hand: bool = False
    """It does not exist yet, and a person must start its first refresh."""
    failures: int = 0
    """Failed runs in a row, since its last materialization."""
    failed_at: datetime | None = None
    again_at: datetime | None = None
    """When it is tried again after an error that may pass by itself."""
    blocked: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sources whose rows it must not read, with the blocking asset check that says so. It may read
    them in a run that refreshes the source and evaluates the check before."""
    left: str = ""
    """Why it is left to another deployment, which refreshes it by another definition."""


@dataclass(frozen=True)
class TickPlan:
    """What one tick does with the tables that are due."""

    refresh: tuple[str, ...] = ()
    """Tables to refresh, each after those it reads."""
    fresh: tuple[str, ...] = ()
    """Tables with nothing to do."""
    held: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tables not to refresh now, each with the reason."""


def due(
    schedules: Mapping[str, Schedule | None],
    reads: graph.Reads,
    last: Mapping[str, datetime | None],
    now: datetime,
) -> list[str]:
    """The tables that are due, in the order of `schedules`.

    These are the tables whose schedule has elapsed, and the tables without a schedule upstream of
    them: the refresh of a reader counts as a demand.
    """
    by_schedule = {
        name
        for name, schedule in schedules.items()
        if schedule is not None and due_at(schedule, last.get(name)) <= now
    }
    demanded = {
        source
        for name in by_schedule
        for source in graph.upstream(name, reads)
        if schedules.get(source) is None
    }
    wanted = by_schedule | demanded
    return [name for name in schedules if name in wanted]


@lru_cache(maxsize=10_000)  # a worker asks many times a second, and cron takes a while
def due_at(schedule: Schedule, last: datetime | None) -> datetime:
    """When the next refresh is due; long ago for a table that was never refreshed."""
    return schedule.due_at(last) if last is not None else _LONG_AGO


def too_fast(schedules: Mapping[str, Schedule | None], tick: float) -> Iterator[str]:
    """What a sensor that ticks every `tick` seconds says of schedules that runs do not keep, if
    there are any."""
    fast = [
        f"{name} ({schedule.text})"
        for name, schedule in schedules.items()
        if schedule is not None and schedule.shortest_gap() < MIN_SCHEDULE_SECONDS
    ]
    if fast:
        yield (
            f"Runs do not keep schedules below {MIN_SCHEDULE_SECONDS} s: these tables are "
            f"refreshed at most at each tick, every {max(tick, _SENSOR_LOOP):g} s, and a run takes "
            f"seconds to start; streamtables worker keeps them: {', '.join(fast)}."
        )


def decide(
    states: Mapping[str, RefreshState],
    reads: graph.Reads,
    now: datetime,
    backoff: Backoff,
    writers: Mapping[str, str] | None = None,
) -> TickPlan:
    """What to do with the tables that are due, which come each after those it reads. `writers` has,
    by source, the replication that is refreshed instead of it."""
    refresh: list[str] = []
    fresh: list[str] = []
    held: dict[str, str] = {}
    busy: set[str] = set()
    for name, state in states.items():
        above = [source for source in reads[name] if source in states]
        not_now = [s for s in state.missing if (writers or {}).get(s, s) not in refresh]
        blocks = [w for s, w in state.blocked.items() if (writers or {}).get(s, s) not in refresh]
        blocks = blocks if state.work else []
        reason = _hold_reason(state, [s for s in above if s in busy], not_now, blocks, now, backoff)
        if reason:
            held[name] = reason
            busy |= {name} if state.run or any(s in busy for s in above) else set()
        elif state.work or any(source in refresh for source in above):
            refresh.append(name)
        elif waits := [source for source in above if source in held]:
            # It reflects its sources, but to mark it fresh would hide that one of them is held.
            held[name] = f"waits for {waits[0]}"
        else:
            fresh.append(name)
    return TickPlan(tuple(refresh), tuple(fresh), held)


def runs(
    decision: TickPlan,
    schedules: Mapping[str, Schedule | None],
    last: Mapping[str, datetime | None],
    reads: graph.Reads,
) -> list[list[str]]:
    """The tables to refresh, grouped into runs; the run with the earliest deadline first."""

    def tightest(group: list[str]) -> datetime:
        return min(deadline(schedules[name], last.get(name)) for name in group)

    return sorted(graph.group_by_connection(decision.refresh, reads), key=tightest)


def deadline(schedule: Schedule | None, last: datetime | None) -> datetime:
    """When a table becomes late: long ago if it was never refreshed, never without a schedule."""
    if schedule is None:
        return datetime.max.replace(tzinfo=UTC)
    return schedule.deadline(last) if last is not None else _LONG_AGO


def _hold_reason(
    state: RefreshState,
    busy: list[str],
    missing: list[str],
    blocks: list[str],
    now: datetime,
    backoff: Backoff,
) -> str:
    """Why a due table is not refreshed in this tick; empty if it is."""
    if state.run:
        return f"run {state.run[:8]} is refreshing it"
    if state.suspended:
        return f"suspended, {state.suspended}"
    if state.by_hand:
        return "its first refresh must be started by hand (initialize: false)"
    if state.left:
        return state.left
    if busy:
        return f"waits for {busy[0]}, which a run is refreshing"
    if blocks:
        return f"waits for a check: {blocks[0]}"
    if state.failures and state.failed_at is not None:
        until = backoff.until(state.failures, state.failed_at)
        if now < until:
            times = "once" if state.failures == 1 else f"{state.failures} times in a row"
            return f"failed {times}, next retry at {until:%H:%M:%S}"
    if state.again_at is not None and now < state.again_at:
        return f"is tried again at {state.again_at:%H:%M:%S}"
    return f"waits for {missing[0]}, which does not exist" if missing else ""
