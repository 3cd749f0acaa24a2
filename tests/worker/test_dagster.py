"""What Dagster is told without a run is what a run would tell it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

# What the UI calls "unsynced" is computed here; nothing public tells it.
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import StreamTablesResource, build_definitions
from dagster_streamtables.catalog import build_catalog
from dagster_streamtables.errors import FailedQuery, InvalidDefinition
from dagster_streamtables.orchestration.alerts.alert_events import beginning, look
from dagster_streamtables.orchestration.alerts.alerts import AlertState
from dagster_streamtables.orchestration.automation.refresh_sensor import targets_of
from dagster_streamtables.orchestration.automation.tick import evaluate
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.worker.dagster_reports import DagsterEvents
from dagster_streamtables.worker.location import of_definitions
from dagster_streamtables.worker.loop import Worker
from orchestration.conftest import on_session
from orchestration.place import last_event
from worker.conftest import Write, rows, settle, turns

PAID = StreamTable("paid", "SELECT id, customer, amount FROM orders WHERE amount > 10")
TOTALS = StreamTable(
    "totals",
    "SELECT customer, sum(amount) AS total FROM paid GROUP BY customer",
    schedule="on change",
)
KEYS = [dg.AssetKey("paid"), dg.AssetKey("totals")]
# Metadata that tells when and how fast something was done, not what.
PASSING = (metadata.SECONDS, metadata.PHASES, metadata.STALENESS, metadata.AS_OF, metadata.CHANGED)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    home = tmp_path / "dagster"
    home.mkdir()
    with dg.DagsterInstance.local_temp(str(home)) as found:
        yield found


@pytest.fixture
def defs(tmp_path: Path, spark: SparkSession, write: Write) -> dg.Definitions:
    write("orders", id=[1, 2], customer=[7, 7], amount=[5, 20])

    resource = on_session(spark, tmp_path / "lake")
    return build_definitions(resource=resource, tables=[PAID, TOTALS], min_schedule_seconds=0)


def told(instance: dg.DagsterInstance, key: dg.AssetKey) -> tuple[dict[str, str], set[str]]:
    """The tags and the lasting metadata of the last materialization."""
    made = last_event(instance, key)
    tags = {name: value for name, value in (made.tags or {}).items() if "pointer" not in name}
    lasting = {
        f"{name}={value.value}"
        for name, value in made.metadata.items()
        if not name.startswith(PASSING) and name != metadata.REFRESHES
    }
    return tags, lasting


def stale(defs: dg.Definitions, instance: dg.DagsterInstance) -> list[str]:
    context = LoadingContextForTest(instance)
    resolver = CachingStaleStatusResolver(instance, defs.resolve_asset_graph(), context)
    found = {key: resolver.get_status(key) for key in KEYS}
    return [key.to_user_string() for key, status in found.items() if status != StaleStatus.FRESH]


@pytest.mark.long
def test_a_report_says_what_a_run_would_say(
    worker: Worker, defs: dg.Definitions, instance: dg.DagsterInstance, write: Write
) -> None:
    write("orders", id=[3], customer=[8], amount=[30])
    settle(worker)
    worker.driven.reports.close(60)
    by_worker = [told(instance, key) for key in KEYS]
    assert stale(defs, instance) == []
    assert instance.fetch_observations(dg.AssetKey("orders"), limit=1).records
    # A run that finds the same versions, and so reports of the same tables.
    job = defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=instance, asset_selection=KEYS).success
    for (tags, lasting), key in zip(by_worker, KEYS, strict=True):
        run_tags, run_lasting = told(instance, key)
        assert tags == run_tags, key
        same = {each.split("=")[0] for each in run_lasting}
        assert {each.split("=")[0] for each in lasting} >= same - {"streamtables/writer"}, key
    assert stale(defs, instance) == []


@pytest.mark.long
def test_refreshes_between_two_reports_are_told_as_one(
    defs: dg.Definitions, instance: dg.DagsterInstance, write: Write, tmp_path: Path
) -> None:
    worker = Worker(of_definitions(defs, "here", instance, report_every=3600))
    settle(worker)
    for n in range(3):
        write("orders", id=[10 + n], customer=[8], amount=[30])
        settle(worker)
    worker.driven.reports.close(60)
    lake = worker.driven.logs
    found = instance.fetch_materializations(KEYS[0], limit=10).records
    assert len(found) <= 2
    last = found[0].asset_materialization
    assert last is not None
    done = sum(
        int(str(each.asset_materialization.metadata[metadata.REFRESHES].value))
        for each in found
        if each.asset_materialization is not None
    )
    assert done == 4
    assert last.metadata[metadata.VERSION].value == lake.version("paid")
    assert stale(defs, instance) == []
    assert rows(lake, "totals") == [{"customer": 7, "total": 20}, {"customer": 8, "total": 90}]
    worker.finish()


def test_a_failure_of_a_worker_is_an_alert_and_so_is_its_end(
    worker: Worker, defs: dg.Definitions, instance: dg.DagsterInstance, write: Write
) -> None:
    turns(worker, lambda: instance.get_latest_materialization_event(KEYS[1]) is not None)
    names, desk = {key: key.to_user_string() for key in KEYS}, AlertState(beginning(instance))

    def told() -> list[tuple[str, str]]:
        nonlocal desk
        found = look(instance, names, worker.driven.logs, desk)
        desk = replace(desk, waiting=()).enqueue(found.alerts, 1)
        desk = replace(desk, positions=found.positions)
        return [(alert.table, str(alert.kind)) for _, alert in desk.waiting]

    assert told() == []
    events = DagsterEvents(instance, targets_of(defs)[0].assets, worker.driven.logs, None)
    error = FailedQuery("the query fails", why="a division by zero")
    events.record_failure("totals", error)
    events.record_failure("totals", error)
    assert told() == [("totals", "refresh_failed")]
    write("orders", id=[3], customer=[8], amount=[30])
    settle(worker)
    worker.driven.reports.close(60)
    assert told() == [("totals", "recovered")]
    said = {"check_failed": False, "": False, "recovered": True}
    for kind, passed in said.items():
        found = dg.AssetCheckEvaluation(
            asset_key=KEYS[1], check_name="state_is_whole", passed=passed, metadata={}
        )
        instance.report_runless_asset_event(found)
        assert told() == ([("totals", kind)] if kind else [])
    old = AlertState({kind: at for kind, at in desk.positions.items() if "OBSERVATION" not in kind})
    found = look(instance, names, worker.driven.logs, old)
    assert "refresh" not in {each.about for each in found.alerts}, "of before they were read"


def test_the_page_of_a_table_shows_a_failure_of_a_worker_at_once_and_its_end(
    defs: dg.Definitions, instance: dg.DagsterInstance, write: Write
) -> None:
    ratio = StreamTable("ratio", "SELECT id, 100 / amount AS ratio FROM orders", schedule="1d")
    assert defs.resources is not None
    defs = build_definitions(resource=defs.resources["streamtables"], tables=[ratio])
    key = dg.AssetKey("ratio")
    check = dg.AssetCheckKey(key, "reflects_its_sources")
    worker = Worker(of_definitions(defs, "here", instance, report_every=0.1))

    def shown() -> list[tuple[bool, str]]:
        found = instance.event_log_storage.get_asset_check_execution_history(check, limit=9)
        told = [each.evaluation for each in found if each.evaluation is not None]
        return [(each.passed, each.description or "") for each in told]

    turns(worker, lambda: bool(shown()))
    assert [passed for passed, _ in shown()] == [True]
    names, desk = {key: "ratio"}, AlertState(beginning(instance))
    write("orders", id=[3], customer=[8], amount=[0])
    worker.memory["ratio"].as_of = datetime.now(UTC) - timedelta(days=2)
    turns(worker, lambda: len(shown()) > 1)
    assert [passed for passed, _ in shown()] == [False, True]
    said = shown()[0][1]
    assert said.startswith("The last refresh failed at 20") and "DIVIDE_BY_ZERO" in said
    alerts = look(instance, names, worker.driven.logs, desk).alerts
    problems = [str(alert.kind) for alert in alerts if alert.is_problem]
    assert problems == ["refresh_failed"], "one problem, one alert"
    DeltaTable(worker.driven.logs.location("orders")).delete("amount = 0")
    worker.memory["ratio"].again_at = None
    turns(worker, lambda: shown()[0][0])
    assert shown()[0][1] == "The table reflects all changes of its sources."
    worker.finish()


@pytest.mark.long
def test_a_table_that_a_worker_makes_anew_is_an_alert(
    defs: dg.Definitions, instance: dg.DagsterInstance, write: Write
) -> None:
    worker = Worker(of_definitions(defs, "here", instance, report_every=3600))
    settle(worker)
    names, desk = {key: key.to_user_string() for key in KEYS}, AlertState(beginning(instance))
    shutil.rmtree(worker.driven.logs.location("orders"))
    write("orders", id=[5], customer=[9], amount=[50])
    settle(worker)
    write("orders", id=[6], customer=[9], amount=[60])  # one report sums up both refreshes
    settle(worker)
    worker.driven.reports.close(60)
    found = look(instance, names, worker.driven.logs, desk)
    told = {(alert.table, str(alert.kind)) for alert in found.alerts}
    assert ("paid", "reinitialized") in told
    worker.finish()


def test_a_sensor_and_a_worker_do_not_both_refresh(
    worker: Worker, instance: dg.DagsterInstance
) -> None:
    assets = NodeAssets(build_catalog([PAID, TOTALS], min_schedule_seconds=0))
    logs, now = worker.driven.logs, datetime.now(UTC)
    assert not evaluate(assets, instance, logs, now=now).run_requests


def test_definitions_that_no_worker_can_drive(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="have no refresh sensor"):
        of_definitions(dg.Definitions(), "here", instance)
    resource = StreamTablesResource(root=str(tmp_path))
    one = build_definitions(resource=resource, tables=[PAID])
    two = build_definitions(
        resource=resource, tables=[StreamTable("other", "SELECT id FROM refunds")], name="two"
    )
    both = dg.Definitions.merge(one, two)
    with pytest.raises(InvalidDefinition, match="have 2 refresh sensors"):
        of_definitions(both, "here", None)
    assert list(of_definitions(both, "here", None, name="two").nodes.tables) == ["other"]
    with pytest.raises(InvalidDefinition, match='is that of the resource "three"'):
        of_definitions(both, "here", None, name="three")
    with pytest.raises(InvalidDefinition, match="have another root than the one given"):
        of_definitions(one, "here", None, root=str(tmp_path / "elsewhere"))
    assert of_definitions(one, "here", None, root=str(tmp_path)).logs.root == str(tmp_path)
