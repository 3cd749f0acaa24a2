"""New events of the Dagster instance → alerts.

A tick reads three kinds of events by position: ended runs, freshness changes, and observations.
They are few even with many tables. It then reads the events of those runs that include stream
tables or their checks, and the last results of checks that were evaluated without a run. So a tick
without news makes five queries.

A worker has no runs, and sums up many refreshes in one materialization. So it reports a failed
refresh, and a table that it recomputed from scratch, as an observation. Once a refresh of a
replication has failed, its stored state is read for further problems.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import dagster as dg
from dagster import DagsterEventType, EventLogEntry, EventLogRecord, RunRecord, RunsFilter

from dagster_streamtables.dagster_private import FreshnessState, FreshnessStateChange
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.alerts.alerts import Alert, AlertKind, AlertState, moment
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.node_assets import ReplicationCatalog
from dagster_streamtables.orchestration.checks.table_checks import KINDS, RETENTION
from dagster_streamtables.orchestration.instance.standing_checks import last_results
from dagster_streamtables.orchestration.replication.replication_metadata import LAG, ORIGIN
from dagster_streamtables.replication.lifecycle.replication_manager import Replications
from dagster_streamtables.runtime.model.refresh_report import Action

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


OBSERVED = DagsterEventType.ASSET_OBSERVATION
REFRESH = "refresh"
_ERROR = "streamtables/error"
_REBUILT = "streamtables/rebuilt"
_MAX_OBSERVATIONS = 1000
"""Maximum number of observations that one tick reads; the next tick continues."""
SUSPENSION = "suspension"
ERRORS = "errors in a row"
_MANY = 3
"""Errors in a row from which on they are reported: a transient one has passed by then."""
EVALUATED = "checks without a run"
"""The position up to which these are read: seconds since 1970."""
_CHECKS = (*(kind.name for kind in KINDS), LAG, ORIGIN)
FRESHNESS = "freshness"
_AT_ONCE = 500
"""Maximum number of events of a type that one tick reads; the next tick continues."""
_ENDED = (DagsterEventType.RUN_FAILURE, DagsterEventType.RUN_SUCCESS)
_CHANGED = DagsterEventType.FRESHNESS_STATE_CHANGE
_FAILED_STEP = DagsterEventType.STEP_FAILURE
_OF_A_RUN = {
    _FAILED_STEP,
    DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
    DagsterEventType.ASSET_MATERIALIZATION,
    DagsterEventType.ASSET_CHECK_EVALUATION,
    DagsterEventType.RUN_FAILURE,
}
_FRESHNESS = {
    FreshnessState.WARN: (AlertKind.FRESHNESS_WARNING, "it is older than its schedule allows"),
    FreshnessState.FAIL: (AlertKind.FRESHNESS_FAILED, "it is much older than its schedule allows"),
    FreshnessState.PASS: (AlertKind.RECOVERED, "it is fresh again"),
}

Names = Mapping[dg.AssetKey, str]
"""The names of the stream tables, by asset key."""


@dataclass(frozen=True)
class TickAlerts:
    """The alerts that a tick found, and the new read positions."""

    alerts: list[Alert]
    positions: Mapping[str, int]


def beginning(instance: dg.DagsterInstance) -> dict[str, int]:
    """The positions after all events so far."""
    newest = instance.event_log_storage.get_maximum_record_id() or 0
    positions = {kind.value: newest for kind in (*_ENDED, _CHANGED, OBSERVED)}
    return {**positions, EVALUATED: int(time.time())}


def look(
    instance: dg.DagsterInstance,
    tables: Names,
    lake: Lake,
    desk: AlertState,
    replicated: ReplicationCatalog | None = None,
) -> TickAlerts:
    """The alerts for events since `desk` was stored. The lake has the states of what failed, and
    needs no Spark."""
    replicated = replicated or ReplicationCatalog()
    # In alerts of checks and freshness, the names are those of tables. A failed refresh is one of
    # the replication, not of each of its tables.
    targets = {key: target for target, key in replicated.keys.items()}
    names = {**tables, **replicated.nodes, **targets}
    wholes = {**names, **replicated.nodes}
    ended = {
        kind.value: _read_run_ends(instance, kind, desk.positions[kind.value]) for kind in _ENDED
    }
    changed = _read_events(instance, _CHANGED, desk.positions[_CHANGED.value], _AT_ONCE)
    # A cursor of an older version has no position of observations, and none of evaluations.
    seen = desk.positions.get(OBSERVED.value) or beginning(instance)[OBSERVED.value]
    observed = _read_events(instance, OBSERVED, seen, _MAX_OBSERVATIONS)
    since = desk.positions.get(EVALUATED) or beginning(instance)[EVALUATED]
    checked, until = read_runless_evaluations(instance, names, since)
    records = {**ended, _CHANGED.value: changed, OBSERVED.value: observed}
    run_ids = [record.run_id for found in ended.values() for record in found]
    alerts = [
        *(
            alert
            for run in _ours(instance, run_ids, names)
            for alert in _of_run(instance, run, names, wholes)
        ),
        *(alert for record in changed for alert in _of_freshness(record, names)),
        *(alert for record in observed for alert in of_observation(record, wholes)),
        *(alert for entry in checked for alert in of_check(entry, names)),
    ]
    alerts += [*_find_suspensions(alerts, lake)]
    alerts += [*_find_replication_problems(alerts, replicated, lake)]
    failed = {alert.table: alert for alert in alerts if alert.about == REFRESH}
    alerts += _find_recoveries(instance, wholes, desk, failed)
    newest = {k: max(r.storage_id for r in found) for k, found in records.items() if found}
    read = {OBSERVED.value: seen, EVALUATED: until, **newest}
    return TickAlerts(alerts, {**desk.positions, **read})


def _find_replication_problems(
    alerts: Iterable[Alert], replicated: ReplicationCatalog, lake: Lake
) -> Iterator[Alert]:
    """Further alerts of the replications that failed, from their states."""
    failed = {alert.table: alert for alert in alerts if alert.about}
    for entry in replicated.entries:
        failure = failed.get(entry.node.name)
        if failure is None:
            continue
        try:
            status = Replications(lake).read(entry.name)
        except Exception as error:  # the failure itself is reported
            logger.warning("the state of replication %s cannot be read: %s", entry.name, error)
            continue
        if not status.enabled:
            said = (
                f"an error disabled it: {status.error}\n\nfix: correct the cause, then: "
                f"streamtables replications enable {status.name}"
            )
            kind = AlertKind.REPLICATION_DISABLED
            yield replace(failure, kind=kind, message=said, about=SUSPENSION)
        if status.errors >= _MANY:
            said = f"{status.errors} refreshes in a row failed: {status.error}"
            yield replace(failure, kind=AlertKind.ERRORS_IN_A_ROW, message=said, about=ERRORS)


def read_runless_evaluations(
    instance: dg.DagsterInstance, tables: Iterable[dg.AssetKey], since: int
) -> tuple[list[EventLogEntry], int]:
    """The last results of all checks of tables, if they are from a time or later and of no run, and
    the new position.

    The results between are skipped: a worker evaluates checks with each report, and few of these
    differ.
    """
    checks = [dg.AssetCheckKey(key, name) for key in tables for name in _CHECKS]
    found = last_results(instance, checks).values() if checks else ()
    events = (record.event for record in found if not record.run_id)
    entries = [each for each in events if each is not None and each.timestamp >= since]
    return entries, max((int(entry.timestamp) for entry in entries), default=since)


def of_check(entry: EventLogEntry, names: Mapping[dg.AssetKey, str]) -> Iterator[Alert]:
    """The alert of an evaluation: a problem, or the end of one."""
    event = entry.dagster_event
    found = event.asset_check_evaluation_data if event is not None else None
    if found is None or found.asset_key not in names:
        return
    late = found.metadata.get(keys.LATE)
    if not found.passed and late is not None and not late.value:
        return  # the alert of the failed refresh says it
    failed = (
        AlertKind.RETENTION_WARNING
        if found.check_name == RETENTION.name
        else AlertKind.CHECK_FAILED
    )
    said = found.description or ""
    yield Alert(
        table=names[found.asset_key],
        kind=AlertKind.RECOVERED if found.passed else failed,
        message=f"{found.check_name} {'passes again' if found.passed else 'failed'}: {said}",
        at=moment(entry.timestamp),
        run_id=entry.run_id,
        about=found.check_name,
    )


def failure_event(
    key: dg.AssetKey, said: str, text: str, *, lost_slot: str | None
) -> dg.AssetObservation:
    """The event that a refresh failed, with the error on one line and as a whole. `lost_slot` is
    the slot that the publisher of a replication has dropped, if that is the error."""
    lost = {} if lost_slot is None else {keys.LOST_SLOT: lost_slot}
    return dg.AssetObservation(
        key,
        description=f"The refresh by the worker failed: {said}",
        metadata={_ERROR: keys.code_metadata(text, ""), **lost},
    )


def rebuild_event(key: dg.AssetKey, reason: str) -> dg.AssetObservation:
    """The event that a refresh recomputed a table from scratch."""
    return dg.AssetObservation(
        key,
        description=f"The worker made the table anew: {reason}",
        metadata={_REBUILT: reason},
    )


def of_observation(record: EventLogRecord, names: Mapping[dg.AssetKey, str]) -> Iterator[Alert]:
    """The alert of a failure, or of a rebuilt table; nothing for other observations."""
    event = record.event_log_entry.asset_observation
    if event is None or event.asset_key not in names:
        return
    if (reason := event.metadata.get(_REBUILT)) is not None:
        at = moment(record.event_log_entry.timestamp)
        yield Alert(names[event.asset_key], AlertKind.REINITIALIZED, str(reason.value), at)
    if _ERROR not in event.metadata:
        return
    lost = keys.LOST_SLOT in event.metadata
    yield Alert(
        names[event.asset_key],
        AlertKind.SLOT_LOST if lost else AlertKind.REFRESH_FAILED,
        event.description or "",
        moment(record.event_log_entry.timestamp),
        about=REFRESH,
    )


def _read_run_ends(
    instance: dg.DagsterInstance, kind: DagsterEventType, after: int
) -> list[EventLogRecord]:
    wanted = dg.RunStatusChangeRecordsFilter(kind, after_storage_id=after)  # type: ignore[arg-type]
    return list(instance.fetch_run_status_changes(wanted, limit=_AT_ONCE, ascending=True).records)


def _read_events(
    instance: dg.DagsterInstance, kind: DagsterEventType, after: int, limit: int
) -> list[EventLogRecord]:
    # The method of the instance is deprecated. Its successor for observations takes one asset at a
    # time; freshness changes have none.
    wanted = dg.EventRecordsFilter(kind, after_cursor=after)
    storage = instance.event_log_storage
    return list(storage.get_event_records(wanted, limit=limit, ascending=True))


def _ours(
    instance: dg.DagsterInstance, run_ids: Iterable[str], names: Names
) -> Iterator[RunRecord]:
    """The runs that may include a stream table; a run without a selection may include any."""
    wanted = list(dict.fromkeys(run_ids))
    for record in instance.get_run_records(RunsFilter(run_ids=wanted)) if wanted else ():
        run = record.dagster_run
        checked = {check.asset_key for check in run.asset_check_selection or ()}
        selected = {*(run.asset_selection or ()), *checked}
        if not selected or selected & names.keys():
            yield record


def _of_run(
    instance: dg.DagsterInstance, run: RunRecord, names: Names, wholes: Names
) -> Iterator[Alert]:
    run_id = run.dagster_run.run_id
    found = instance.get_records_for_run(run_id, of_type=_OF_A_RUN).records
    entries = [record.event_log_entry for record in found]
    made = {event.asset_key for e in entries if (event := e.asset_materialization) is not None}
    failures = {e.step_key: e for e in entries if e.dagster_event_type is _FAILED_STEP}
    for entry in entries:
        kind, event = entry.dagster_event_type, entry.dagster_event
        if entry.asset_materialization is not None:
            yield from _of_materialization(entry, names)
        elif kind is DagsterEventType.ASSET_CHECK_EVALUATION:
            yield from of_check(entry, names)
        elif kind is DagsterEventType.ASSET_MATERIALIZATION_PLANNED and event is not None:
            key, failure = event.asset_key, failures.get(entry.step_key)
            if key is not None and key in names and key not in made and failure is not None:
                yield _of_failed_step(failure, key, wholes[key], run_id)
    if not failures:
        yield from _of_broken_run(run, entries, made, wholes)


def _of_broken_run(
    run: RunRecord, entries: list[EventLogEntry], made: set[dg.AssetKey], names: Names
) -> Iterator[Alert]:
    """The alerts of a run that failed without a failed step: it did not start, or its process
    was lost."""
    ends = [e for e in entries if e.dagster_event_type is DagsterEventType.RUN_FAILURE]
    for key in run.dagster_run.asset_selection or ():
        if ends and key in names and key not in made:
            message = ends[-1].message or "the run failed before it refreshed the table"
            yield Alert(
                names[key], AlertKind.REFRESH_FAILED, message,
                moment(ends[-1].timestamp), run.dagster_run.run_id, REFRESH,
            )  # fmt: skip


def _of_failed_step(failure: EventLogEntry, key: dg.AssetKey, table: str, run_id: str) -> Alert:
    event = failure.dagster_event
    data = event.step_failure_data if event is not None else None
    by_user = data.user_failure_data if data is not None else None
    kind = AlertKind.REFRESH_FAILED
    if by_user is not None:
        # An op of many tables names each that failed.
        own = by_user.metadata.get(key.to_user_string())
        message = str(own.value if own is not None else by_user.description)
        kind = AlertKind.SLOT_LOST if keys.LOST_SLOT in by_user.metadata else kind
    else:
        error = data.error if data is not None else None
        # Dagster wraps the error that the op raised; people want to read the cause.
        while error is not None and error.cause is not None:
            error = error.cause
        message = error.message.strip() if error is not None else "the step failed"
    return Alert(table, kind, message, moment(failure.timestamp), run_id, REFRESH)


def _of_materialization(entry: EventLogEntry, names: Names) -> Iterator[Alert]:
    event = entry.asset_materialization
    if event is None or event.asset_key not in names:
        return
    action, reason = event.metadata.get(keys.ACTION), event.metadata.get(keys.REASON)
    # The first refresh of a table is not reported.
    version = event.metadata.get(keys.VERSION)
    first = version is not None and version.value == 0
    if action is not None and action.value == Action.REINITIALIZE and not first:
        yield Alert(
            names[event.asset_key], AlertKind.REINITIALIZED,
            str(reason.value) if reason is not None else "", moment(entry.timestamp), entry.run_id,
        )  # fmt: skip


def _of_freshness(record: EventLogRecord, names: Names) -> Iterator[Alert]:
    event = record.event_log_entry.dagster_event
    change = event.event_specific_data if event is not None else None
    if not isinstance(change, FreshnessStateChange) or change.key not in names:
        return
    if change.new_state in _FRESHNESS:
        kind, said = _FRESHNESS[change.new_state]
        at = moment(change.state_change_timestamp)
        yield Alert(names[change.key], kind, said, at, about=FRESHNESS)


def _find_suspensions(alerts: Iterable[Alert], lake: Lake) -> Iterator[Alert]:
    last = {alert.table: alert for alert in alerts if alert.about == REFRESH}
    for table, failure in last.items():
        control = lake.controls.read(table)
        if control.gave_up:
            said = f"{control.gave_up}\n\nfix: correct the cause, then: streamtables resume {table}"
            yield replace(failure, kind=AlertKind.SUSPENDED, message=said, about=SUSPENSION)


def _find_recoveries(
    instance: dg.DagsterInstance, names: Names, desk: AlertState, failed: Mapping[str, Alert]
) -> list[Alert]:
    """Recoveries of failed tables that were materialized since."""
    since = {e.table: e.since for e in desk.open if e.about == REFRESH}
    since |= {table: alert.at.timestamp() for table, alert in failed.items()}
    wanted = [key for key, name in names.items() if name in since]
    found: list[Alert] = []
    for record in instance.get_asset_records(wanted) if wanted else ():
        entry, table = record.asset_entry, names[record.asset_entry.asset_key]
        last = entry.last_materialization
        if last is not None and last.timestamp > since[table]:
            at = moment(last.timestamp)
            said = "it is refreshed again"
            found += [
                Alert(table, AlertKind.RECOVERED, said, at, last.run_id, about)
                for about in (REFRESH, SUSPENSION, ERRORS)
            ]
    return found
