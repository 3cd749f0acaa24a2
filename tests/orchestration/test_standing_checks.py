"""Results of checks after their table was materialized, as Dagster's pages then show them."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.

import asyncio
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord
from dagster._core.test_utils import freeze_time
from dagster_shared.record import replace
from deltalake import CommitProperties, write_deltalake

from dagster_streamtables import CheckSettings, StreamTablesResource, build_definitions
from dagster_streamtables.catalog import build_catalog
from dagster_streamtables.orchestration.catalog.metadata import EVALUATED
from dagster_streamtables.orchestration.checks import quick_checks
from dagster_streamtables.orchestration.checks.table_checks import KINDS
from dagster_streamtables.orchestration.instance.dagster_runs import read_history
from dagster_streamtables.orchestration.instance.standing_checks import (
    results_to_carry,
    results_to_repeat,
)
from dagster_streamtables.runtime.model.stream_table import OnFull, StreamTable
from dagster_streamtables.runtime.model.table_state import SourceState, StreamTableState
from orchestration.conftest import Write
from orchestration.place import ticked
from runtime.orders import ACCOUNT

TABLE = StreamTable("totals", "SELECT count(*) AS n FROM orders", schedule="1s")
OPEN = StreamTable("open", "SELECT id FROM orders", schedule="1s")
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


def stand(instance: dg.DagsterInstance, *keys: dg.AssetKey) -> list[dg.AssetCheckEvaluation]:
    """Those of tables that are marked fresh now."""
    hour, now = timedelta(hours=1), datetime.now(UTC)
    past = read_history(instance, keys, requested={}, stuck_after=hour, now=now)
    return list(results_to_repeat(instance, [CHECK, dg.AssetCheckKey(OTHER, CHECK.name)], past))


def shown(instance: dg.DagsterInstance, check: dg.AssetCheckKey = CHECK) -> bool:
    """Whether the pages show the check's last result, instead of "Not evaluated"."""

    async def current() -> bool:
        context = LoadingContextForTest(instance)
        record = await AssetCheckExecutionRecord.gen(context, check)
        return record is not None and await record.targets_latest_materialization(context)

    return asyncio.run(current())


def last(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> dg.AssetCheckEvaluation:
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key([check])
    evaluation = found[check].evaluation
    assert evaluation is not None
    return evaluation


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


@pytest.mark.parametrize("result", [FAILED, PASSED])
def test_a_result_since_the_last_materialization_stands(
    result: dg.AssetCheckEvaluation, instance: dg.DagsterInstance
) -> None:
    without_a_run(instance, MADE)
    in_a_run(instance, result)
    [again] = stand(instance, KEY, OTHER)
    assert again == result
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
        (dg.AssetMaterialization(OTHER), FAILED),
    ],
)
def test_nothing_else_does(events: tuple[Event, ...], instance: dg.DagsterInstance) -> None:
    in_a_run(instance, *events)
    assert stand(instance, KEY, OTHER) == []


def test_a_result_of_a_table_that_is_not_marked_is_left(instance: dg.DagsterInstance) -> None:
    in_a_run(instance, MADE, FAILED)
    assert stand(instance, OTHER) == []


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
    job = definitions.get_repository_def().get_job("streamtables_refresh_run")
    assert job.execute_in_process(instance=instance).success
    in_a_run(instance, FAILED)
    told: list[Event] = []
    monkeypatch.setattr(
        "dagster_streamtables.orchestration.automation.refresh_sensor.datetime", Clock
    )
    for tick in (1, 2, 3):
        now = datetime.now(UTC) + timedelta(hours=tick)
        events = ticked(definitions, instance).asset_events
        with freeze_time(now):
            without_a_run(instance, *events)
        told += [event for event in events if event.asset_key == KEY]
        assert shown(instance)
    kinds = [type(event) for event in told]
    assert kinds.count(dg.AssetMaterialization) == 3
    assert [e.check_name for e in told if isinstance(e, dg.AssetCheckEvaluation)].count(
        CHECK.name
    ) == 1


def test_a_result_is_told_again_with_the_time_of_its_evaluation(
    instance: dg.DagsterInstance,
) -> None:
    """A table that changes every minute would show a check of every hour as not evaluated."""
    in_a_run(instance, MADE, FAILED)
    in_a_run(instance, MADE)
    assert not shown(instance)
    [same] = results_to_carry(instance, [CHECK], changed=False)
    assert same == FAILED
    [first] = results_to_carry(instance, [CHECK], changed=True)
    assert first.description is not None
    assert first.description.startswith("32 rows are missing\n\nEvaluated before the last refresh")
    in_a_run(instance, MADE, first)
    assert shown(instance)
    for changed in (True, False):
        [again] = results_to_carry(instance, [CHECK], changed=changed)
        assert (again.description, again.metadata) == (first.description, first.metadata)
    in_a_run(instance, PASSED)
    [passed] = results_to_carry(instance, [CHECK], changed=False)
    assert passed == PASSED


