"""Refreshes the stream tables of a step, and records the results in Dagster."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.assets.record import record_of
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.checks.after_refresh import tell_checks
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks
from dagster_streamtables.orchestration.instance.run_process import name_process
from dagster_streamtables.runtime.dag import in_order
from dagster_streamtables.runtime.errors.foreign_words import first_line
from dagster_streamtables.runtime.errors.verdict import may_pass
from dagster_streamtables.runtime.model.report import Refresh

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
        raise _failures(failed)


def _by_hand(context: dg.AssetExecutionContext) -> bool:
    """Whether somebody started the run on a page of Dagster's."""
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


def _failures(failed: Mapping[dg.AssetKey, Exception]) -> dg.Failure:
    names = ", ".join(key.to_user_string() for key in failed)
    return dg.Failure(
        description=f"{len(failed)} of the stream tables could not be refreshed: {names}",
        metadata={key.to_user_string(): _in_short(error) for key, error in failed.items()},
        allow_retries=any(map(may_pass, failed.values())),
    )


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
