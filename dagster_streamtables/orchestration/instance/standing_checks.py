"""Check results that still stand after a table was materialized.

Dagster shows the result of a check until the next materialization, and "Not evaluated" after it. Of
a table that is refreshed every minute, a check that runs every hour would hardly ever be seen. So
the last result is told again with the materialization: as it was, where the rows are those that the
check looked at, and else with a word of when that was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

import dagster as dg
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus,
)
from dagster_shared.record import replace

from dagster_streamtables.orchestration.catalog.metadata import EVALUATED
from dagster_streamtables.orchestration.instance.last_runs import History

COMPLETED = (AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED)
_SINCE = "\n\nEvaluated before the last refresh, at "


def standing(
    instance: dg.DagsterInstance,
    checks: Collection[dg.AssetCheckKey],
    fresh: Mapping[dg.AssetKey, History],
) -> Iterator[dg.AssetCheckEvaluation]:
    """The results to be told again after tables were marked fresh, without a run: those since their
    last materialization. Once is enough: a result without a run is shown beside every
    materialization without a run.

    Args:
        instance: Where they are.
        checks: All checks; those of other tables may be among them.
        fresh: What happened to each table before it is marked.
    """
    wanted = [check for check in checks if check.asset_key in fresh]
    for check, record in completed(instance, wanted).items():
        last = fresh[check.asset_key].last
        if not record.run_id or last is None or record.event is None:
            continue
        if record.event.timestamp >= last.timestamp():
            yield _untargeted(record)


def carried(
    instance: dg.DagsterInstance, checks: Collection[dg.AssetCheckKey], *, changed: bool
) -> Iterator[dg.AssetCheckEvaluation]:
    """The results to be told again in the run that refreshed their table.

    Those that the run itself evaluates are planned in it, and are left to it.

    Args:
        instance: Where they are.
        checks: The checks of the table.
        changed: Whether its rows are others than those that the checks looked at.
    """
    for record in completed(instance, checks).values():
        told = _untargeted(record)
        when = told.metadata.get(EVALUATED)
        if when is None and not changed:
            yield told
            continue
        # The time of the evaluation itself, however many refreshes have told it again since.
        at = when.value if isinstance(when, dg.TimestampMetadataValue) else record.create_timestamp
        said = (told.description or "").split(_SINCE)[0]
        yield replace(
            told,
            description=f"{said}{_SINCE}{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC.",
            metadata={**told.metadata, EVALUATED: dg.MetadataValue.timestamp(at)},
        )


def completed(
    instance: dg.DagsterInstance, checks: Collection[dg.AssetCheckKey]
) -> dict[dg.AssetCheckKey, AssetCheckExecutionRecord]:
    """The last execution of each check, where that has a result."""
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(checks))
    return {
        check: record
        for check, record in found.items()
        if record.status in COMPLETED and record.evaluation is not None
    }


def _untargeted(record: AssetCheckExecutionRecord) -> dg.AssetCheckEvaluation:
    """It names the materialization that it looked at, which is the last no more."""
    assert record.evaluation is not None
    return replace(record.evaluation, target_materialization_data=None)
