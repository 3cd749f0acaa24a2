"""The retention check: do the sources still keep what the next refresh of a stream table needs?

A table that is suspended, or refreshed once a quarter, can lose that history, and is then
reinitialized. A warning days before avoids this. The check reads only logs and starts no Spark.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.catalog import Tables
from dagster_streamtables.orchestration.catalog.lake_provider import LakeProvider
from dagster_streamtables.orchestration.catalog.metadata import read_definition
from dagster_streamtables.orchestration.checks.equality_check import checks_of_tables
from dagster_streamtables.runtime.observe.events import WARN_BEFORE

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake
    from dagster_streamtables.runtime.model.stream_table import StreamTable
    from dagster_streamtables.runtime.observe.retention import SourceHealth

CHECK_NAME = "history_is_kept"


def build_retention_checks(
    *,
    tables: Tables,
    name: str = "streamtables_retention",
    warn_before: timedelta = WARN_BEFORE,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN,
    **catalog: Any,
) -> dg.AssetChecksDefinition:
    """One op with a check for each stream table: its sources keep what its next refresh needs.

    It fails if that history may be lost soon, or is lost. The next refresh is still exact, but has
    to run the whole query.

    Args:
        tables: The stream tables.
        name: The name of the op.
        warn_before: How long before the history may be lost the check fails.
        severity: The severity of a failure.
        catalog: Arguments of `build_catalog`, and `resource_key`, the key of the
            `StreamTablesResource`.
    """

    def evaluate(provider: LakeProvider, spec: dg.AssetSpec) -> dg.AssetCheckResult:
        table = read_definition(spec.metadata)
        found = history_is_kept(provider.logs(), table, severity, warn_before)
        return found._replace(asset_key=spec.key, check_name=CHECK_NAME)

    description = "The sources keep what the next differential refresh needs."
    return checks_of_tables(name, CHECK_NAME, description, evaluate, tables=tables, **catalog)


def history_is_kept(
    lake: "Lake", table: "StreamTable", severity: dg.AssetCheckSeverity, warn_before: timedelta
) -> dg.AssetCheckResult:
    """The check result: do the sources of a table keep what its next refresh needs?"""
    found = lake.retention.of(table.name)
    said = [each for health in found if (each := health.warning(warn_before))]
    return dg.AssetCheckResult(
        passed=not said,
        severity=severity,
        description="; ".join(said) or "The sources keep everything that the next refresh needs.",
        metadata={keys.HISTORY: _table(found)} if found else {},
    )


def _table(found: "list[SourceHealth]") -> dg.TableMetadataValue:
    columns = ("source", "reflects", "newest", "bytes behind", "read by", "hours left", "lost")
    records = [dg.TableRecord(dict(zip(columns, _row(each), strict=True))) for each in found]
    return dg.MetadataValue.table(records)


def _row(health: "SourceHealth") -> tuple[str | int, ...]:
    behind, left = health.bytes_behind, health.seconds_left
    return (
        health.source,
        health.frontier,
        "missing" if health.newest is None else health.newest,
        "unknown" if behind is None else str(behind),
        health.capture,
        "all" if left is None else f"{left / 3600:.1f}",
        health.lost,
    )
