"""Declarations → what is expected of each table: its schedule, resolved through who reads it."""

from __future__ import annotations

from collections.abc import Iterable

from dagster_streamtables.orchestration.declare.analyze import Examined, examine
from dagster_streamtables.orchestration.declare.load import Declared
from dagster_streamtables.orchestration.declare.schedule import MIN_SCHEDULE_SECONDS
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.status import Expected


def expected_tables(
    tables: Iterable[Declared], *, min_schedule_seconds: float = MIN_SCHEDULE_SECONDS
) -> list[Expected]:
    """What `Lake.monitor` needs to tell which tables are stale; reads no table.

    Args:
        tables: The declarations, broken ones among them, views in their places.
        min_schedule_seconds: Schedules that are tighter are broken ones.
    """
    examined = examine(tables, min_schedule_seconds=min_schedule_seconds)
    return [expected(each) for each in examined]


def expected(examined: Examined) -> Expected:
    """What is expected of one table."""
    declared = examined.declared if isinstance(examined.declared, StreamTable) else None
    return Expected(
        name=examined.name,
        table=None if examined.error is not None else declared,
        schedule=examined.schedule,
        resolved="" if examined.error is not None else examined.resolved_schedule,
        problem=examined.error,
    )
