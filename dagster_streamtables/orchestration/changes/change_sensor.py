"""The sensor that starts change assets when something changed."""

# No `from __future__ import annotations`: Dagster reads the annotations of sensors at run time.
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.changes.position import position_of
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY
from dagster_streamtables.orchestration.changes.feed_metadata import Follows, follows_of
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks, WithBlockingChecks
from dagster_streamtables.orchestration.instance.last_runs import (
    SENSOR_TAG,
    AssetHistory,
    read_history,
)
from dagster_streamtables.orchestration.instance.run_process import (
    end_dead_runs,
    requesting_process,
)
from dagster_streamtables.runtime.delta.delta_log import Logs
from dagster_streamtables.runtime.delta.source_change import has_row_changes
from dagster_streamtables.runtime.observe.slots import Slot, VersionHold
from dagster_streamtables.scheduling.dueness import Backoff

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


@dataclass(frozen=True)
class PendingWork:
    """Whether a change asset should run."""

    due: bool
    held: str = ""
    """Why it does not run, although it may have something to do."""


def pending_work(
    lake: "Lake", follows: Follows, history: AssetHistory, now: datetime, backoff: Backoff
) -> PendingWork:
    """Whether a run of a change asset would find rows."""
    if history.run:
        return PendingWork(False, f"run {history.run} is not finished")
    if history.failures and history.failed_at is not None:
        until = backoff.until(history.failures, history.failed_at)
        if now < until:
            failed = f"it failed {history.failures} times in a row"
            return PendingWork(False, f"{failed}, and is tried again at {until:%Y-%m-%d %H:%M:%S}")
    slot = lake.slots.find(follows.slot)
    if slot is None:
        missing = [name for name in follows.sources if lake.version(name) is None]
        return PendingWork(
            not missing, f"{', '.join(missing)} does not exist yet" if missing else ""
        )
    return _of_slot(lake, slot, follows, now)


def _of_slot(lake: "Lake", slot: Slot, follows: Follows, now: datetime) -> PendingWork:
    if slot.is_lost and not follows.resnapshot:
        return PendingWork(False, f'slot "{slot.name}" was let go: {slot.reason}')
    if slot.reader is not None and slot.reader.runs(now):
        until = slot.reader.until
        return PendingWork(False, f"somebody reads its slot, at least until {until:%H:%M:%S}")
    if slot.is_lost or not slot.token or position_of(slot.token).snapshot:
        return PendingWork(True)
    logs = Logs(lake.storage_options)
    if any(_has_changes(held, logs) for held in slot.held.values()):
        return PendingWork(True)
    _keep(lake, slot)
    return PendingWork(False)


def _has_changes(held: VersionHold, logs: Logs) -> bool:
    """Whether rows changed since; also if that cannot be told, so that a run reports why."""
    log = logs.newest(held.location)
    if log is None or log.id != held.table or log.version < held.version:
        return True
    return has_row_changes(log, held.version)


def _keep(lake: "Lake", slot: Slot) -> None:
    """Begin the deadline of an idle slot anew once half of it has passed: nothing has changed."""
    if slot.is_idle():
        lake.slots.touch(slot.name)


def build_change_sensor(
    assets: Sequence[dg.AssetsDefinition],
    *,
    settings: SensorSettings | None = None,
    executor: dg.ExecutorDefinition | None = dg.in_process_executor,
    tags: Mapping[str, str] | None = None,
    resource_key: str = RESOURCE_KEY,
) -> dg.SensorDefinition:
    """A sensor that starts a run of each change asset whose slot has something new.

    It reads slots and logs, and starts no Spark. Commits that move no rows, such as those of
    OPTIMIZE, start nothing. While a run of an asset is not finished, no other is started; after a
    failure, the pause before the next one doubles. What a run receives does not depend on the
    sensor: its slot says where it begins.

    Args:
        assets: What `change_asset` made; other assets are ignored.
        settings: When it ticks, and how long it waits after failures. Its default name is that of
            the resource, then ``_changes``.
        executor: The executor of the runs; None for that of the code location.
        tags: Additional tags for the runs.
        resource_key: The key of the `StreamTablesResource`.
    """
    given = settings or SensorSettings()
    chosen = given if given.name else replace(given, name=f"{resource_key}_changes")
    follows = follows_of(assets)
    job = dg.define_asset_job(
        f"{chosen.name}_run",
        WithBlockingChecks(follows),
        executor_def=executor,
        tags=tags,
    )

    @dg.sensor(
        name=chosen.name,
        job=job,
        minimum_interval_seconds=chosen.interval_seconds,
        default_status=chosen.status,
        description="Starts the change assets whose slots have something new.",
        required_resource_keys={resource_key},
    )
    def changes(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        lake, repository = getattr(context.resources, resource_key).logs(), context.repository_def
        return evaluate(
            follows,
            context.instance,
            lake,
            chosen,
            now=datetime.now(UTC),
            graph=repository.asset_graph if repository is not None else None,
        )

    return changes


def evaluate(
    follows: Mapping[dg.AssetKey, Follows],
    instance: dg.DagsterInstance,
    lake: "Lake",
    settings: SensorSettings,
    *,
    now: datetime,
    graph: Any = None,
) -> dg.SensorResult:
    """The result of a tick: a run for each asset that has something to do, or why there is none.

    Args:
        follows: What each asset follows.
        instance: The Dagster instance, which knows their runs.
        lake: The lake; needs no Spark.
        settings: How to decide.
        now: The time of the tick.
        graph: The asset graph of the code location, which has its blocking checks.
    """
    blocking = BlockingChecks.among(graph) if graph is not None else BlockingChecks()
    refused = blocking.refusals(instance)
    tags = {SENSOR_TAG: settings.name}
    end_dead_runs(instance)
    past = read_history(
        instance, list(follows), requested=tags, stuck_after=settings.stuck_after, now=now
    )
    found = {
        key: _pending_work(lake, each, past[key], settings, now) for key, each in follows.items()
    }
    parents = {key: graph.get(key).parent_keys for key in follows} if graph is not None else {}
    for key, above in parents.items():
        held = [why for asset, why in refused.items() if asset in above]
        if held and found[key].due:
            found[key] = PendingWork(False, f"waits for a check: {held[0]}")
    requests = [
        dg.RunRequest(
            asset_selection=[key],
            asset_check_keys=blocking.of([key]),
            tags=tags | requesting_process(),
        )
        for key, each in found.items()
        if each.due
    ]
    return dg.SensorResult(
        run_requests=requests, skip_reason=None if requests else "\n".join(_reasons(found))
    )


def _pending_work(
    lake: "Lake", follows: Follows, history: AssetHistory, settings: SensorSettings, now: datetime
) -> PendingWork:
    try:
        return pending_work(lake, follows, history, now, settings.backoff)
    except StreamTablesError as error:  # one asset must not stop the others; its checks fail, too
        return PendingWork(False, error.what)


def _reasons(found: Mapping[dg.AssetKey, PendingWork]) -> Iterator[str]:
    idle = [key.to_user_string() for key, each in found.items() if not each.held]
    if idle:
        yield f"Nothing changed for {', '.join(idle)}."
    for key, each in found.items():
        if each.held:
            yield f"{key.to_user_string()} is not started: {each.held}."
