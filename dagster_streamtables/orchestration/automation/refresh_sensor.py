"""The refresh sensor, which starts all scheduled refreshes.

`targets_of` returns what the sensors of some definitions refresh, for a worker that replaces them:
the same tables, decided with the same settings, on the same resource.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of sensors at run time.
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

import dagster as dg

from dagster_streamtables.orchestration.assets.thread_executor import threads_executor
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.automation.tick import TickMemory, evaluate
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import (
    RESOURCE_KEY,
    Tables,
    build_catalog,
)
from dagster_streamtables.orchestration.catalog.node_assets import (
    DeclaredReplications,
    NodeAssets,
    build_replication_catalog,
)
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks, WithBlockingChecks
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks
from dagster_streamtables.scheduling.dueness import too_fast
from dagster_streamtables.scheduling.other_definitions import undefined_here


def build_refresh_sensor(
    *,
    tables: Tables,
    settings: SensorSettings | None = None,
    executor: dg.ExecutorDefinition | None = threads_executor,
    tags: Mapping[str, str] | None = None,
    resource_key: str = RESOURCE_KEY,
    quick: QuickChecks | None = None,
    replications: DeclaredReplications = (),
    **catalog: Any,
) -> dg.SensorDefinition:
    """A sensor that refreshes the tables that are due, each after those it reads.

    It refreshes due tables whose sources changed, in one run for each connected part of the graph,
    and marks other due tables as fresh, without a run. Tables of a worker that is alive are left to
    it. Its switch in Dagster's UI turns all scheduled refreshes on or off.

    Args:
        tables: The stream tables.
        settings: When it ticks, and how it decides.
        executor: The executor of the runs. By default one process refreshes all tables of a run,
            each in a thread, which starts much faster than one process per table. None for the
            executor of the code location.
        tags: Additional tags for the runs.
        resource_key: The key of the `StreamTablesResource`.
        quick: The checks to evaluate between refreshes.
        replications: The replications that write sources of the tables, in the same graph. Each
            tick asks their publishers for news.
        catalog: Arguments of `build_catalog`.
    """
    settings = (settings or SensorSettings()).with_default_name(resource_key)
    built = build_catalog(tables, **catalog)
    assets = NodeAssets(built, build_replication_catalog(replications))
    every = [*(entry.key for entry in built.entries), *assets.replicated.nodes]
    job = dg.define_asset_job(
        f"{settings.name}_run", WithBlockingChecks(every), executor_def=executor, tags=tags
    )

    about = "Refreshes the stream tables that are due, upstream tables first."
    slow = too_fast(assets.nodes.schedules, settings.interval_seconds)
    # A code server runs many ticks, but each tick gets a new resource.
    memory: dict[str, TickMemory] = {}

    @dg.sensor(
        name=settings.name,
        job=job,
        minimum_interval_seconds=settings.interval_seconds,
        default_status=settings.status,
        description=" ".join([about, *slow]),
        required_resource_keys={resource_key},
    )
    def refresh(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        lake = getattr(context.resources, resource_key).logs()
        repository = context.repository_def
        graph = repository.asset_graph if repository is not None else None
        if lake.root not in memory:
            nodes = graph.asset_nodes if graph is not None else ()
            named = {str(node.metadata.get(keys.TABLE_NAME)) for node in nodes}
            defined = named | {entry.name for entry in built.entries}
            memory[lake.root] = TickMemory(lake, resource_key, undefined_here(lake, defined))
        return evaluate(
            assets,
            context.instance,
            lake,
            now=datetime.now(UTC),
            settings=settings,
            cursor=context.cursor,
            memory=memory[lake.root],
            checks=graph.asset_check_keys if graph is not None else (),
            blocking=BlockingChecks.among(graph) if graph is not None else None,
            quick=quick,
            server=context.code_location_origin,
        )

    _sensed[refresh._raw_fn] = SensorTargets(assets, resource_key, settings, quick)
    return refresh


@dataclass(frozen=True)
class SensorTargets:
    """The arguments of one refresh sensor."""

    assets: NodeAssets
    resource_key: str
    settings: SensorSettings
    quick: QuickChecks | None


_sensed: WeakKeyDictionary[Callable[..., Any], SensorTargets] = WeakKeyDictionary()
"""By the function of the sensor: a project of `dg` serves copies of sensors, with the same function
and the place of their component."""


def targets_of(definitions: dg.Definitions) -> list[SensorTargets]:
    """What the refresh sensors of some definitions refresh."""
    sensors = [each for each in definitions.sensors or () if isinstance(each, dg.SensorDefinition)]
    return [_sensed[each._raw_fn] for each in sensors if each._raw_fn in _sensed]
