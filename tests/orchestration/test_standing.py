"""Failed checks of tables that are marked fresh, as Dagster's pages then show them."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.

import asyncio
from datetime import UTC, datetime, timedelta, tzinfo

import dagster as dg
import pytest
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord
from dagster._core.test_utils import freeze_time
from dagster_shared.record import replace

from dagster_streamtables.orchestration import StreamTablesResource, build_definitions
from dagster_streamtables.orchestration.history import read_history
from dagster_streamtables.orchestration.standing import standing
from dagster_streamtables.runtime.table import StreamTable
from orchestration.conftest import Write

TABLE = StreamTable("totals", "SELECT count(*) AS n FROM orders", schedule="1s")
KEY, OTHER = dg.AssetKey("totals"), dg.AssetKey("other")
CHECK = dg.AssetCheckKey(KEY, "equals_recomputation")
FAILED = dg.AssetCheckEvaluation(
    asset_key=KEY,
    check_name=CHECK.name,
    passed=False,
    metadata={"rows": 32},
    description="32 rows are missing",
    severity=dg.AssetCheckSeverity.WARN,
)
PASSED = replace(FAILED, passed=True)
MADE = dg.AssetMaterialization(KEY)
Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


def stand(instance: dg.DagsterInstance, *keys: dg.AssetKey) -> list[dg.AssetCheckEvaluation]:
    """Those of tables that are marked fresh now."""
    hour, now = timedelta(hours=1), datetime.now(UTC)
    past = read_history(instance, keys, requested={}, stuck_after=hour, now=now)
    return list(standing(instance, [CHECK, dg.AssetCheckKey(OTHER, CHECK.name)], past))


def shown(instance: dg.DagsterInstance) -> bool:
    """Whether the pages show the check's last result, instead of "Not evaluated"."""

    async def current() -> bool:
        context = LoadingContextForTest(instance)
        record = await AssetCheckExecutionRecord.gen(context, CHECK)
        return record is not None and await record.targets_latest_materialization(context)

    return asyncio.run(current())


def in_a_run(instance: dg.DagsterInstance, *events: Event) -> None:
    """The events, as a run reports them."""

    @dg.op(out=dg.Out(dg.Nothing))
    def report(context: dg.OpExecutionContext) -> None:
        for event in events:
            context.log_event(event)

    @dg.job
    def run() -> None:
        report()

    assert run.execute_in_process(instance=instance).success


def without_a_run(instance: dg.DagsterInstance, *events: Event) -> None:
    for event in events:
        instance.report_runless_asset_event(event)


def test_a_failure_since_the_last_materialization_stands(instance: dg.DagsterInstance) -> None:
    without_a_run(instance, MADE)
    in_a_run(instance, FAILED)
    [again] = stand(instance, KEY, OTHER)
    assert again == FAILED
    without_a_run(instance, MADE)
    assert not shown(instance)
    without_a_run(instance, again)
    assert shown(instance)
    assert stand(instance, KEY) == []
    without_a_run(instance, MADE)
    assert shown(instance)


@pytest.mark.parametrize(
    "events",
    [
        (),
        (FAILED,),
        (MADE,),
        (FAILED, MADE),
        (MADE, FAILED, MADE),
        (MADE, PASSED),
        (MADE, FAILED, PASSED),
        (dg.AssetMaterialization(OTHER), FAILED),
    ],
)
def test_nothing_else_does(events: tuple[Event, ...], instance: dg.DagsterInstance) -> None:
    in_a_run(instance, *events)
    assert stand(instance, KEY, OTHER) == []


def test_a_failure_of_a_table_that_is_not_marked_is_left(instance: dg.DagsterInstance) -> None:
    in_a_run(instance, MADE, FAILED)
    assert stand(instance, OTHER) == []


@pytest.mark.spark
def test_the_page_shows_it_through_ticks(
    resource: StreamTablesResource,
    write: Write,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return now

    write("orders", id=[1, 2, 3])
    definitions = build_definitions(resource=resource, tables=[TABLE], min_schedule_seconds=1)
    repository = definitions.get_repository_def()
    sensor = repository.get_sensor_def("streamtables_refresh")
    job = repository.get_job("streamtables_refresh_run")
    assert job.execute_in_process(instance=instance).success
    in_a_run(instance, FAILED)
    told: list[Event] = []
    monkeypatch.setattr("dagster_streamtables.orchestration.sensor.datetime", Clock)
    for tick in (1, 2, 3):
        now = datetime.now(UTC) + timedelta(seconds=2 * tick)  # the table is due after a second
        with dg.build_sensor_context(
            instance, repository_def=repository, resources=repository.get_top_level_resources()
        ) as context:
            events = sensor.evaluate_tick(context).asset_events
        with freeze_time(now):
            without_a_run(instance, *events)
        told += [event for event in events if event.asset_key == KEY]
        assert shown(instance)
    kinds = [type(event) for event in told]
    assert kinds.count(dg.AssetMaterialization) == 3
    assert kinds.count(dg.AssetCheckEvaluation) == 1
