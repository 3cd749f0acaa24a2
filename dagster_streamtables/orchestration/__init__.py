"""Stream tables ↔ Dagster: when to refresh, and a record of what happened. Never how to refresh.

Names are imported when they are first used: declarations, schedules and the graph need no Dagster,
which takes a second to load.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster_streamtables.orchestration.alert_sensor import build_alert_sensor
    from dagster_streamtables.orchestration.alerts import Alert, AlertKind, log_alert
    from dagster_streamtables.orchestration.alter import alter_table
    from dagster_streamtables.orchestration.assets import (
        RefreshConfig,
        build_source_assets,
        build_stream_table_assets,
        stream_table_assets,
    )
    from dagster_streamtables.orchestration.catalog import Catalog, build_catalog
    from dagster_streamtables.orchestration.check_settings import CheckSettings
    from dagster_streamtables.orchestration.checks import (
        build_check_schedule,
        build_equality_checks,
    )
    from dagster_streamtables.orchestration.definitions import build_definitions
    from dagster_streamtables.orchestration.dueness import Backoff
    from dagster_streamtables.orchestration.examine import Problem, find_problems
    from dagster_streamtables.orchestration.expected import expected_tables
    from dagster_streamtables.orchestration.load import (
        BrokenTable,
        declare,
        load_tables,
        read_folder,
    )
    from dagster_streamtables.orchestration.resource import StreamTablesResource
    from dagster_streamtables.orchestration.retention import build_retention_checks
    from dagster_streamtables.orchestration.schedule import Cron, Duration, parse_schedule
    from dagster_streamtables.orchestration.sensor import build_refresh_sensor
    from dagster_streamtables.orchestration.state_checks import (
        build_freshness_checks,
        build_schema_checks,
        build_state_checks,
    )
    from dagster_streamtables.orchestration.threads import threads_executor
    from dagster_streamtables.orchestration.tick import SensorSettings
    from dagster_streamtables.orchestration.translator import (
        StreamTableProps,
        StreamTablesTranslator,
    )

_WHERE = {
    "Alert": "alerts",
    "AlertKind": "alerts",
    "Backoff": "dueness",
    "BrokenTable": "load",
    "Catalog": "catalog",
    "CheckSettings": "check_settings",
    "Cron": "schedule",
    "Duration": "schedule",
    "Problem": "examine",
    "RefreshConfig": "assets",
    "SensorSettings": "tick",
    "StreamTableProps": "translator",
    "StreamTablesResource": "resource",
    "StreamTablesTranslator": "translator",
    "alter_table": "alter",
    "build_alert_sensor": "alert_sensor",
    "build_catalog": "catalog",
    "build_check_schedule": "checks",
    "build_definitions": "definitions",
    "build_equality_checks": "checks",
    "build_freshness_checks": "state_checks",
    "build_refresh_sensor": "sensor",
    "build_retention_checks": "retention",
    "build_schema_checks": "state_checks",
    "build_source_assets": "assets",
    "build_state_checks": "state_checks",
    "build_stream_table_assets": "assets",
    "declare": "load",
    "expected_tables": "expected",
    "find_problems": "examine",
    "load_tables": "load",
    "log_alert": "alerts",
    "parse_schedule": "schedule",
    "read_folder": "load",
    "stream_table_assets": "assets",
    "threads_executor": "threads",
}

__all__ = [
    "Alert",
    "AlertKind",
    "Backoff",
    "BrokenTable",
    "Catalog",
    "CheckSettings",
    "Cron",
    "Duration",
    "Problem",
    "RefreshConfig",
    "SensorSettings",
    "StreamTableProps",
    "StreamTablesResource",
    "StreamTablesTranslator",
    "alter_table",
    "build_alert_sensor",
    "build_catalog",
    "build_check_schedule",
    "build_definitions",
    "build_equality_checks",
    "build_freshness_checks",
    "build_refresh_sensor",
    "build_retention_checks",
    "build_schema_checks",
    "build_source_assets",
    "build_state_checks",
    "build_stream_table_assets",
    "declare",
    "expected_tables",
    "find_problems",
    "load_tables",
    "log_alert",
    "parse_schedule",
    "read_folder",
    "stream_table_assets",
    "threads_executor",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
