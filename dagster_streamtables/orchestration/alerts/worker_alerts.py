"""Alerts of refreshes by a worker that failed, or made a table anew: it observes them, since it has
no runs, and sums up many refreshes in one materialization."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import dagster as dg
from dagster import DagsterEventType, EventLogRecord

from dagster_streamtables.orchestration.alerts.alerts import Alert, AlertKind, moment
from dagster_streamtables.orchestration.catalog import metadata as keys

OBSERVED = DagsterEventType.ASSET_OBSERVATION
REFRESH = "refresh"
_ERROR = "streamtables/error"
_REBUILT = "streamtables/rebuilt"
_MAX_OBSERVATIONS = 1000
"""Maximum number of observations that one tick reads; the next tick continues."""


def failure_event(
    key: dg.AssetKey, said: str, text: str, *, lost_slot: str | None
) -> dg.AssetObservation:
    """The event that a refresh failed.

    Args:
        key: The asset.
        said: The error, on one line.
        text: The whole error.
        lost_slot: The slot of a replication that its publisher has let go, if that is the error.
    """
    lost = {} if lost_slot is None else {keys.LOST_SLOT: lost_slot}
    return dg.AssetObservation(
        key,
        description=f"The refresh by the worker failed: {said}",
        metadata={_ERROR: keys.code_metadata(text, ""), **lost},
    )


def rebuild_event(key: dg.AssetKey, reason: str) -> dg.AssetObservation:
    """The event that a refresh made a table anew."""
    return dg.AssetObservation(
        key,
        description=f"The worker made the table anew: {reason}",
        metadata={_REBUILT: reason},
    )


def read_observations(instance: dg.DagsterInstance, position: int) -> list[EventLogRecord]:
    """The observations after a position, of all assets."""
    # As for freshness: the method of the instance takes one asset at a time.
    wanted = dg.EventRecordsFilter(OBSERVED, after_cursor=position)
    storage = instance.event_log_storage
    return list(storage.get_event_records(wanted, limit=_MAX_OBSERVATIONS, ascending=True))


def of_observation(record: EventLogRecord, names: Mapping[dg.AssetKey, str]) -> Iterator[Alert]:
    """The alert of a failure, or of a table that was made anew; nothing for other observations.

    Args:
        record: The observation.
        names: The names of tables, or of the replications that write them, by asset key.
    """
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
