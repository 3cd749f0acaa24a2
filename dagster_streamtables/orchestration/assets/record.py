"""`Record`: what Dagster is told of an asset after a refresh, by a run or without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import UnsupportedQuery, legible
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.provenance import (
    DATA_VERSION,
    tags_without_run,
    trace_inputs,
)
from dagster_streamtables.runtime.model.report import Action, Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


@dataclass(frozen=True)
class Record:
    """What Dagster is told of one asset: a stream table, or a table of a replication."""

    key: dg.AssetKey
    spec: dg.AssetSpec | None
    """None if the code location does not have the asset yet."""
    version: str | None
    """Its data version; None if nothing moved that it stands for."""
    metadata: Mapping[str, Any]
    """Of the materialization; empty if the refresh was skipped, and there is none."""
    changed: bool
    """Whether its rows changed."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the materialization: the data versions of its sources that the refresh read."""
    observed: tuple[dg.AssetObservation, ...] = ()
    """Of sources that moved, or of the table itself if its refresh was skipped."""

    def result(self) -> dg.MaterializeResult[Any]:
        """The materialization, as the step of a run returns it.

        With an unchanged data version, downstream steps of the run still run and the freshness
        clock restarts, but automation that waits for new data does not start.
        """
        version = None if self.version is None else dg.DataVersion(self.version)
        return dg.MaterializeResult(
            asset_key=self.key, metadata=self.metadata, data_version=version, tags=self.tags
        )

    def event(
        self,
        instance: dg.DagsterInstance,
        *,
        metadata: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> dg.AssetMaterialization:
        """The materialization as an event of its own, with the tags that a step would add.

        Args:
            instance: The Dagster instance, which stores the events of the dependencies.
            metadata: More of it.
            tags: More of them.
        """
        found = {} if self.version is None else {DATA_VERSION: self.version}
        if self.spec is not None and self.version is not None:
            found = tags_without_run(instance, self.spec, self.version, self.tags)
        return dg.AssetMaterialization(
            self.key,
            metadata={**self.metadata, **(metadata or {})},
            tags={**found, **(tags or {})},
        )


def record_of(
    instance: dg.DagsterInstance,
    lake: Lake,
    spec: dg.AssetSpec,
    refresh: Refresh,
    until: Mapping[str, datetime],
    warn: Callable[[str], object],
) -> Record:
    """What Dagster is told of the refresh of a stream table.

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
        seen = (dg.AssetObservation(spec.key, metadata=found),)
        return Record(spec.key, spec, refresh.data_version, {}, changed=False, observed=seen)
    sources = keys.read_source_keys(spec.metadata)
    table = keys.read_definition(spec.metadata)
    tags, news = trace_inputs(instance, refresh, sources)
    columns = _columns(lake, table, sources, warn)
    metadata = keys.in_reading_order({**columns, **found})
    changed = refresh.action is not Action.NO_DATA
    return Record(spec.key, spec, refresh.data_version, metadata, changed, tags, tuple(news))


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
