"""The retention check: do the sources still keep what the next refresh of a stream table needs?

A table that is suspended, or refreshed once a quarter, can lose that history, and is then
reinitialized. A warning days before avoids this. The check reads only logs and starts no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.checks.check_kind import WARN, Evaluation, TableCheck

if TYPE_CHECKING:
    from dagster_streamtables.runtime.observe.retention import SourceHealth


def history_is_kept(given: Evaluation) -> dg.AssetCheckResult:
    """Do the sources of a table keep what its next refresh needs?

    It fails if that history may be lost soon, or is lost. The next refresh is still exact, but has
    to run the whole query.
    """
    found = given.lake.retention.of(given.examined.name)
    said = [each for health in found if (each := health.warning(given.settings.warn_before))]
    return dg.AssetCheckResult(
        passed=not said,
        severity=given.severity,
        description="; ".join(said) or "The sources keep everything that the next refresh needs.",
        metadata={keys.HISTORY: _table(found)} if found else {},
    )


def _table(found: list[SourceHealth]) -> dg.TableMetadataValue:
    columns = ("source", "reflects", "newest", "bytes behind", "read by", "hours left", "lost")
    records = [dg.TableRecord(dict(zip(columns, _row(each), strict=True))) for each in found]
    return dg.MetadataValue.table(records)


def _row(health: SourceHealth) -> tuple[str | int, ...]:
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


RETENTION = TableCheck(
    "retention",
    "history_is_kept",
    "The sources keep what the next differential refresh needs.",
    history_is_kept,
    severity=WARN,
    from_logs=True,
)
