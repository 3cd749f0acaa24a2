"""Change assets as a part of a code location: their dependencies, sensor, checks and schedules.

The sensor starts a change asset when something changed. Two checks: does its slot still hold what
the next run needs, and how far is it behind? Sensor and checks read only slots and logs, and start
no Spark.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.amounts import duration
from dagster_streamtables.changes.position import position_of
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import RESOURCE_KEY, Catalog
from dagster_streamtables.orchestration.changes import feed_metadata
from dagster_streamtables.orchestration.changes.feed_metadata import (
    Follows,
    follows_of,
    read_follows,
)
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks, WithBlockingChecks
from dagster_streamtables.orchestration.checks.check_kind import (
    MAX_LAG,
    FactoryCheck,
    check_op,
    check_result,
    error_result,
)
from dagster_streamtables.orchestration.instance.dagster_runs import (
    SENSOR_TAG,
    AssetHistory,
    end_dead_runs,
    read_history,
    requesting_process,
)
from dagster_streamtables.runtime.delta.source_change import has_row_changes
from dagster_streamtables.runtime.observe.monitor import WARN_BEFORE
from dagster_streamtables.runtime.observe.slot_store import Slot, VersionHold
from dagster_streamtables.scheduling.dueness import Backoff

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake
    from dagster_streamtables.runtime.observe.source_health import SlotHealth


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
            server=context.code_location_origin,
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
    server: object = None,
) -> dg.SensorResult:
    """The result of a tick: a run for each asset that has something to do, or why there is none.
    The asset graph of the code location has its blocking checks; `server` is as for
    `end_dead_runs`."""
    blocking = BlockingChecks.among(graph) if graph is not None else BlockingChecks()
    refused = blocking.refusals(instance)
    tags = {SENSOR_TAG: settings.name}
    end_dead_runs(instance, server)
    past = read_history(
        instance, list(follows), requested=tags, stuck_after=settings.stuck_after, now=now
    )
    backoff = settings.backoff
    found = {k: _pending_work(lake, each, past[k], backoff, now) for k, each in follows.items()}
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


@dataclass(frozen=True)
class PendingWork:
    """Whether a change asset should run."""

    due: bool
    held: str = ""
    """Why it does not run, although it may have something to do."""


def _pending_work(
    lake: "Lake", follows: Follows, history: AssetHistory, backoff: Backoff, now: datetime
) -> PendingWork:
    """Whether a run of a change asset would find rows."""
    if history.run:
        return PendingWork(False, f"run {history.run} is not finished")
    if history.failures and history.failed_at is not None:
        until = backoff.until(history.failures, history.failed_at)
        if now < until:
            failed = f"it failed {history.failures} times in a row"
            return PendingWork(False, f"{failed}, and is tried again at {until:%Y-%m-%d %H:%M:%S}")
    try:
        slot = lake.slots.find(follows.slot)
        if slot is not None:
            return _of_slot(lake, slot, follows, now)
        missing = [name for name in follows.sources if lake.version(name) is None]
    except StreamTablesError as error:  # one asset must not stop the others; its checks fail
        return PendingWork(False, error.what)
    return PendingWork(not missing, f"{', '.join(missing)} does not exist yet" if missing else "")


def _of_slot(lake: "Lake", slot: Slot, follows: Follows, now: datetime) -> PendingWork:
    if slot.is_lost and not follows.resnapshot:
        return PendingWork(False, f'slot "{slot.name}" was released: {slot.reason}')
    if slot.reader is not None and slot.reader.runs(now):
        until = slot.reader.until
        return PendingWork(False, f"somebody reads its slot, at least until {until:%H:%M:%S}")
    if slot.is_lost or not slot.token or position_of(slot.token).snapshot:
        return PendingWork(True)
    if any(_has_changes(lake, name, held) for name, held in slot.held.items()):
        return PendingWork(True)
    if slot.is_idle():  # half of its deadline has passed
        lake.slots.touch(slot.name)
    return PendingWork(False)


def _has_changes(lake: "Lake", name: str, held: VersionHold) -> bool:
    """Whether rows changed since; also if that cannot be told, so that a run reports why."""
    log = lake.access.catalog.newest_at(name, held.location)
    if log is None or log.id != held.table or log.version < held.version:
        return True
    return has_row_changes(log, held.version)


def _reasons(found: Mapping[dg.AssetKey, PendingWork]) -> Iterator[str]:
    idle = [key.to_user_string() for key, each in found.items() if not each.held]
    if idle:
        yield f"Nothing changed for {', '.join(idle)}."
    for key, each in found.items():
        if each.held:
            yield f"{key.to_user_string()} is not started: {each.held}."


PINNED = "history_pinned"
LAG = "slot_lag"

Evaluate = Callable[["SlotHealth"], tuple[str, str]]
"""A slot → why the check fails, which is empty if it passes, and what is said if it does."""


def build_history_pinned_checks(
    *,
    assets: Sequence[dg.AssetsDefinition],
    name: str = "streamtables_pinned",
    warn_before: timedelta = WARN_BEFORE,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    resource_key: str = RESOURCE_KEY,
) -> dg.AssetChecksDefinition:
    """One op with a check for each change asset: its next run can read what it needs.

    It fails if the slot was dropped, or soon will be, or if a foreign VACUUM or a clean-up of the
    log removed what it holds.

    Args:
        assets: What `change_asset` made; other assets are ignored.
        name: The name of the op.
        warn_before: How long before its deadline an unused slot fails the check.
        severity: The severity of a failure.
        resource_key: The key of the `StreamTablesResource`.
    """

    def evaluate(health: "SlotHealth") -> tuple[str, str]:
        return health.warning(warn_before), "The slot holds everything that the next run needs."

    description = "The slot is active, and what it holds can be read."
    return _checks(name, PINNED, description, evaluate, assets, severity, resource_key)


def build_slot_lag_checks(
    *,
    assets: Sequence[dg.AssetsDefinition],
    name: str = "streamtables_slot_lag",
    max_lag: timedelta = MAX_LAG,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN,
    resource_key: str = RESOURCE_KEY,
) -> dg.AssetChecksDefinition:
    """One op with a check for each change asset: it has processed what changed up to `max_lag` ago.

    Args:
        assets: What `change_asset` made; other assets are ignored.
        name: The name of the op.
        max_lag: The age of a change that is not processed from which on the check fails.
        severity: The severity of a failure.
        resource_key: The key of the `StreamTablesResource`.
    """

    def evaluate(health: "SlotHealth") -> tuple[str, str]:
        late = [
            f"changes of {each.source} have waited for {duration(each.seconds_behind)}"
            for each in health.sources
            if (each.seconds_behind or 0.0) > max_lag.total_seconds()
        ]
        return "; ".join(late), "The slot is no further behind than it may be."

    description = f"No change has waited for longer than {max_lag}."
    return _checks(name, LAG, description, evaluate, assets, severity, resource_key)


def _checks(
    name: str,
    check_name: str,
    description: str,
    evaluate: Evaluate,
    assets: Sequence[dg.AssetsDefinition],
    severity: dg.AssetCheckSeverity,
    resource_key: str,
) -> dg.AssetChecksDefinition:
    slots = {key: each.slot for key, each in follows_of(assets).items()}

    def result(lake: "Lake", key: dg.AssetKey) -> dg.AssetCheckResult:
        about = key, check_name, severity
        try:
            if lake.slots.find(slots[key]) is None:
                return check_result(*about, "The asset has never run.", passed=True)
            health = lake.retention.slot(slots[key])
            wrong, right = evaluate(health)
        except StreamTablesError as error:
            return error_result(*about, error)
        seen = feed_metadata.of_slot(health)
        return check_result(*about, wrong or right, passed=not wrong, metadata=seen)

    def results(lake: "Lake", selected: Sequence[dg.AssetKey]) -> Iterator[dg.AssetCheckResult]:
        yield from (result(lake, key) for key in selected)

    return check_op(name, check_name, description, slots, results, resource_key, from_logs=True)


SLOT_KINDS = (
    FactoryCheck("pinned", PINNED, build_history_pinned_checks, ("warn_before",)),
    FactoryCheck("lag", LAG, build_slot_lag_checks, ("max_lag",)),
)
"""The kinds of checks that each change asset has."""


def connect_change_assets(
    assets: Sequence[dg.AssetsDefinition], catalog: Catalog, source_keys: Mapping[str, dg.AssetKey]
) -> list[dg.AssetsDefinition]:
    """The same change assets, downstream of the assets that a catalog has for their tables."""
    known = {**source_keys, **catalog.observed}
    for entry in catalog.entries:
        known |= {**entry.source_keys, entry.name: entry.key}

    def connect_spec(spec: dg.AssetSpec) -> dg.AssetSpec:
        if read_follows(spec.metadata) is None:
            return spec
        before = keys.read_source_keys(spec.metadata)
        now = {key: known.get(name, key) for name, key in before.items()}
        deps = [now.get(dep.asset_key, dep.asset_key) for dep in spec.deps]
        found = {name: now[key].path for name, key in before.items()}
        spec = spec.merge_attributes(metadata={keys.SOURCE_KEYS: dg.MetadataValue.json(found)})
        return spec.replace_attributes(deps=list(dict.fromkeys(deps)))

    return [asset.map_asset_specs(connect_spec) for asset in assets]
