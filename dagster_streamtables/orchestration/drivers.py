"""What starts the refreshes of a code location: the sensor's runs, or automation conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import dagster as dg

from dagster_streamtables.orchestration.assets.resource import StreamTablesResource
from dagster_streamtables.orchestration.automation.conditions import (
    SensorDecisions,
    condition_sensor,
    with_conditions,
)
from dagster_streamtables.orchestration.automation.sensor import build_refresh_sensor
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.automation.tick import evaluate
from dagster_streamtables.orchestration.catalog.catalog import Catalog
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.orchestration.catalog.replicated import ReplicationCatalog
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks
from dagster_streamtables.orchestration.code_location import open_resource
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.observe.heartbeat import Heartbeats
from dagster_streamtables.runtime.observe.log_heads import LatestVersions
from dagster_streamtables.scheduling.other_definitions import OtherDefinitions


def build_drivers(
    assets: Sequence[dg.AssetsDefinition],
    catalog: Catalog,
    replicated: ReplicationCatalog,
    resource: StreamTablesResource,
    *,
    settings: SensorSettings | None,
    executor: dg.ExecutorDefinition | None,
    quick: QuickChecks | None,
    resource_key: str,
) -> tuple[list[dg.AssetsDefinition], list[dg.SensorDefinition]]:
    """The assets as they are refreshed, and the sensors that see to it; none if there are none."""
    if not catalog.entries and not replicated.entries:
        return [*assets], []
    settings = (settings or SensorSettings()).with_default_name(resource_key)
    sensor = build_refresh_sensor(
        tables=catalog,
        settings=settings,
        executor=executor,
        resource_key=resource_key,
        quick=quick,
        replications=replicated,
    )
    if not settings.conditions:
        return [*assets], [sensor]
    ours = NodeAssets(catalog, replicated)
    decided = SensorDecisions(_Ticks(ours, resource, settings, resource_key).tick)
    return with_conditions(assets, ours, decided), [sensor, condition_sensor(ours, settings)]


class _Ticks:
    """Those of a sensor whose place the conditions take: from one to the next, they remember as
    much as it would."""

    def __init__(
        self,
        assets: NodeAssets,
        resource: StreamTablesResource,
        settings: SensorSettings,
        resource_key: str,
    ) -> None:
        self._assets, self._resource, self._settings = assets, resource, settings
        self._resource_key = resource_key
        self._cursor: str | None = None
        self._others = OtherDefinitions()

    @cached_property
    def _lake(self) -> Lake:
        return open_resource(self._resource).logs()

    @cached_property
    def _heads(self) -> LatestVersions:
        return LatestVersions(self._lake.location, self._lake.storage_options)

    @cached_property
    def _beats(self) -> Heartbeats:
        return Heartbeats(self._lake.root, self._lake.storage_options, self._resource_key)

    def tick(self, instance: dg.DagsterInstance, now: datetime, graph: Any) -> dg.SensorResult:
        found = evaluate(
            self._assets,
            instance,
            self._lake,
            now=now,
            settings=self._settings,
            cursor=self._cursor,
            heads=self._heads,
            beats=self._beats,
            others=self._others,
            blocking=BlockingChecks.among(graph),
            reports=False,
        )
        self._cursor = found.cursor
        return found
