"""All checks of a code location, and their schedules."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import dagster as dg

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.catalog.asset_catalog import (
    RESOURCE_KEY,
    Tables,
    build_catalog,
)
from dagster_streamtables.orchestration.checks.check_kind import CheckSettings, check_schedule
from dagster_streamtables.orchestration.checks.table_checks import KINDS


def build_table_checks(
    *,
    tables: Tables,
    kinds: Collection[str] | None = None,
    settings: CheckSettings | None = None,
    severity: dg.AssetCheckSeverity | None = None,
    name: str = RESOURCE_KEY,
    resource_key: str = RESOURCE_KEY,
    **catalog: Any,
) -> list[dg.AssetChecksDefinition]:
    """The checks of all stream tables that are not broken: one op for each kind.

    No check blocks a refresh. Each fails also if it cannot be evaluated, with the error.

    Args:
        tables: The stream tables.
        kinds: Some of ``equality``, ``state``, ``columns``, ``freshness`` and ``retention``; None
            for all.
        settings: How they are evaluated. Their schedules are for `build_check_schedule`.
        severity: The severity of a failure; None for that of each kind. Freshness has its own.
        name: The prefix of the names of the ops.
        resource_key: The key of the `StreamTablesResource`.
        catalog: Arguments of `build_catalog`.

    Raises:
        InvalidDefinition: A kind does not exist.
    """
    known = {kind.kind: kind for kind in KINDS}
    if unknown := sorted({*(kinds or ())} - known.keys()):
        raise InvalidDefinition(
            f'there is no kind of check "{unknown[0]}"', fix=f"choose of {', '.join(known)}"
        )
    built, settings = build_catalog(tables, **catalog), settings or CheckSettings()
    if not built.sound:
        return []
    return [
        kind.op(settings, name, resource_key, catalog=built, severity=severity)
        for kind in KINDS
        if kinds is None or kind.kind in kinds
    ]


def build_check_schedule(
    check_name: str,
    cron: str,
    *,
    tables: Tables,
    name: str | None = None,
    timezone: str = "UTC",
    default_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED,
    executor: dg.ExecutorDefinition | None = dg.in_process_executor,
    **catalog: Any,
) -> dg.ScheduleDefinition:
    """A schedule that runs one kind of check for all the tables.

    Args:
        check_name: The name of the check, such as ``equals_recomputation``.
        cron: A cron expression of five fields.
        tables: The stream tables.
        name: The name of the schedule.
        timezone: The time zone of the cron expression.
        default_status: Whether the schedule is on until a user switches it in the UI.
        executor: The executor of the runs; None for that of the code location.
        catalog: Arguments of `build_catalog`.
    """
    return check_schedule(
        check_name,
        [entry.key for entry in build_catalog(tables, **catalog).sound],
        cron,
        of="stream table",
        name=name or f"streamtables_{check_name}_schedule",
        timezone=timezone,
        status=default_status,
        executor=executor,
    )
