"""The `Workload` of the definitions of a Dagster code location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg

from dagster_streamtables.errors import EnvironmentProblem, InvalidDefinition
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.automation.refresh_sensor import SensorTargets, targets_of
from dagster_streamtables.orchestration.automation.sensor_events import missing_events
from dagster_streamtables.orchestration.automation.tick import progress_of
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks, blocks_of
from dagster_streamtables.orchestration.code_location import open_resource
from dagster_streamtables.orchestration.instance.dagster_runs import (
    DEFINITIONS_TAG,
    SENSOR_TAG,
    latest,
    read_history,
)
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.scheduling.refresh_states import Versions
from dagster_streamtables.worker.dagster_reports import DagsterEvents
from dagster_streamtables.worker.lake_workload import past_of_logs
from dagster_streamtables.worker.outbox import Outbox
from dagster_streamtables.worker.workload import RefreshMemory, Workload


def of_definitions(
    definitions: dg.Definitions,
    where: str,
    instance: dg.DagsterInstance | None,
    *,
    name: str = "",
    root: str = "",
    report_every: float = 10.0,
) -> Workload:
    """What the refresh sensor of some definitions would refresh.

    Args:
        definitions: The definitions of a code location.
        where: The module or file, for messages.
        instance: Where to report; None to report nothing.
        name: The resource of the tables; needed if the definitions have several.
        root: The root on the command line, if any; the resource must have the same.
        report_every: The shortest time between two reports of a table, in seconds.

    Raises:
        InvalidDefinition: There is no such sensor, or there are several, or its root is another.
    """
    sensed = _choose_sensor(targets_of(definitions), where, name)
    given = (definitions.resources or {}).get(sensed.resource_key)
    if not isinstance(given, StreamTablesResource):
        raise InvalidDefinition(
            f'the definitions of {where} have no resource "{sensed.resource_key}"',
            why="it says where the tables are",
            fix="add the StreamTablesResource under this name",
        )
    resource, settings = open_resource(given), sensed.settings
    logs = _below(root, resource.logs(), where)
    sensor = settings.with_default_name(sensed.resource_key).name
    requested = {SENSOR_TAG: sensor, DEFINITIONS_TAG: sensed.assets.nodes.fingerprint}
    assets, checks = _without_blocking_checks(sensed.assets, definitions)
    nodes = assets.nodes
    found = Workload(
        nodes,
        resource.lake,
        logs,
        partial(past_of_logs, logs, nodes.examined),
        backoff=settings.backoff,
        name=sensed.resource_key,
    )
    if instance is None:
        return found
    events = DagsterEvents(instance, assets, logs, sensed.quick)
    return replace(
        found,
        past=partial(_past, assets, requested, settings.stuck_after, logs, instance),
        reports=Outbox(events, nodes.names, report_every),
        blocked=lambda: blocks_of(assets.source_keys, checks.refusals(instance)),
    )


def _below(root: str, lake: Lake, where: str) -> Lake:
    if root and Lake(root).root != lake.root:
        raise InvalidDefinition(
            f"the definitions of {where} have another root than the one given",
            where=f"{root}, and {lake.root}",
            why="Dagster would be told of tables that its assets do not show",
            fix="leave out --root, or change the resource",
        )
    return lake


def _without_blocking_checks(
    assets: NodeAssets, definitions: dg.Definitions
) -> tuple[NodeAssets, BlockingChecks]:
    """The tables without those that have blocking checks of their own, and these checks.

    Only a run evaluates a check between a refresh and what is below. So the sensor starts the runs
    of such tables, and the worker refreshes what is below when the checks have passed.
    """
    checks = BlockingChecks.among(definitions.resolve_asset_graph())
    entries = assets.catalog.entries
    kept = tuple(entry for entry in entries if entry.key not in checks.assets)
    for entry in entries:
        if entry not in kept:
            logger.info("%s has blocking checks, so the sensor refreshes it in runs", entry.name)
    return replace(assets, catalog=replace(assets.catalog, entries=kept)), checks


def instance_to_report_to() -> dg.DagsterInstance:
    """The instance of ``DAGSTER_HOME``. Raises `EnvironmentProblem` if there is none."""
    try:
        return dg.DagsterInstance.get()
    except Exception as error:
        raise EnvironmentProblem(
            "there is no Dagster instance to report to",
            why=first_line(str(error)),
            fix="set DAGSTER_HOME to the folder that dagster dev or its daemon uses, or give "
            "--no-report",
        ) from error


def _choose_sensor(found: Sequence[SensorTargets], where: str, name: str) -> SensorTargets:
    named = [each for each in found if name in ("", each.resource_key)]
    if len(named) == 1:
        return named[0]
    known = ", ".join(each.resource_key for each in found)
    if named:
        raise InvalidDefinition(
            f"the definitions of {where} have {len(named)} refresh sensors",
            where=known,
            why="a worker drives what one of them would refresh",
            fix="give the resource of one by --name, and run a worker for each",
        )
    if found:
        raise InvalidDefinition(
            f'no refresh sensor of {where} is that of the resource "{name}"',
            where=known,
            fix="give the resource of one of them by --name",
        )
    raise InvalidDefinition(
        f"the definitions of {where} have no refresh sensor",
        why="a worker drives what the sensor would refresh",
        fix="use build_definitions or the component, or add build_refresh_sensor",
    )


def _past(
    assets: NodeAssets,
    requested: Mapping[str, str],
    stuck_after: timedelta,
    logs: Lake,
    instance: dg.DagsterInstance,
) -> Mapping[str, RefreshMemory]:
    """What Dagster knows of the refreshes, after it was told of commits without an event; what the
    logs know, if it cannot be asked."""
    now = datetime.now(UTC)
    try:
        found = read_history(
            instance,
            [spec.key for spec in assets.all],
            requested=requested,
            stuck_after=stuck_after,
            now=now,
        )
        known = {n: latest(found[spec.key] for spec in specs) for n, specs in assets.specs.items()}
        versions = Versions(logs.latest_versions())
        events = missing_events(assets, known, (), known, versions, instance, logs, now)
        for event in events.values():
            instance.report_runless_asset_event(event)
    except Exception as error:
        logger.warning("Dagster cannot be asked, so the logs of the tables are: %s", error)
        return past_of_logs(logs, assets.nodes.examined)
    return {
        name: RefreshMemory(**vars(progress_of(assets.specs[name], each)), as_of=each.as_of)
        for name, each in known.items()
    }
