"""What starts the refreshes of a code location: the runs of the sensor, or automation conditions.

The conditions decide like the sensor, for users who automate their other assets by conditions, too.
The decision is made once for all tables of an evaluation: so tables that are refreshed together are
in one run, upstream first, and a failed one is retried after the same pause.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of conditions at run time.
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import dagster as dg

from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.automation.refresh_sensor import build_refresh_sensor
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.automation.tick import TickMemory, evaluate
from dagster_streamtables.orchestration.catalog.asset_catalog import Catalog
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets, ReplicationCatalog
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks
from dagster_streamtables.orchestration.code_location import open_resource
from dagster_streamtables.orchestration.instance.dagster_runs import DEFINITIONS_TAG, SENSOR_TAG
from dagster_streamtables.runtime.lake import Lake


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
    """The assets, with conditions if these start refreshes, and the sensors of both ways."""
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
    keys = {spec.key for spec in ours.all}
    condition = RefreshIsDue(SensorDecisions(ours, resource, settings, resource_key))

    def add_condition(spec: dg.AssetSpec) -> dg.AssetSpec:
        if spec.key not in keys:
            return spec
        return spec.replace_attributes(automation_condition=condition)

    conditioned = [each.map_asset_specs(add_condition) for each in assets]
    return conditioned, [sensor, condition_sensor(ours, settings)]


@dataclass(eq=False)
class SensorDecisions:
    """The decisions of the sensor that the conditions replace. Each is used by all conditions of
    one evaluation."""

    assets: NodeAssets
    resource: StreamTablesResource
    settings: SensorSettings
    resource_key: str
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cursor: str | None = None
    _at: datetime | None = None
    _due: frozenset[dg.AssetKey] = frozenset()

    @cached_property
    def _lake(self) -> Lake:
        return open_resource(self.resource).logs()

    @cached_property
    def _memory(self) -> TickMemory:
        return TickMemory(self._lake, self.resource_key)

    def due(self, instance: dg.DagsterInstance, at: datetime, graph: Any) -> frozenset[dg.AssetKey]:
        """The assets to refresh now. `at` is the time of the evaluation, equal for all of its
        conditions."""
        with self._lock:
            if at != self._at:
                found = evaluate(
                    self.assets,
                    instance,
                    self._lake,
                    now=datetime.now(UTC),
                    settings=self.settings,
                    cursor=self._cursor,
                    memory=self._memory,
                    blocking=BlockingChecks.among(graph),
                    reports=False,
                )
                runs = found.run_requests or ()
                self._due = frozenset(key for run in runs for key in run.asset_selection or ())
                self._cursor, self._at = found.cursor, at
            return self._due


class RefreshIsDue(dg.AutomationCondition[dg.AssetKey]):
    """A source has a newer version, the schedule has elapsed, and nothing holds the refresh."""

    def __init__(self, decided: SensorDecisions) -> None:
        self._decided = decided

    @property
    def name(self) -> str:
        return "refresh_is_due"

    @property
    def description(self) -> str:
        return "a source has a newer version, and the table is due by its schedule"

    def evaluate(
        self, context: dg.AutomationContext[dg.AssetKey]
    ) -> dg.AutomationResult[dg.AssetKey]:
        view = context.asset_graph_view
        due = self._decided.due(view.instance, context.evaluation_time, view.asset_graph)
        subset = context.candidate_subset if context.key in due else context.get_empty_subset()
        return dg.AutomationResult(context, subset)


def condition_sensor(assets: NodeAssets, settings: SensorSettings) -> dg.SensorDefinition:
    """The sensor that evaluates the conditions. Its runs count as runs of the refresh sensor, so
    that a failed refresh is not retried too early."""
    keys = [spec.key for spec in assets.all]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.AutomationConditionSensorDefinition(
            name=f"{settings.name}_conditions",
            target=dg.AssetSelection.assets(*keys),
            run_tags={SENSOR_TAG: settings.name, DEFINITIONS_TAG: assets.nodes.fingerprint},
            minimum_interval_seconds=settings.interval_seconds,
            default_status=settings.status,
            description="Evaluates the automation conditions of the stream tables.",
            # The conditions are decided by the code of this package.
            use_user_code_server=True,
        )
