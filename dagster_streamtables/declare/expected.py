"""Declarations → the expected schedule of each table, its own or inherited from its readers."""

from __future__ import annotations

from collections.abc import Iterable

from dagster_streamtables.declare.analyze import TableAnalysis, analyze_tables
from dagster_streamtables.declare.load import Declared
from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.status import TableDeclaration


def expected_tables(
    tables: Iterable[Declared], *, min_schedule_seconds: float = MIN_SCHEDULE_SECONDS
) -> list[TableDeclaration]:
    """The input that `Lake.monitor` needs to decide which tables are stale. Reads no table.

    Args:
        tables: The declarations, including broken ones, with their views.
        min_schedule_seconds: Treat shorter schedules as broken.
    """
    examined = analyze_tables(tables, min_schedule_seconds=min_schedule_seconds)
    return [table_declaration(each) for each in examined]


def table_declaration(examined: TableAnalysis) -> TableDeclaration:
    """The expectation for one table."""
    declared = examined.declared if isinstance(examined.declared, StreamTable) else None
    return TableDeclaration(
        name=examined.name,
        table=None if examined.error is not None else declared,
        schedule=examined.schedule,
        resolved="" if examined.error is not None else examined.resolved_schedule,
        problem=examined.error,
    )
