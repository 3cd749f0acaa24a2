"""One refresh of a replication in a run, and what is recorded for each of its tables."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.assets.record import Record
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.replicated import ReplicationEntry
from dagster_streamtables.orchestration.instance.run_process import name_process
from dagster_streamtables.orchestration.replication.recorded import Recorded
from dagster_streamtables.replication.lifecycle.errors import passes
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.runtime.errors.slots import LostSlot

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

_WAIT = 60.0
"""Seconds for another process that refreshes it, such as `streamtables replications follow`."""


def replicate(
    context: dg.AssetExecutionContext, lake: Lake, entry: ReplicationEntry
) -> Iterator[dg.MaterializeResult[Any]]:
    """Refresh a replication, and yield a result for each of its tables that is still published.

    A table that is in trouble is not materialized, and its check of the lag fails.

    Raises:
        dg.Failure: The refresh failed, with what, why and fix. Retries are allowed if one may be
            enough.
    """
    name_process(context)
    began, instance, warn = datetime.now(UTC), context.instance, context.log.warning
    try:
        refresh = Replications(lake).refresh(entry.replication, wait=_WAIT, strict=False)
        refresh.require_some()
        recorded = Recorded(instance, lake, entry, refresh, began, warn)
        made = [*recorded.records()]
    except StreamTablesError as error:
        context.log.debug("".join(traceback.format_exception(error)))
        lost = {"lost_slot": entry.replication.slot_name} if isinstance(error, LostSlot) else {}
        raise keys.failure(error, allow_retries=passes(error), **lost) from None
    for each in made:
        if each.spec is not None:
            yield each.result()
        else:
            context.log_event(each.event(instance))
    recorded.tell_new()
    _tell_checks(context, recorded, made)
    for error in refresh.stopped.values():
        context.log.error(str(error))
    for result in recorded.troubles() if entry.tables else ():
        context.log_event(result)  # pyright: ignore[reportArgumentType]


def _tell_checks(context: dg.AssetExecutionContext, recorded: Recorded, made: list[Record]) -> None:
    for each in made:
        if each.spec is None or not recorded.entry.tables:
            continue
        for result in recorded.standing_checks(each.key, changed=each.changed):
            # Dagster records this event like the others, although the type excludes it.
            context.log_event(result)  # pyright: ignore[reportArgumentType]
