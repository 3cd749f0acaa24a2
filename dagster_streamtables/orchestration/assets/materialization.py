"""Refreshes the stream tables of a step, and records the results in Dagster.

`Record` is what Dagster records of an asset after a refresh, by a run or without one.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError, UnsupportedQuery
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.provenance import (
    DATA_VERSION,
    tags_without_run,
    trace_inputs,
)
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks
from dagster_streamtables.orchestration.checks.quick_checks import tell_checks
from dagster_streamtables.orchestration.instance.dagster_runs import name_process
from dagster_streamtables.runtime.dag import in_order
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.error_translation import may_pass
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh
from dagster_streamtables.runtime.model.stream_table import StreamTable

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


_FROM_UI = "dagster/from_ui"
"""The tag that Dagster's pages give to the runs they launch."""


def refresh_one(
    context: dg.AssetExecutionContext, lake: Lake, spec: dg.AssetSpec, *, full: bool = False
) -> Iterator[dg.MaterializeResult[Any]]:
    """Refresh the stream table of an asset.

    Raises:
        dg.Failure: Its definition is broken, or the refresh failed, with what, where, why and fix.
            Retries are allowed if one may be enough.
    """
    name_process(context)
    try:
        table = keys.read_definition(spec.metadata)
        until = _beginning(context)(spec)
        refresh = lake.refresh(table, full=full, until=until, by_hand=_by_hand(context))
    except Exception as error:
        readable = _readable(context, spec.key, error)
        # The cause may be a page of Java, so it goes only to the log of the step.
        raise keys.failure(readable, allow_retries=may_pass(error)) from None
    yield from _record(context, lake, spec, refresh, until)


def refresh_selection(
    context: dg.AssetExecutionContext, lake: Lake, *, parallel: int = 1
) -> Iterator[dg.MaterializeResult[Any]]:
    """Refresh all stream tables selected in the run, each after those it reads.

    If a table fails, the tables downstream of it are skipped, and the others are refreshed before
    the failure is raised.

    Raises:
        dg.Failure: At least one refresh failed; the metadata has the message of each.
    """
    specs = {s.key: s for s in context.assets_def.specs if s.key in context.selected_asset_keys}
    name_process(context)
    until = _beginning(context)

    def work(key: dg.AssetKey) -> Refresh:
        spec, by_hand = specs[key], _by_hand(context)
        table = keys.read_definition(spec.metadata)
        return lake.refresh(table, until=until(spec), by_hand=by_hand)

    failed: dict[dg.AssetKey, Exception] = {}
    needs = {key: [dep.asset_key for dep in spec.deps] for key, spec in specs.items()}
    for key, above in _below_checks(context, needs).items():
        del needs[key], specs[key]
        context.log.warning(
            f"{key.to_user_string()} waits for the blocking checks of {above.to_user_string()}, "
            "which are evaluated after this op; refresh it when they have passed, or let the "
            "sensor do it"
        )
    for key, done in in_order(needs, work, parallel=parallel):
        if done is None:
            continue
        try:
            refresh = done.result()
        except Exception as error:
            failed[key] = error
            context.log.error(f"{key.to_user_string()}: {_readable(context, key, error)}")
        else:
            for made in _record(context, lake, specs[key], refresh, until(specs[key])):
                yield made
                tell_checks(context, lake, key, made)
    if failed:
        names = ", ".join(key.to_user_string() for key in failed)
        raise dg.Failure(
            description=f"{len(failed)} of the stream tables could not be refreshed: {names}",
            metadata={key.to_user_string(): _in_short(error) for key, error in failed.items()},
            allow_retries=any(map(may_pass, failed.values())),
        )


def _by_hand(context: dg.AssetExecutionContext) -> bool:
    """Whether a user started the run in Dagster's UI."""
    return _FROM_UI in context.run.tags


def _below_checks(
    context: dg.AssetExecutionContext, needs: Mapping[dg.AssetKey, Collection[dg.AssetKey]]
) -> dict[dg.AssetKey, dg.AssetKey]:
    """Tables of this op below others of it whose blocking checks are evaluated in this run, and the
    nearest of these. The op has ended when a check begins."""
    chosen = context.run.asset_check_selection
    checks = BlockingChecks.among(context.job_def.asset_layer.asset_graph)
    checked = {each.asset_key for each in checks.keys if chosen is None or each in chosen}
    found: dict[dg.AssetKey, dg.AssetKey] = {}
    for key, sources in needs.items():  # each after those it reads
        above = [each for each in sources if each in needs and (each in checked or each in found)]
        if above:
            found[key] = found.get(above[0], above[0])
    return found


