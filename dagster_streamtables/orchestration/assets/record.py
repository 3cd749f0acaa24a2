"""What Dagster is told of one refresh: by the step of a run, or without a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import UnsupportedQuery, legible
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.provenance import DATA_VERSION, consumed
from dagster_streamtables.runtime.model.report import Action, Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


@dataclass(frozen=True)
class Record:
    """The parts of the events of one refresh."""

    metadata: Mapping[str, Any]
    """Of the materialization; empty if the refresh was skipped."""
    tags: Mapping[str, str]
    """Of the materialization: the data versions of its sources that the refresh read."""
    observed: tuple[dg.AssetObservation, ...]
    """Of sources that moved, or of the table itself if its refresh was skipped."""


def record_of(
    instance: dg.DagsterInstance,
    lake: Lake,
    spec: dg.AssetSpec,
    refresh: Refresh,
    until: Mapping[str, datetime],
    warn: Callable[[str], object],
) -> Record:
    """What Dagster is told of a refresh.

    Args:
        instance: The Dagster instance, which stores the events before.
        lake: The lake with the table.
        spec: The asset of the table.
        refresh: What was done.
        until: The times until which its sources were read, by their names.
        warn: Called with what could not be found out.
    """
    found = keys.refresh_metadata(refresh) | _last_change(instance, spec.key, lake, refresh)
    looked = [refresh.started, *until.values()]
    if known := [moment.timestamp() for moment in looked if moment is not None]:
        found[keys.AS_OF] = dg.MetadataValue.timestamp(min(known))
    if refresh.action is Action.SKIP:
        return Record({}, {}, (dg.AssetObservation(spec.key, metadata=found),))
    sources = keys.read_source_keys(spec.metadata)
    table = keys.read_definition(spec.metadata)
    tags, news = consumed(instance, refresh, sources)
    columns = _columns(lake, table, sources, warn)
    return Record(keys.in_reading_order({**columns, **found}), tags, tuple(news))


def _last_change(
    instance: dg.DagsterInstance, key: dg.AssetKey, lake: Lake, refresh: Refresh
) -> dict[str, Any]:
    """When the rows last changed: as the last materialization says, if it has the same data
    version. Otherwise by the commit, which a run that died or an outage may have left unreported
    for hours."""
    event = instance.get_latest_materialization_event(key)
    before = event.asset_materialization if event is not None else None
    if event is not None and before is not None:
        known = before.metadata.get(keys.CHANGED)
        if (before.tags or {}).get(DATA_VERSION) == refresh.data_version:
            return {keys.CHANGED: known or dg.MetadataValue.timestamp(event.timestamp)}
    changed_at = lake.changed_at(refresh.table) or datetime.now(UTC)
    return {keys.CHANGED: dg.MetadataValue.timestamp(changed_at)}


def _columns(
    lake: Lake,
    table: StreamTable,
    sources: Mapping[str, dg.AssetKey],
    warn: Callable[[str], object],
) -> dict[str, Any]:
    """The current location, columns and lineage; the asset has those from when it was loaded."""
    try:
        found: dict[str, Any] = {
            keys.URI: str(lake.location(table.name)),
            keys.COLUMN_SCHEMA: keys.column_schema(
                lake.columns(table.name) or {}, table.changed_at
            ),
        }
        with suppress(UnsupportedQuery):  # mode FULL accepts any query
            found[keys.COLUMN_LINEAGE] = keys.column_lineage(lake.plan(table), sources)
        return found
    except Exception as error:  # the refresh is committed, so it must not fail
        warn(f"the columns of {table.name} are not recorded: {legible(str(error))}")
        return {}
