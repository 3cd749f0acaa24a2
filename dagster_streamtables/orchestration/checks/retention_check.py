"""The retention check: do the sources still keep what the next refresh of a stream table needs?

A table that is suspended, or refreshed once in a quarter, can come too late; then it is built anew,
which a warning days before can spare. The check reads logs only, and starts no Spark.
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
    """A check for each stream table, in one op: its sources keep what its next refresh needs.

    It fails where that may be gone soon, or is gone; the next refresh is exact all the same, and
    has to run the whole query.

    Args:
        tables: The stream tables.
        name: The name of the op.
        warn_before: Fail so long before the history may be gone.
        severity: Of a failure.
        catalog: As for `build_catalog`; and `resource_key`, that of the `StreamTablesResource`.
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
    """Whether the sources of a table keep what its next refresh needs."""
    found = lake.retention.of(table.name)
    said = [each for health in found if (each := health.warning(warn_before))]
    return dg.AssetCheckResult(
        passed=not said,
        severity=severity,
        description="; ".join(said) or "Everything that the next refresh needs is there.",
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
        "gone" if health.newest is None else health.newest,
        "unknown" if behind is None else str(behind),
        health.capture,
        "all" if left is None else f"{left / 3600:.1f}",
        health.lost,
    )