def _beginning(context: dg.AssetExecutionContext) -> Callable[[dg.AssetSpec], dict[str, datetime]]:
    """For each source of a table that the run itself does not write, the start of the run.

    All steps of a run, in any process, read such a source as of that time. So two tables over it
    reflect the same version of it, and a table over both need not wait.
    """
    whole = context.job_def.asset_layer.executable_asset_keys
    selected = set(context.run.asset_selection or whole)
    record = context.instance.get_run_record_by_id(context.run.run_id)
    if record is None or len(selected) == 1:
        return lambda spec: {}
    created = record.create_timestamp.timestamp()
    began = datetime.fromtimestamp(record.start_time or created, UTC)

    def until(spec: dg.AssetSpec) -> dict[str, datetime]:
        sources = keys.read_source_keys(spec.metadata)
        return {name: began for name, key in sources.items() if key not in selected}

    return until


def _readable(
    context: dg.AssetExecutionContext, key: dg.AssetKey, error: Exception
) -> StreamTablesError:
    """The error with a readable message. Its traceback and causes go to the log of the step."""
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, StreamTablesError):
        context.log.debug(trace)
        return error
    context.log.error(trace)
    return StreamTablesError(
        f"the refresh failed with an unexpected error: {type(error).__name__}",
        why=first_line(str(error)),
        fix="see the traceback in the log of this step; the table is unchanged",
    ).about(".".join(key.path))


def _in_short(error: Exception) -> str:
    return str(error) if isinstance(error, StreamTablesError) else first_line(str(error))


def _record(
    context: dg.AssetExecutionContext,
    lake: Lake,
    spec: dg.AssetSpec,
    refresh: Refresh,
    until: Mapping[str, datetime],
) -> Iterator[dg.MaterializeResult[Any]]:
    if refresh.fallback:
        context.log.warning(f"{refresh.table} was run in full: {refresh.fallback}")
    found = record_of(context.instance, lake, spec, refresh, until, context.log.warning)
    for seen in found.observed:
        context.log_event(seen)
    if found.metadata:
        yield found.result()


@dataclass(frozen=True)
class Record:
    """What Dagster records of one asset: a stream table, or a table of a replication."""

    key: dg.AssetKey
    spec: dg.AssetSpec | None
    """None if the code location does not have the asset yet."""
    version: str | None
    """Its data version; None if nothing changed that it stands for."""
    metadata: Mapping[str, Any]
    """The metadata of the materialization; empty if a skipped refresh has none."""
    changed: bool
    """Whether its rows changed."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    """The tags of the materialization: the data versions of its sources that the refresh read."""
    observed: tuple[dg.AssetObservation, ...] = ()
    """Observations of sources with a new version, or of the table itself if its refresh was
    skipped."""

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
        """The materialization as an event without a run, with the tags that a step would add, and
        further metadata and tags."""
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
    """What Dagster records of the refresh of a stream table.

    Args:
        instance: The Dagster instance with the earlier events.
        lake: The lake with the table.
        spec: The asset of the table.
        refresh: The report of the refresh.
        until: The times until which its sources were read, by their names.
        warn: Called with a warning about what could not be determined.
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
    columns = keys.read_or_warn(
        lambda: _columns(lake, table, sources), f"the columns of {table.name} are", warn
    )
    metadata = keys.in_reading_order({**columns, **found})
    changed = refresh.action is not Action.NO_DATA
    return Record(spec.key, spec, refresh.data_version, metadata, changed, tags, tuple(news))


def _last_change(
    instance: dg.DagsterInstance, key: dg.AssetKey, lake: Lake, refresh: Refresh
) -> dict[str, Any]:
    """When the rows last changed: the time in the last materialization, if that has the same data
    version. Otherwise the time of the commit, which a run that died or an outage may have left
    unreported for hours."""
    event = instance.get_latest_materialization_event(key)
    before = event.asset_materialization if event is not None else None
    if event is not None and before is not None:
        known = before.metadata.get(keys.CHANGED)
        if (before.tags or {}).get(DATA_VERSION) == refresh.data_version:
            return {keys.CHANGED: known or dg.MetadataValue.timestamp(event.timestamp)}
    changed_at = lake.changed_at(refresh.table) or datetime.now(UTC)
    return {keys.CHANGED: dg.MetadataValue.timestamp(changed_at)}


def _columns(lake: Lake, table: StreamTable, sources: Mapping[str, dg.AssetKey]) -> dict[str, Any]:
    """The current location, columns and lineage; the asset has those from when it was loaded."""
    columns = lake.columns(table.name) or {}
    found: dict[str, Any] = {
        keys.URI: str(lake.location(table.name)),
        keys.COLUMN_SCHEMA: keys.column_schema(columns, table.changed_at),
    }
    with suppress(UnsupportedQuery):  # mode FULL accepts any query
        found[keys.COLUMN_LINEAGE] = keys.column_lineage(lake.plan(table), sources)
    return found
