"""Stream tables: Delta tables defined by a query, kept up to date by the change of the query.

    text ──▶ compiler ──▶ Plan ──▶ runtime ──▶ Refresh ──▶ orchestration ──▶ Dagster

`compiler` turns a SELECT into a plan of how its result changes when its sources do; it needs
neither Spark nor Dagster. `runtime` runs plans on Spark and commits the result with its frontier;
it does not know who called it. `orchestration` decides when, and tells Dagster what happened;
`components` is the same in YAML.

Names are imported when they are first used, so a program that only refreshes tables never loads
Dagster, and a code location that only defines them never loads Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster_streamtables.compiler.views import View
    from dagster_streamtables.components import StreamTablesComponent
    from dagster_streamtables.errors import (
        ConflictingCommit,
        DamagedTable,
        EnvironmentProblem,
        FailedQuery,
        InvalidDefinition,
        LostSpark,
        RefusedOperation,
        SourceProblem,
        StreamTablesError,
        SuspendedTable,
        UnsupportedQuery,
    )
    from dagster_streamtables.metrics import StreamTablesCollector
    from dagster_streamtables.orchestration import (
        Alert,
        AlertKind,
        CheckSettings,
        StreamTablesResource,
        StreamTablesTranslator,
        alter_table,
        build_alert_sensor,
        build_check_schedule,
        build_definitions,
        build_equality_checks,
        build_freshness_checks,
        build_refresh_sensor,
        build_retention_checks,
        build_schema_checks,
        build_source_assets,
        build_state_checks,
        build_stream_table_assets,
        expected_tables,
        find_problems,
        load_tables,
        log_alert,
        stream_table_assets,
        threads_executor,
    )
    from dagster_streamtables.orchestration.io_manager import StreamTablesIOManager, VisibleColumns
    from dagster_streamtables.runtime.compare import Comparison
    from dagster_streamtables.runtime.definition import visible_columns
    from dagster_streamtables.runtime.lake import Lake
    from dagster_streamtables.runtime.report import Action, Refresh, Window
    from dagster_streamtables.runtime.settings import delta_settings
    from dagster_streamtables.runtime.table import (
        CdcMode,
        Mode,
        OnManualWrite,
        OnSchemaChange,
        StreamTable,
    )

_WHERE = {
    "Action": "runtime.report",
    "Alert": "orchestration",
    "AlertKind": "orchestration",
    "CdcMode": "runtime.table",
    "CheckSettings": "orchestration",
    "Comparison": "runtime.compare",
    "ConflictingCommit": "errors",
    "DamagedTable": "errors",
    "EnvironmentProblem": "errors",
    "FailedQuery": "errors",
    "InvalidDefinition": "errors",
    "Lake": "runtime.lake",
    "LostSpark": "errors",
    "Mode": "runtime.table",
    "OnManualWrite": "runtime.table",
    "OnSchemaChange": "runtime.table",
    "Refresh": "runtime.report",
    "RefusedOperation": "errors",
    "SourceProblem": "errors",
    "StreamTable": "runtime.table",
    "StreamTablesCollector": "metrics",
    "StreamTablesComponent": "components",
    "StreamTablesError": "errors",
    "StreamTablesIOManager": "orchestration.io_manager",
    "StreamTablesResource": "orchestration",
    "StreamTablesTranslator": "orchestration",
    "SuspendedTable": "errors",
    "UnsupportedQuery": "errors",
    "View": "compiler.views",
    "VisibleColumns": "orchestration.io_manager",
    "Window": "runtime.report",
    "alter_table": "orchestration",
    "build_alert_sensor": "orchestration",
    "build_check_schedule": "orchestration",
    "build_definitions": "orchestration",
    "build_equality_checks": "orchestration",
    "build_freshness_checks": "orchestration",
    "build_refresh_sensor": "orchestration",
    "build_retention_checks": "orchestration",
    "build_schema_checks": "orchestration",
    "build_source_assets": "orchestration",
    "build_state_checks": "orchestration",
    "build_stream_table_assets": "orchestration",
    "delta_settings": "runtime.settings",
    "expected_tables": "orchestration",
    "find_problems": "orchestration",
    "load_tables": "orchestration",
    "log_alert": "orchestration",
    "stream_table_assets": "orchestration",
    "threads_executor": "orchestration",
    "visible_columns": "runtime.definition",
}

__all__ = [
    "Action",
    "Alert",
    "AlertKind",
    "CdcMode",
    "CheckSettings",
    "Comparison",
    "ConflictingCommit",
    "DamagedTable",
    "EnvironmentProblem",
    "FailedQuery",
    "InvalidDefinition",
    "Lake",
    "LostSpark",
    "Mode",
    "OnManualWrite",
    "OnSchemaChange",
    "Refresh",
    "RefusedOperation",
    "SourceProblem",
    "StreamTable",
    "StreamTablesCollector",
    "StreamTablesComponent",
    "StreamTablesError",
    "StreamTablesIOManager",
    "StreamTablesResource",
    "StreamTablesTranslator",
    "SuspendedTable",
    "UnsupportedQuery",
    "View",
    "VisibleColumns",
    "Window",
    "alter_table",
    "build_alert_sensor",
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
    "delta_settings",
    "expected_tables",
    "find_problems",
    "load_tables",
    "log_alert",
    "stream_table_assets",
    "threads_executor",
    "visible_columns",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
