"""Repeats check results after a materialization.

After each materialization, Dagster shows a check as "Not evaluated" until it runs again. For a
table refreshed every minute, an hourly check would hardly ever show a result. So the last result is
repeated with each materialization: unchanged if the rows are the same, otherwise with the time of
its evaluation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

import dagster as dg

from dagster_streamtables.dagster_private import (
    AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus,
    replace as replace_record,
)
from dagster_streamtables.orchestration.catalog.metadata import EVALUATED
from dagster_streamtables.orchestration.instance.dagster_runs import AssetHistory

COMPLETED = (AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED)
_SINCE = "\n\nEvaluated before the last refresh, at "


def results_to_repeat(
    instance: dg.DagsterInstance,
    checks: Collection[dg.AssetCheckKey],
    fresh: Mapping[dg.AssetKey, AssetHistory],
) -> Iterator[dg.AssetCheckEvaluation]:
    """The check results to repeat when tables are marked fresh, without a run: those evaluated
    since the last materialization. Repeating one once is enough: Dagster shows a result without a
    run with every materialization without a run.

    Args:
        instance: The Dagster instance.
        checks: The checks, which may include those of other tables.
        fresh: The history of each table before it is marked.
    """
    wanted = [check for check in checks if check.asset_key in fresh]
    for check, record in last_results(instance, wanted).items():
        last = fresh[check.asset_key].last
        if not record.run_id or last is None or record.event is None:
            continue
        if record.event.timestamp >= last.timestamp():
            yield _without_target(record)


def results_to_carry(
    instance: dg.DagsterInstance, checks: Collection[dg.AssetCheckKey], *, changed: bool
) -> Iterator[dg.AssetCheckEvaluation]:
    """The last results of the checks of a table, to repeat in the run that refreshed it. `changed`:
    its rows have changed since. Checks that are planned in the run itself are left out: the run
    evaluates them."""
    for record in last_results(instance, checks).values():
        evaluation = _without_target(record)
        when = evaluation.metadata.get(EVALUATED)
        if when is None and not changed:
            yield evaluation
            continue
        # The time of the original evaluation, not that of a repetition.
        at = when.value if isinstance(when, dg.TimestampMetadataValue) else record.create_timestamp
        said = (evaluation.description or "").split(_SINCE)[0]
        yield replace_record(
            evaluation,
            description=f"{said}{_SINCE}{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC.",
            metadata={**evaluation.metadata, EVALUATED: dg.MetadataValue.timestamp(at)},
        )


def last_results(
    instance: dg.DagsterInstance, checks: Collection[dg.AssetCheckKey]
) -> dict[dg.AssetCheckKey, AssetCheckExecutionRecord]:
    """The last execution of each check, if it has a result."""
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(checks))
    return {
        check: record
        for check, record in found.items()
        if record.status in COMPLETED and record.evaluation is not None
    }


def without_record(
    instance: dg.DagsterInstance, checks: Collection[dg.AssetCheckKey]
) -> list[dg.AssetCheckKey]:
    """The checks that no run ever evaluated, and that the present one will not."""
    if not checks:
        return []
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(checks))
    return [check for check in checks if check not in found]


def _without_target(record: AssetCheckExecutionRecord) -> dg.AssetCheckEvaluation:
    """The evaluation without its target, a materialization that is no longer the last."""
    assert record.evaluation is not None
    return replace_record(record.evaluation, target_materialization_data=None)
