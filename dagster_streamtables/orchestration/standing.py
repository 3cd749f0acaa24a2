"""Failed checks that still stand when a table is marked fresh.

Dagster shows the result of a check until the next materialization. Of a table of which nothing
moved that may be half a minute, and then it said "Not evaluated" of rows that are still wrong. A
result that was told without a run is shown beside every materialization without a run, so it is
told again once, and is seen until the check is evaluated again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster_shared.record import replace

from dagster_streamtables.orchestration.history import History


def standing(
    instance: dg.DagsterInstance,
    checks: Collection[dg.AssetCheckKey],
    fresh: Mapping[dg.AssetKey, History],
) -> Iterator[dg.AssetCheckEvaluation]:
    """The failures to be told again after the tables were marked fresh: those since their last
    materialization.

    Those that passed are not told again: there are many, and nobody has to act.

    Args:
        instance: Where they are.
        checks: All checks; those of other tables may be among them.
        fresh: What happened to each table before it is marked.
    """
    wanted = [check for check in checks if check.asset_key in fresh]
    storage = instance.event_log_storage
    for check, record in storage.get_latest_asset_check_execution_by_key(wanted).items():
        last = fresh[check.asset_key].last
        failed = record.status is AssetCheckExecutionRecordStatus.FAILED
        if not failed or not record.run_id or last is None:
            continue
        if record.event is not None and record.event.timestamp >= last.timestamp():
            assert record.evaluation is not None
            # It names the materialization that it looked at, which is the last no more.
            yield replace(record.evaluation, target_materialization_data=None)
