"""Runs in the Dagster instance: the history of assets, and the end of runs whose process died.

A code server reports to Dagster when a process of its runs dies. If the server is killed too, with
`dagster dev` or with the machine, such a run stays "started" for ever, and holds its tables and its
pools: Dagster's default launcher does not support health checks, so `run_monitoring` does not end
it either. So a tag of each run names its process.

A code server on a machine of its own may be replaced by one on another machine, which sees no
process of the first. But both answer at one address, and Dagster's default launcher notes on each
run the address of the server that executes it.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg
from dagster import DagsterEventType, DagsterRun, DagsterRunStatus, RunRecord, RunsFilter

from dagster_streamtables.dagster_private import DagsterAssetCheckFailedError
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.catalog.metadata import AS_OF
from dagster_streamtables.runtime.observe import lease

if TYPE_CHECKING:
    from dagster_streamtables.dagster_private import AssetRecord

SENSOR_TAG = "streamtables/refresh"
"""Tag of each run that a refresh sensor requests: the name of the sensor."""
DEFINITIONS_TAG = ".dagster/streamtables_definitions"
"""Tag of the same runs, hidden for its prefix: a hash of all definitions, so that a change ends
every back-off."""
AFTER_TAG = "streamtables/after_run"
"""Tag of a materialization without a run: the last run that was to materialize the asset."""
PROCESS_TAG = ".dagster/streamtables_process"
"""Tag of a run, which Dagster's pages hide for its prefix: the process that executes it and its
parent, and the run's id, since a repeated run has the tags of the first; or the process that
requested it."""
_EXECUTES = " executes "

_ADDRESS_TAG = ".dagster/grpc_info"
"""Tag of a run that Dagster's default launcher gave to a code server: the server's address."""
_HANDOVER_SECONDS = 300.0
"""How long after the start of its successor a code server may take to end with its runs."""
_CLOCKS_SECONDS = 10.0
"""How far apart the clocks of two machines may be."""
_LOOPBACK = r"localhost|127\..*|::1"

_BEGUN = (DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING)
_UNFINISHED = (DagsterRunStatus.QUEUED, DagsterRunStatus.NOT_STARTED, *_BEGUN)
# Canceled runs count as failed: otherwise the same refresh would start again at once.
_FAILED = (DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED)
_FAILED_RUNS_READ = 500


def requesting_process() -> dict[str, str]:
    """The tag of a run that this code server requests, until a process executes it."""
    return {PROCESS_TAG: lease.describe_processes(os.getpid())}


def name_process(context: dg.AssetExecutionContext) -> None:
    """Tag the run with this process and its parent: the process of a step is a child of the run's.

    The parent of the run's own is its code server, which ends the run itself while it lives.
    """
    run = context.run.run_id
    name = lease.describe_processes(os.getpid(), os.getppid())
    context.instance.add_run_tags(run, {PROCESS_TAG: f"{name}{_EXECUTES}{run}"})


def end_dead_runs(instance: dg.DagsterInstance, server: object = None) -> None:
    """Mark as failed the runs whose process is known to be gone: it was on this machine, or on one
    that this machine has replaced as the code server.

    Args:
        instance: The Dagster instance.
        server: The origin of the code location that this process serves, as a sensor's context has
            it.
    """
    for run in instance.get_runs(RunsFilter(statuses=list(_BEGUN))):
        if not _is_dead(instance, run, server):
            continue
        now = instance.get_run_by_id(run.run_id)
        if now is not None and now.status in _BEGUN and _is_dead(instance, now, server):
            message = f"The process of the run is gone: {now.tags[PROCESS_TAG]}."
            logger.warning("run %s: %s", run.run_id, message)
            instance.report_run_failed(now, message)


def _is_dead(instance: dg.DagsterInstance, run: DagsterRun, server: object) -> bool:
    process, _, executes = run.tags.get(PROCESS_TAG, "").partition(_EXECUTES)
    if executes != run.run_id and (executes or run.parent_run_id):
        return False  # a copy of the tag of the run that it repeats
    # Otherwise this process may have launched it, for one that asked for it and ended since then.
    is_lost = lease.are_elsewhere(process) and _has_replaced(run, server)
    if not (is_lost or lease.are_dead(process)):
        return False
    return (bool(executes) and not is_lost) or _launched_at(instance, run) < _began()


def _launched_at(instance: dg.DagsterInstance, run: DagsterRun) -> float:
    """By its event, since a record's own times are wrong by hours in a PostgreSQL whose time zone
    is not UTC."""
    stats = instance.get_run_stats(run.run_id)
    times = (stats.start_time, stats.launch_time, stats.enqueued_time)
    return next((each for each in times if each is not None), time.time())


def _began() -> float:
    """When this process began; some seconds before, as clocks differ."""
    return time.time() - lease.age() - _CLOCKS_SECONDS


def _has_replaced(run: DagsterRun, server: object) -> bool:
    """Whether the code server of this process answers where that of the run did, and has for long
    enough."""
    address = _address(server)
    return (
        address is not None
        and address == _executing_address(run)
        and lease.age() > _HANDOVER_SECONDS
    )


def _address(server: object) -> tuple[str, int] | None:
    """Where a code server answers that somebody else starts; None for one that Dagster starts, or
    that only its own machine sees: the webserver and the daemon may each have one."""
    host, port = getattr(server, "host", None), getattr(server, "port", None)
    if not isinstance(host, str) or not isinstance(port, int) or re.fullmatch(_LOOPBACK, host):
        return None
    return host, port


def _executing_address(run: DagsterRun) -> tuple[str, int] | None:
    try:
        noted = json.loads(run.tags.get(_ADDRESS_TAG, ""))
        return noted["host"], noted["port"]
    except (ValueError, TypeError, KeyError):  # another launcher, a socket, or an edited tag
        return None


@dataclass(frozen=True)
class AssetHistory:
    """The last events of one asset."""

    last: datetime | None = None
    as_of: datetime | None = None
    """When the refresh of the last materialization read the versions of its sources."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    """The tags of the last materialization."""
    metadata: Mapping[str, dg.MetadataValue] = field(default_factory=dict[str, dg.MetadataValue])
    """The metadata of the last materialization."""
    run: str = ""
    """The id of an unfinished run of the asset; empty if none."""
    planned: str = ""
    """The last run that was to materialize it, whatever its result."""
    by: str = ""
    """The run of the last materialization; of one without a run, the last that was planned then."""
    failures: int = 0
    """Runs of the sensor that failed since the last materialization."""
    failed_at: datetime | None = None


def latest(histories: Iterable[AssetHistory]) -> AssetHistory:
    """The history of the asset of one op that was materialized last, with the unfinished run of any
    of its assets.

    Not the oldest: a table that its publisher has removed is never materialized again.
    """
    every = list(histories)
    newest = max(every, key=lambda each: (each.last is not None, each.last))
    return replace(newest, run=next((each.run for each in every if each.run), ""))


def read_history(
    instance: dg.DagsterInstance,
    keys: Collection[dg.AssetKey],
    *,
    requested: Mapping[str, str],
    stuck_after: timedelta,
    now: datetime,
) -> dict[dg.AssetKey, AssetHistory]:
    """The history of each asset. Counts only failed runs that have the tags `requested`, and takes
    unfinished runs older than `stuck_after` for dead."""
    records = {r.asset_entry.asset_key: r for r in instance.get_asset_records(list(keys))}
    unfinished = [
        record
        for record in instance.get_run_records(RunsFilter(statuses=list(_UNFINISHED)))
        if now - record.create_timestamp < stuck_after
    ]
    failed = instance.get_run_records(
        RunsFilter(statuses=list(_FAILED), tags=dict(requested)), limit=_FAILED_RUNS_READ
    )
    failed = [run for run in failed if not _is_check_failure(instance, run, records)]
    failures = _by_key(failed)
    running = _by_key(unfinished)
    planned = {record.dagster_run.run_id for record in unfinished}
    return {
        key: _history(records.get(key), running.get(key, []), failures.get(key, []), planned)
        for key in keys
    }


def _history(
    record: AssetRecord | None,
    unfinished: Sequence[RunRecord],
    failed: Sequence[RunRecord],
    planned: Collection[str],
) -> AssetHistory:
    event = record.asset_entry.last_materialization if record else None
    materialization = event.asset_materialization if event else None
    tags = (materialization.tags or {}) if materialization else {}
    last = _last(record)
    ends = [_end(run) for run in failed if _after(run, last)]
    return AssetHistory(
        last=last,
        as_of=_as_of(materialization.metadata, last) if materialization and last else last,
        tags=tags,
        metadata=materialization.metadata if materialization else {},
        run=_running(record, unfinished, planned),
        planned=(record.asset_entry.last_run_id if record else None) or "",
        by=(tags.get(AFTER_TAG) or event.run_id) if event and materialization else "",
        failures=len(ends),
        failed_at=max(ends, default=None),
    )


def _as_of(metadata: Mapping[str, dg.MetadataValue], last: datetime) -> datetime:
    value = metadata.get(AS_OF)
    if not isinstance(value, dg.TimestampMetadataValue):
        return last
    return min(last, datetime.fromtimestamp(value.value, UTC))


def _running(
    record: AssetRecord | None, unfinished: Sequence[RunRecord], planned: Collection[str]
) -> str:
    if unfinished:
        return unfinished[0].dagster_run.run_id
    # A run without an asset selection names no assets, but each asset stores its last planned run.
    last = record.asset_entry.last_run_id if record else None
    return last if last is not None and last in planned else ""


def _is_check_failure(
    instance: dg.DagsterInstance, run: RunRecord, records: Mapping[dg.AssetKey, AssetRecord]
) -> bool:
    """Whether only blocking checks failed in a run: no refresh did, and what is below waits for the
    checks. False without a look at its events if the run no longer counts."""
    known = run.dagster_run
    lasts = [_last(records.get(key)) for key in known.asset_selection or ()]
    checks = known.asset_check_selection
    if (checks is not None and not checks) or not any(_after(run, last) for last in lasts):
        return False
    found = instance.get_records_for_run(known.run_id, of_type=DagsterEventType.STEP_FAILURE)
    events = [record.event_log_entry.dagster_event for record in found.records]
    errors = [event.step_failure_data.error for event in events if event is not None]
    return bool(errors) and all(
        error is not None and error.cls_name == DagsterAssetCheckFailedError.__name__
        for error in errors
    )


def _last(record: AssetRecord | None) -> datetime | None:
    event = record.asset_entry.last_materialization if record else None
    return datetime.fromtimestamp(event.timestamp, UTC) if event else None


def _by_key(runs: Iterable[RunRecord]) -> dict[dg.AssetKey, list[RunRecord]]:
    found: dict[dg.AssetKey, list[RunRecord]] = {}
    for run in runs:
        for key in run.dagster_run.asset_selection or ():
            found.setdefault(key, []).append(run)
    return found


def _after(run: RunRecord, last: datetime | None) -> bool:
    return last is None or run.create_timestamp > last


def _end(run: RunRecord) -> datetime:
    if run.end_time is not None:
        return datetime.fromtimestamp(run.end_time, UTC)
    return run.update_timestamp
