"""A code location over real tables, whose drivers are asked and whose runs are executed at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import dagster as dg
from dagster._core.definitions.sensor_definition import SensorExecutionData

from dagster_streamtables import SensorSettings, StreamTablesResource, build_definitions
from dagster_streamtables.orchestration.assets import materialization
from dagster_streamtables.orchestration.automation.refresh_sensor import targets_of
from dagster_streamtables.orchestration.automation.tick import TickMemory, evaluate
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions
from dagster_streamtables.worker.location import of_definitions
from dagster_streamtables.worker.loop import Worker

JOB = "streamtables_refresh_run"
SENSOR = SensorSettings(retry_first=timedelta(milliseconds=1))
_TICKS = 12
"""After so many ticks that start runs, they will go on for ever."""


@dataclass
class Deployment:
    """A code location: the files that its runs load, and the definitions of the process that
    decides."""

    resource: StreamTablesResource
    instance: dg.DagsterInstance
    files: dict[str, StreamTable]
    verdicts: dict[str, bool] = field(default_factory=dict[str, bool])
    """The tables with a blocking check of the user's, each with what it will say."""
    cursor: str | None = None

    sensor: ClassVar = SENSOR

    def __post_init__(self) -> None:
        self.reload()

    def reload(self) -> None:
        """The process that decides starts anew."""
        self.loaded, self.known = self.definitions(), dict(self.files)
        [sensed] = targets_of(self.loaded)
        self.assets: NodeAssets = sensed.assets
        self.memory = TickMemory(self.lake)

    @property
    def lake(self) -> Lake:
        return self.resource.logs()

    def definitions(self) -> dg.Definitions:
        """What a new process loads."""
        found = build_definitions(
            tables=list(self.files.values()),
            resource=self.resource,
            min_schedule_seconds=0,
            sensor=self.sensor,
        )
        checks = [self.check(name) for name in self.verdicts]
        return dg.Definitions.merge(found, dg.Definitions(asset_checks=checks))

    def check(self, name: str) -> dg.AssetChecksDefinition:
        """A blocking check of a table, which passes if its verdict says so."""

        @dg.asset_check(asset=dg.AssetKey(name.split(".")), name="is_sound", blocking=True)
        def is_sound() -> dg.AssetCheckResult:
            return dg.AssetCheckResult(passed=self.verdicts[name])

        return is_sound

    def tick(self) -> dg.SensorResult:
        """What the sensor asks for; what it reports is reported, as the daemon would."""
        found = self.ask()
        self.cursor = found.cursor
        for event in found.asset_events:
            self.instance.report_runless_asset_event(event)
        return found

    def ask(self) -> dg.SensorResult:
        return evaluate(
            self.assets,
            self.instance,
            self.lake,
            now=datetime.now(UTC),
            settings=SENSOR,
            cursor=self.cursor,
            memory=self.memory,
            blocking=BlockingChecks.among(self.loaded.resolve_asset_graph()),
        )

    def execute(self, request: dg.RunRequest) -> bool:
        """Run what the sensor asked for, in a process that loads the files."""
        job = self.definitions().resolve_job_def(JOB)
        assets = frozenset(request.asset_selection or ())
        checks = frozenset(request.asset_check_keys or ())
        subset = job.get_subset(asset_selection=assets, asset_check_selection=checks)
        tags = dict(request.tags)
        done = subset.execute_in_process(instance=self.instance, tags=tags, raise_on_error=False)
        return done.success

    def settle(self) -> list[set[str]]:
        """Tick, and run what is asked for, until nothing is. Returns what the runs refreshed.

        Raises:
            AssertionError: Runs follow each other for ever.
        """
        ran: list[set[str]] = []
        for _ in range(_TICKS):
            requests = self.tick().run_requests or []
            if not requests:
                return ran
            for request in requests:
                ran.append({".".join(key.path) for key in request.asset_selection or ()})
                self.execute(request)
        raise AssertionError(f"runs follow each other for ever: {ran}")

    def work(self) -> None:
        """A worker starts, does what there is to do, and ends."""
        worker = Worker(of_definitions(self.definitions(), "here", self.instance, report_every=0.1))
        try:
            for _ in range(2_000):
                assert worker.turn()
                if worker.lease.is_active and worker.is_quiet:
                    return
                worker.wait(0.02)
        finally:
            worker.stop()
            worker.finish()
        raise AssertionError("the worker does not come to rest")

    def kill(self, name: str) -> int:
        """A run that ends between the commit of a table and its event. Returns the version."""
        killed = dg.Failure("killed", allow_retries=False)
        request = dg.RunRequest(asset_selection=[dg.AssetKey(name.split("."))], asset_check_keys=[])
        with patch.object(materialization, "_record", side_effect=killed):
            assert not self.execute(request)
        return int(self.stored(name).committed)

    # What must hold at rest.

    @property
    def refusals(self) -> dict[dg.AssetKey, str]:
        """The assets whose rows nothing below may read, and why."""
        checks = BlockingChecks.among(self.loaded.resolve_asset_graph())
        return checks.refusals(self.instance)

    def stored(self, name: str) -> Any:
        return LatestVersions(self.lake.location).head_with_state(name)

    def event(self, name: str) -> dg.AssetMaterialization | None:
        found = self.instance.get_latest_materialization_event(dg.AssetKey(name.split(".")))
        return None if found is None else found.asset_materialization

    def said(self, name: str, key: str) -> Any:
        """What the last event of a table says below a key of its metadata."""
        return last_event(self.instance, dg.AssetKey(name.split("."))).metadata[key].value

    def events(self, name: str) -> list[dg.AssetMaterialization]:
        records = self.instance.fetch_materializations(dg.AssetKey(name.split(".")), limit=1000)
        return [e.asset_materialization for e in records.records if e.asset_materialization]

    def complaints(self, *, but: Sequence[str] = ()) -> Iterator[str]:
        """What does not hold of the tables, except some: nothing, at rest.

        Each equals its query, Dagster's last event is its last version, and what is downstream has
        read its data version.
        """
        for name, table in self.files.items():
            if name in but:
                continue
            stored = self.stored(name)
            if stored is None:
                yield f"{name} was never refreshed"
                continue
            found = self.resource.lake().check(table)
            if not found.equal:
                yield f"{name} is wrong: {found}"
            event = self.event(name)
            tags = dict(event.tags or {}) if event is not None else {}
            told = tags.get("dagster/data_version")
            if told != stored.state.data_version:
                yield f"{name} has data version {stored.state.data_version}, Dagster knows {told}"
            for source in table.sources:
                if source in self.files and source not in but:
                    read = tags.get(f"dagster/input_data_version/{source.replace('.', '/')}")
                    now = self.stored(source).state.data_version
                    if read != now:
                        yield f"{name} read {read} of {source}, which has {now}"


def ticked(
    defs: dg.Definitions, instance: dg.DagsterInstance, sensor: str = "streamtables_refresh"
) -> SensorExecutionData:
    """What the daemon is told at a tick of a sensor that a code location serves."""
    repository = defs.get_repository_def()
    resources = repository.get_top_level_resources()
    with dg.build_sensor_context(
        instance, repository_def=repository, resources=resources
    ) as context:
        return repository.get_sensor_def(sensor).evaluate_tick(context)


def last_event(instance: dg.DagsterInstance, key: dg.AssetKey) -> dg.AssetMaterialization:
    event = instance.get_latest_materialization_event(key)
    assert event is not None and event.asset_materialization is not None
    return event.asset_materialization


def selections(result: dg.SensorResult) -> list[set[str]]:
    return [
        {key.to_user_string() for key in request.asset_selection or ()}
        for request in result.run_requests or ()
    ]


def reasons(result: dg.SensorResult) -> str:
    return str(result.skip_reason.skip_message) if result.skip_reason is not None else ""


def hurry(path: Path, version: int) -> None:
    """Let the commit of a version be an hour in the future by its writer's clock."""
    file = path / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] += 3_600_000
    file.write_text("\n".join(json.dumps(action) for action in actions))
