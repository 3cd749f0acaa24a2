"""Stream tables: Delta tables defined by a query, kept up to date by the change of the query.

    text ──▶ compiler ──▶ Plan ──▶ runtime ──▶ Refresh ──▶ orchestration ──▶ Dagster

`compiler` turns a SELECT into a plan of how its result changes when its sources do; it needs
neither Spark nor Dagster. `runtime` runs plans on Spark and commits the result with its frontier;
it does not know who called it. `orchestration` decides when, and tells Dagster what happened.

Names are imported when they are first used, so a program that only refreshes tables never loads
Dagster, and a code location that only defines them never loads Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster_streamtables.compiler.views import View
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
        StreamTablesResource,
        StreamTablesTranslator,
        alter_table,
        build_definitions,
        build_equality_checks,
        build_equality_schedule,
        build_refresh_sensor,
        build_retention_checks,
        build_retention_schedule,
        build_source_assets,
        build_stream_table_assets,
        expected_tables,
        find_problems,
        load_tables,
        stream_table_assets,
    )
    from dagster_streamtables.runtime.compare import Comparison
    from dagster_streamtables.runtime.lake import Lake
    from dagster_streamtables.runtime.report import Action, Refresh, Window
    from dagster_streamtables.runtime.table import CdcMode, Mode, OnSchemaChange, StreamTable

_WHERE = {
    "Action": "runtime.report",
    "CdcMode": "runtime.table",
    "Comparison": "runtime.compare",
    "ConflictingCommit": "errors",
    "DamagedTable": "errors",
    "EnvironmentProblem": "errors",
    "FailedQuery": "errors",
    "InvalidDefinition": "errors",
    "LostSpark": "errors",
    "Lake": "runtime.lake",
    "Mode": "runtime.table",
    "OnSchemaChange": "runtime.table",
    "Refresh": "runtime.report",
    "RefusedOperation": "errors",
    "SourceProblem": "errors",
    "StreamTable": "runtime.table",
    "StreamTablesCollector": "metrics",
    "StreamTablesError": "errors",
    "StreamTablesResource": "orchestration",
    "StreamTablesTranslator": "orchestration",
    "SuspendedTable": "errors",
    "UnsupportedQuery": "errors",
    "View": "compiler.views",
    "Window": "runtime.report",
    "alter_table": "orchestration",
    "build_definitions": "orchestration",
    "build_equality_checks": "orchestration",
    "build_equality_schedule": "orchestration",
    "build_refresh_sensor": "orchestration",
    "build_retention_checks": "orchestration",
    "build_retention_schedule": "orchestration",
    "build_source_assets": "orchestration",
    "build_stream_table_assets": "orchestration",
    "expected_tables": "orchestration",
    "find_problems": "orchestration",
    "load_tables": "orchestration",
    "stream_table_assets": "orchestration",
}

__all__ = [
    "Action",
    "CdcMode",
    "Comparison",
    "ConflictingCommit",
    "DamagedTable",
    "EnvironmentProblem",
    "FailedQuery",
    "InvalidDefinition",
    "Lake",
    "LostSpark",
    "Mode",
    "OnSchemaChange",
    "Refresh",
    "RefusedOperation",
    "SourceProblem",
    "StreamTable",
    "StreamTablesCollector",
    "StreamTablesError",
    "StreamTablesResource",
    "StreamTablesTranslator",
    "SuspendedTable",
    "UnsupportedQuery",
    "View",
    "Window",
    "alter_table",
    "build_definitions",
    "build_equality_checks",
    "build_equality_schedule",
    "build_refresh_sensor",
    "build_retention_checks",
    "build_retention_schedule",
    "build_source_assets",
    "build_stream_table_assets",
    "expected_tables",
    "find_problems",
    "load_tables",
    "stream_table_assets",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
