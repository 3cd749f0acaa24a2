"""Stream tables ↔ Dagster: when to refresh, and a record of what happened. Never how to refresh."""

from __future__ import annotations

from importlib.metadata import version

from dagster_shared.libraries import DagsterLibraryRegistry

from dagster_streamtables.orchestration.alert_sensor import build_alert_sensor
from dagster_streamtables.orchestration.alerts import Alert, AlertKind, log_alert
from dagster_streamtables.orchestration.assets import (
    RefreshConfig,
    build_source_assets,
    build_stream_table_assets,
    stream_table_assets,
)
from dagster_streamtables.orchestration.catalog import Catalog, build_catalog
from dagster_streamtables.orchestration.check_settings import CheckSettings
from dagster_streamtables.orchestration.checks import build_check_schedule, build_equality_checks
from dagster_streamtables.orchestration.definitions import build_definitions
from dagster_streamtables.orchestration.dueness import Backoff
from dagster_streamtables.orchestration.examine import Problem, find_problems
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
from dagster_streamtables.orchestration.tick import SensorSettings
from dagster_streamtables.orchestration.translator import StreamTableProps, StreamTablesTranslator

DagsterLibraryRegistry.register(
    "dagster-streamtables", version("dagster-streamtables"), is_dagster_package=False
)

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
    "find_problems",
    "load_tables",
    "log_alert",
    "parse_schedule",
    "read_folder",
    "stream_table_assets",
]
