"""Ticks of the refresh sensor on a real instance and real Delta tables, at times that are given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster import DagsterRunStatus
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.test_utils import create_run_for_test, freeze_time
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from dagster_streamtables import (
    SensorSettings,
    StreamTablesResource,
    build_definitions,
    build_refresh_sensor,
    build_stream_table_assets,
)
from dagster_streamtables.catalog import Catalog, build_catalog
from dagster_streamtables.orchestration.automation.tick import evaluate
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.catalog.freshness import passes
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.orchestration.instance.dagster_runs import (
    AFTER_TAG,
    DEFINITIONS_TAG,
    PROCESS_TAG,
    SENSOR_TAG,
)
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.model.table_state import (
    SourceState,
    StreamTableState,
    application,
)
from dagster_streamtables.runtime.observe import lease
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions
from dagster_streamtables.runtime.observe.lease import Heartbeat, Heartbeats, WorkerLease
from dagster_streamtables.runtime.spark.supervisor import birth
from dagster_streamtables.runtime.storage.documents import Ledger
from orchestration.conftest import Write
from orchestration.place import reasons, selections, ticked
from runtime.orders import ACCOUNT

# Schedules of years, so that no test can run across an instant at which a table comes due.
PAID = StreamTable("paid", "SELECT id, amount FROM orders WHERE amount > 10")
TOTALS = StreamTable("totals", "SELECT count(*) AS n FROM paid", schedule="52w")
OTHER = StreamTable("other", "SELECT id FROM refunds", schedule="2000w")
LATER = timedelta(days=400)
PAUSE = timedelta(minutes=10)


class Location:
    """A code location whose sensor is asked at any time, and whose runs are executed at once."""

    def __init__(self, resource: StreamTablesResource, *tables: StreamTable) -> None:
        self.resource = resource
        self.instance = dg.DagsterInstance.ephemeral()
        self.settings = SensorSettings(retry_first=PAUSE)
        self.cursor: str | None = None
        self.beats = Heartbeats(resource.root)
        self.declare(*tables)

    def declare(self, *tables: StreamTable) -> None:
        self.catalog: Catalog = build_catalog(tables)
        self.job = dg.Definitions(
            build_stream_table_assets(tables=self.catalog, retry_policy=None),
            sensors=[build_refresh_sensor(tables=self.catalog)],
            resources={"streamtables": self.resource},
        ).resolve_job_def("streamtables_refresh_run")

    def tick(self, after: timedelta = timedelta()) -> dg.SensorResult:
        """What the sensor asks for; what it reports is reported, as the daemon would."""
        now = datetime.now(UTC) + after
        result = evaluate(
            NodeAssets(self.catalog),
            self.instance,
            self.resource.logs(),
            now=now,
            settings=self.settings,
            cursor=self.cursor,
        )
        self.cursor = result.cursor
        with freeze_time(now):
            for event in result.asset_events:
                self.instance.report_runless_asset_event(event)
        return result

    def execute(self, request: dg.RunRequest) -> bool:
        selected = frozenset(request.asset_selection or [])
        run = self.instance.create_run_for_job(
            self.job.get_subset(asset_selection=selected),
            tags=request.tags,
            asset_selection=selected,
        )
        job = InMemoryJob(self.job).get_subset(asset_selection=selected)
        return execute_run(job, run, self.instance).success

    def run(self, after: timedelta = timedelta()) -> list[bool]:
        """Which of the runs that the sensor asks for succeed."""
        return [self.execute(each) for each in self.tick(after).run_requests or []]

    def totals(self) -> list[int]:
        return [row.n for row in self.resource.lake().read("totals").collect()]


def leave(root: Path, table: StreamTable) -> None:
    """A table over `refunds` as a refresh leaves it of which Dagster was not told."""
    source = LatestVersions(Lake(root).location).head("refunds")
    assert source is not None
    seen = SourceState("", source.version, {}, source.commit)
    state = StreamTableState(
        table.name, 1, f"{table.meaning}.full", {"refunds": seen}, "v1", None, "r1", ACCOUNT,
        compared=True,
    )  # fmt: skip
    write_deltalake(
        root / "public" / table.name,
        pa.table({"id": [7]}),
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": state.to_json()},
            app_transactions=[Transaction(application(table.name), 1)],
        ),
    )


def reported(result: dg.SensorResult) -> list[tuple[str, str]]:
    return [(type(e).__name__, e.asset_key.to_user_string()) for e in result.asset_events]


@pytest.fixture(autouse=True)
def sources(write: Write) -> None:
    write("orders", id=[1, 2, 3], amount=[10, 20, 30])
    write("refunds", id=[7])


@pytest.fixture
def location(logs: StreamTablesResource) -> Location:
    """For decisions, which need no Spark."""
    return Location(logs, PAID, TOTALS, OTHER)


@pytest.fixture
def chain(resource: StreamTablesResource) -> Location:
    """A table over another one, refreshed once."""
    made = Location(resource, PAID, TOTALS)
    assert made.run() == [True]
    return made


def test_new_tables_are_requested_in_one_run_for_each_connected_part(location: Location) -> None:
    result = location.tick()
    assert selections(result) == [{"paid", "totals"}, {"other"}]
    for request in result.run_requests or []:
        assert request.run_key is None
        assert request.asset_check_keys == []
    assert sorted(reported(result)) == [
        ("AssetObservation", "orders"),
        ("AssetObservation", "refunds"),
    ]


def test_a_table_without_a_scheduled_reader_is_left_to_people(logs: StreamTablesResource) -> None:
    result = Location(logs, PAID).tick()
    assert selections(result) == []
    assert "Refreshed on demand only: paid" in reasons(result)


def test_a_new_table_waits_for_its_source(logs: StreamTablesResource, write: Write) -> None:
    location = Location(logs, StreamTable("early", "SELECT id FROM soon", schedule="5m"))
    result = location.tick()
    assert selections(result) == []
    assert "early is due, but not refreshed: waits for soon, which does not exist" in reasons(
        result
    )
    write("soon", id=[1])
    assert selections(location.tick()) == [{"early"}]


def test_a_broken_definition_is_not_requested_and_is_said(logs: StreamTablesResource) -> None:
    result = Location(logs, StreamTable("bad", "SELEC 1", schedule="5m")).tick()
    assert selections(result) == []
    assert 'Broken: stream table "bad": SELEC does not begin a query' in reasons(result)


def test_a_table_that_is_not_to_be_initialized_waits_for_a_person(
    logs: StreamTablesResource, tmp_path: Path
) -> None:
    """Whoever refreshes it, Dagster need not have seen it."""
    table = StreamTable("early", "SELECT id FROM refunds", schedule="2000w", initialize=False)
    location = Location(logs, table)
    result = location.tick()
    assert selections(result) == []
    assert "its first refresh must be started by hand" in reasons(result)
    leave(tmp_path, table)
    result = location.tick()
    assert (selections(result), reported(result)[0]) == ([], ("AssetMaterialization", "early"))


def test_a_log_that_cannot_be_read_stops_one_table_only(location: Location, tmp_path: Path) -> None:
    for commit in (tmp_path / "public" / "refunds" / "_delta_log").glob("*.json"):
        commit.write_text("{ this is no commit")
    assert {"paid", "totals"} in selections(location.tick())


def test_the_tables_of_a_living_worker_are_left_to_it(location: Location) -> None:
    worker = WorkerLease(location.beats, Heartbeat.of_this_process(60))
    worker.renew(tables=("paid", "totals"))
    assert selections(location.tick()) == [{"other"}]
    assert selections(location.tick(timedelta(seconds=150))) == [{"other"}]
    late = location.tick(timedelta(seconds=181))
    assert selections(late) == [{"paid", "totals"}, {"other"}]
    worker.end(tables=("paid", "totals"))
    assert selections(location.tick()) == [{"paid", "totals"}, {"other"}]


def test_the_sensor_says_that_a_worker_refreshes(logs: StreamTablesResource) -> None:
    location = Location(logs, PAID, TOTALS)
    worker = WorkerLease(location.beats, Heartbeat.of_this_process(5))
    worker.renew(tables=("paid", "totals"))
    assert f"The worker {worker.me.place} refreshes 2 tables." in reasons(location.tick())


def test_a_heartbeat_that_cannot_be_read_does_not_stop_the_sensor(location: Location) -> None:
    Ledger(location.beats.document.location).append({"foreign": 1}, None)
    assert selections(location.tick()) == [{"paid", "totals"}, {"other"}]


def test_the_sensor_of_a_code_location_runs_its_tick(
    logs: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    defs = build_definitions(resource=logs, tables=[PAID, TOTALS])
    sensor = defs.get_repository_def().get_sensor_def("streamtables_refresh")
    [request] = ticked(defs, instance).run_requests or []
    assert set(request.asset_selection or []) == {dg.AssetKey("paid"), dg.AssetKey("totals")}
    assert [target.job_name for target in sensor.targets] == ["streamtables_refresh_run"]
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    stopped = build_refresh_sensor(
        tables=[PAID], settings=SensorSettings(enabled=False, interval_seconds=30)
    )
    assert stopped.default_status is dg.DefaultSensorStatus.STOPPED
    assert stopped.minimum_interval_seconds == 30


def test_a_tick_names_stored_tables_that_the_code_location_does_not_declare(
    logs: StreamTablesResource, tmp_path: Path
) -> None:
    def told(defs: dg.Definitions) -> str:
        return str(ticked(defs, dg.DagsterInstance.ephemeral()).skip_message)

    on_demand = replace(OTHER, schedule=None)
    leave(tmp_path, OTHER)
    leave(tmp_path, replace(OTHER, name="former"))
    defs = build_definitions(resource=logs, tables=[on_demand])
    assert "Stored, but not declared here: former." in told(defs)
    assert "Stored, but not declared here: former." in told(defs), "as long as it is stored"
    shutil.rmtree(tmp_path / "public/former")
    assert "Stored, but not declared here" not in told(defs)

    others = build_definitions(
        resource=logs, name="others", tables=[StreamTable("former", "SELECT id FROM orders")]
    )
    leave(tmp_path, replace(OTHER, name="former"))
    mine = build_definitions(resource=logs, tables=[on_demand])
    assert "Stored, but not declared here" not in told(dg.Definitions.merge(mine, others))


def test_tables_in_unfinished_runs_are_left_out_until_the_run_is_taken_for_dead(
    location: Location,
) -> None:
    create_run_for_test(
        location.instance,
        status=DagsterRunStatus.STARTED,
        asset_selection=frozenset({dg.AssetKey("paid")}),
    )
    assert selections(location.tick()) == [{"other"}]
    assert selections(location.tick(timedelta(minutes=59))) == [{"other"}]
    assert selections(location.tick(timedelta(minutes=61))) == [{"paid", "totals"}, {"other"}]


def test_a_run_whose_process_is_gone_is_ended(location: Location) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        mark = f"{process.pid}@{birth(process.pid)}"
        run = _started(location, "paid", f"{lease.machine()} {mark}")
        elsewhere = _started(location, "other", f"another.machine {mark}")
        assert selections(location.tick()) == []
        assert not location.instance.get_run_by_id(run.run_id).is_finished
    result = location.tick()
    assert selections(result) == []
    assert "paid is due, but not refreshed: failed once" in reasons(result)
    ended = location.instance.get_run_by_id(run.run_id)
    assert ended.status is DagsterRunStatus.FAILURE
    assert not location.instance.get_run_by_id(elsewhere.run_id).is_finished
    assert selections(location.tick(PAUSE * 1.5)) == [{"paid", "totals"}]


def test_a_process_that_has_the_number_of_one_that_is_gone(location: Location) -> None:
    begun = float(birth(os.getpid()).partition(".")[2])
    run = _started(location, "paid", f"{lease.machine()} {os.getpid()}@{begun - 60}")
    location.tick()
    assert location.instance.get_run_by_id(run.run_id).status is DagsterRunStatus.FAILURE


def _started(location: Location, name: str, process: str) -> dg.DagsterRun:
    settings = location.settings.with_default_name("streamtables")
    tags = {
        SENSOR_TAG: settings.name,
        DEFINITIONS_TAG: NodeAssets(location.catalog).nodes.fingerprint,
    }
    run = create_run_for_test(
        location.instance,
        status=DagsterRunStatus.STARTED,
        asset_selection=frozenset({dg.AssetKey(name)}),
        tags=tags,
    )
    tag = {PROCESS_TAG: f"{process} executes {run.run_id}"}
    location.instance.add_run_tags(run.run_id, tag)
    return run


def test_a_run_names_its_process(resource: StreamTablesResource, write: Write) -> None:
    location = Location(resource, PAID)
    assert location.execute(dg.RunRequest(asset_selection=[dg.AssetKey("paid")]))
    [run] = location.instance.get_runs()
    host, mark, parent, _, executed = run.tags[PROCESS_TAG].split()
    assert (host, mark.split("@")[0]) == (lease.machine(), str(os.getpid()))
    assert parent.split("@")[0] == str(os.getppid())
    assert executed == run.run_id


def test_time_is_work_where_no_source_moved(resource: StreamTablesResource, write: Write) -> None:
    """Rows leave such a table without any commit, and those that read it lose them, too."""
    write("visits", at=[datetime.now(UTC)])
    day = "SELECT at FROM visits WHERE at > now() - INTERVAL 1 DAY"
    timed = StreamTable("today", day)
    count = StreamTable("visitors", "SELECT COUNT(*) AS n FROM today", schedule="52w")
    whole = StreamTable("whole", day, schedule="52w", mode="FULL")
    location = Location(resource, timed, count, whole)
    assert all(location.run())
    assert selections(location.tick()) == []
    assert selections(location.tick(LATER)) == [{"today", "visitors"}, {"whole"}]


@pytest.mark.smoke("the sensor")
def test_what_is_due_is_refreshed_if_its_sources_moved_and_else_marked_fresh(
    resource: StreamTablesResource, write: Write
) -> None:
    location = Location(resource, PAID, TOTALS, OTHER)
    assert location.run() == [True, True]

    result = location.tick()
    assert (selections(result), reported(result)) == ([], [])
    assert "Due next: " in reasons(result)

    before = location.instance.get_latest_materialization_event(dg.AssetKey("totals"))
    result = location.tick(LATER)
    assert selections(result) == []
    assert reported(result) == [
        ("AssetMaterialization", "paid"),
        ("AssetMaterialization", "totals"),
    ]
    event = result.asset_events[1]
    assert isinstance(event, dg.AssetMaterialization)
    assert event.metadata[metadata.ACTION].value == "NO_DATA"
    assert event.metadata[metadata.ROW_COUNT].value == 1
    assert before is not None and before.asset_materialization is not None
    after = {AFTER_TAG: before.run_id}
    assert event.tags == {**(before.asset_materialization.tags or {}), **after}
    assert (selections(location.tick(LATER)), reported(location.tick(LATER))) == ([], [])

    write("orders", id=[4], amount=[40])
    result = location.tick(2 * LATER)
    assert selections(result) == [{"paid", "totals"}]
    assert reported(result) == [("AssetObservation", "orders")]
    assert location.execute((result.run_requests or [])[0])
    assert location.totals() == [3]


def test_a_version_that_brings_nothing_visible_is_looked_at_once(chain: Location) -> None:
    """A refresh need not write down that it saw a commit that only rearranged files."""
    DeltaTable(chain.resource.lake().location("orders")).alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 60 days"}
    )
    assert chain.run(LATER) == [True]
    result = chain.tick(LATER)
    assert selections(result) == []
    assert ("AssetMaterialization", "paid") in reported(result)


def test_a_failed_table_is_tried_again_later_each_time_and_at_once_if_it_is_changed(
    resource: StreamTablesResource, tmp_path: Path
) -> None:
    for file in (tmp_path / "public" / "orders").glob("*.parquet"):
        file.unlink()
    location = Location(resource, PAID, TOTALS)
    assert location.run() == [False]

    result = location.tick()
    assert selections(result) == []
    assert "paid is due, but not refreshed: failed once, next retry at" in reasons(result)
    assert location.run(1.25 * PAUSE) == [False]
    assert "failed 2 times in a row" in reasons(location.tick(1.25 * PAUSE))

    location.declare(StreamTable("paid", "SELECT id FROM refunds"), TOTALS)
    assert location.run() == [True]


def test_a_source_that_was_dropped_fails_the_refresh(
    resource: StreamTablesResource, tmp_path: Path
) -> None:
    location = Location(resource, OTHER)
    assert location.run() == [True]
    shutil.rmtree(tmp_path / "public" / "refunds")
    assert location.run(100 * LATER) == [False]


@pytest.mark.long
def test_a_stream_table_that_was_dropped_by_hand_is_made_again(
    chain: Location, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "public" / "paid")

    result = chain.tick(LATER)
    assert selections(result) == [{"paid", "totals"}]
    assert chain.execute((result.run_requests or [])[0])
    assert chain.totals() == [2]


def test_another_query_is_work(chain: Location) -> None:
    chain.declare(StreamTable("paid", PAID.query.replace("10", "20")), TOTALS)
    result = chain.tick(LATER)
    assert selections(result) == [{"paid", "totals"}]
    assert chain.execute((result.run_requests or [])[0])
    assert chain.totals() == [1]


def test_a_refresh_that_was_under_way_when_the_next_came_due_does_not_stand_for_it(
    logs: StreamTablesResource, tmp_path: Path
) -> None:
    """A table is as old as what it reads was, however long that took."""
    now = datetime.now(UTC)
    table = StreamTable("late", "SELECT id FROM refunds", schedule="0 0 1 1 *")
    leave(tmp_path, table)
    location = Location(logs, table)
    tags = {"dagster/data_version": "v1"}

    def is_due(as_of: datetime | None) -> bool:
        found = {metadata.AS_OF: dg.MetadataValue.timestamp(as_of.timestamp())} if as_of else {}
        known = {metadata.VERSION: 0, **found}
        event = dg.AssetMaterialization("late", tags=tags, metadata=known)
        location.instance.report_runless_asset_event(event)
        return "Due, but without changes: late" in reasons(location.tick())

    assert not is_due(None)
    assert is_due(now - timedelta(days=366))
    # A clock ahead of Dagster's does not make it younger than it is.
    assert not is_due(now + timedelta(days=800))
    assert "Due, but without changes: late" in reasons(location.tick(timedelta(days=367)))


@pytest.fixture
def still(logs: StreamTablesResource, tmp_path: Path) -> Location:
    """A table that reflects its source, as a refresh leaves it and Dagster was told."""
    table = StreamTable("still", "SELECT id FROM refunds", schedule="1m")
    leave(tmp_path, table)
    location = Location(logs, table)
    tell(location, datetime.now(UTC))
    return location


def tell(location: Location, at: datetime) -> None:
    [entry] = location.catalog.entries
    tags = {"dagster/code_version": entry.spec.code_version or "", "dagster/data_version": "v1"}
    with freeze_time(at):
        event = dg.AssetMaterialization(entry.key, tags=tags, metadata={metadata.VERSION: 0})
        location.instance.report_runless_asset_event(event)


@pytest.mark.process
def test_the_last_change_is_not_buried_and_the_table_is_fresh_all_the_same(still: Location) -> None:
    """Its schedule would refresh a busy table 150 times in two hours."""
    [entry] = still.catalog.entries
    assert entry.spec.freshness_policy is not None
    told: list[dg.AssetMaterialization] = []
    for tick in range(1, 241):
        after = timedelta(seconds=30 * tick)
        result = still.tick(after)
        told += [e for e in result.asset_events if isinstance(e, dg.AssetMaterialization)]
        assert not result.run_requests
        last = still.instance.get_latest_materialization_event(entry.key)
        assert last is not None
        at = datetime.fromtimestamp(last.timestamp, UTC)
        assert passes(entry.spec.freshness_policy, at, datetime.now(UTC) + after)
    assert 30 <= len(told) <= 45
    assert {(event.tags or {})["dagster/data_version"] for event in told} == {"v1"}


def test_a_sensor_that_forgot_everything_refreshes_nothing_that_is_fresh(still: Location) -> None:
    assert still.tick(timedelta(minutes=2)).run_requests == []
    still.cursor = None
    assert still.tick(timedelta(minutes=2)).run_requests == []


def test_a_clock_that_was_ahead_keeps_no_table_waiting(still: Location, write: Write) -> None:
    tell(still, datetime.now(UTC) + timedelta(days=2))
    still.tick(timedelta(days=3))
    write("refunds", id=[8])
    assert selections(still.tick()) == [{"still"}]