def test_no_check_is_not_evaluated_for_long(
    resource: StreamTablesResource, write: Write, instance: dg.DagsterInstance
) -> None:
    """It was "0 / 5 passed" after every refresh."""
    write("orders", id=[1, 2, 3])
    definitions = build_definitions(resource=resource, tables=[TABLE], min_schedule_seconds=1)
    graph = definitions.resolve_asset_graph()
    refresh = definitions.resolve_job_def("streamtables_refresh_run")

    def passed() -> set[str]:
        found = [check for check in graph.asset_check_keys if shown(instance, check)]
        assert all(last(instance, check).passed for check in found)
        return {check.name for check in found}

    everything = {kind.name for kind in KINDS if kind.applies(TABLE)}
    assert refresh.execute_in_process(instance=instance).success
    assert passed() == everything
    for kind in ("equality", "state", "columns"):
        job = definitions.resolve_job_def(f"streamtables_{kind}_check")
        assert job.execute_in_process(instance=instance).success
    write("orders", id=[4])
    for _ in range(2):  # with a change, and without one
        assert refresh.execute_in_process(instance=instance).success
        assert passed() == everything
    assert EVALUATED in last(instance, CHECK).metadata


def test_the_first_refresh_leaves_a_costly_check_to_its_schedule(
    resource: StreamTablesResource,
    write: Write,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it does for one without a schedule, which somebody launches, or nobody."""
    write("orders", id=[1, 2, 3])

    def evaluated(settings: CheckSettings) -> set[str]:
        definitions = build_definitions(
            resource=resource, tables=[TABLE], checks=settings, min_schedule_seconds=1
        )
        refresh = definitions.resolve_job_def("streamtables_refresh_run")
        done = refresh.execute_in_process(instance=instance)
        return {each.check_name for each in done.get_asset_check_evaluations()}

    quick = {"reflects_its_sources", "history_is_kept"}
    monkeypatch.setattr(quick_checks, "_FIRST_WITHIN", 0.0)
    assert evaluated(CheckSettings()) == quick
    monkeypatch.undo()
    write("orders", id=[4])
    assert evaluated(CheckSettings(equality=None, state=None)) == {*quick, "columns_are_as_defined"}


def test_the_sensor_tells_of_a_table_that_falls_behind_once(
    logs: StreamTablesResource, write: Write, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    write("orders", id=[1])
    lake = logs.logs()
    log = lake.access.catalog.newest("orders")
    assert log is not None
    seen = SourceState(log.id, log.version, {}, log.commit)
    state = StreamTableState("totals", 1, "", {"orders": seen}, "", None, "", ACCOUNT)
    write_deltalake(
        tmp_path / "public" / "totals",
        pa.table({"n": [1]}),
        commit_properties=CommitProperties(custom_metadata={"userMetadata": state.to_json()}),
    )
    with freeze_time(datetime.now(UTC) - timedelta(seconds=9)):
        without_a_run(instance, MADE)
    catalog = build_catalog([TABLE], min_schedule_seconds=1)
    quick = quick_checks.QuickChecks(catalog, CheckSettings(), timedelta(minutes=5))
    start = datetime.now(UTC)

    def told(seconds: float) -> dict[str, str]:
        now, hour = start + timedelta(seconds=seconds), timedelta(hours=1)
        past = read_history(instance, [KEY], requested={}, stuck_after=hour, now=now)
        found = list(quick.new_results(logs.logs(), instance, {"totals": past[KEY]}, now))
        with freeze_time(now):
            without_a_run(instance, *found)
        return {each.check_name: "passed" if each.passed else each.severity.value for each in found}

    assert told(0) == {"reflects_its_sources": "passed", "history_is_kept": "passed"}
    assert told(1000) == {}
    write("orders", id=[2])
    assert told(1001) == {}, "its turn comes after five minutes"
    assert told(2000) == {"reflects_its_sources": "ERROR"}
    assert told(3000) == {}


def test_a_refresh_in_full_fails_its_check_until_the_next_change(
    resource: StreamTablesResource, write: Write, instance: dg.DagsterInstance
) -> None:
    def found(query: str) -> dg.AssetCheckEvaluation:
        watched = StreamTable("totals", query, schedule="1s", on_full=OnFull.WARN)
        definitions = build_definitions(
            resource=resource,
            tables=[watched, OPEN],
            checks=CheckSettings(full="0 * * * *"),
            min_schedule_seconds=1,
        )
        definitions.resolve_job_def("streamtables_full_check")
        refresh = definitions.resolve_job_def("streamtables_refresh_run")
        done = refresh.execute_in_process(instance=instance).get_asset_check_evaluations()
        [of_full] = [each for each in done if each.check_name == "was_not_full"]
        assert of_full.asset_key == KEY, "a table that allows it has no such check"
        return of_full

    write("orders", id=[1])
    assert found(TABLE.query).passed, "the first refresh"
    other = "SELECT count(*) AS n, max(id) AS last FROM orders"
    failed = found(other)
    assert (failed.passed, failed.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert failed.metadata["streamtables/full_reason"].value == "definition"
    idle = "SELECT count(*) AS n, max(id) AS last FROM orders WHERE id < 5"
    assert not found(idle).passed
    write("orders", id=[7])
    assert not found(idle).passed, "the frontier moved, and no row changed"
    write("orders", id=[2])
    assert found(idle).passed
