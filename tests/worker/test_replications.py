"""Replicated tables: the worker refreshes them as the sensor would, and tells what a run would."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Replications, build_definitions
from dagster_streamtables.declarations import declare
from dagster_streamtables.orchestration.automation.refresh_sensor import targets_of
from dagster_streamtables.orchestration.automation.tick import evaluate
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.replication.lifecycle.replication_manager import Lag
from dagster_streamtables.worker.location import of_definitions
from dagster_streamtables.worker.loop import Worker
from orchestration.conftest import on_session
from orchestration.place import last_event
from orchestration.replicated import ORDERS, Origin, version
from worker.conftest import Write, rows, settle, turns

NODE = "replication shop"
TOTALS = declare("mart.totals", "SELECT count(*) AS n FROM raw.orders", schedule="on change")
NEWEST = declare("mart.newest", "SELECT max(id) AS id FROM raw.orders")
BOTH = declare(
    "mart.both",
    "SELECT t.n, m.id FROM mart.totals AS t CROSS JOIN mart.newest AS m",
    schedule="on change",
)
BESIDE = declare("beside", "SELECT id FROM orders", schedule="on change")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "origin")


@pytest.fixture
def defs(tmp_path: Path, origin: Origin, write: Write, spark: SparkSession) -> dg.Definitions:
    write("orders", id=[1])

    return build_definitions(
        resource=on_session(spark, tmp_path / "lake"),
        tables=[TOTALS, NEWEST, BOTH, BESIDE],
        replications=[origin.replication()],
        min_schedule_seconds=0,
    )


def test_a_commit_of_the_publisher_reaches_the_last_table(
    worker: Worker, instance: dg.DagsterInstance, origin: Origin
) -> None:
    logs = worker.driven.logs
    schedules = worker.driven.nodes.schedules
    assert str(schedules[NODE]) == str(schedules["mart.totals"])
    assert rows(logs, "mart.both") == [{"n": 2, "id": 2}]
    before = worker.lines.refreshes
    origin.add("sales.orders", id=[3], v=["c"])
    turns(worker, lambda: rows(logs, "mart.both") == [{"n": 3, "id": 3}])
    settle(worker)
    assert worker.lines.refreshes - before == 4, "each once: none read before the replica was there"
    worker.driven.reports.close(60)
    told, newest = last_event(instance, ORDERS), logs.version("raw.orders")
    assert version(told) == str(newest)
    assert told.metadata[metadata.VERSION].value == newest
    assert told.metadata[metadata.ROW_COUNT].value == 3
    reader = last_event(instance, dg.AssetKey(["mart", "totals"])).tags or {}
    assert reader["dagster/input_data_version/raw/orders"] == str(newest)


@pytest.mark.long
def test_the_sensor_leaves_replications_to_a_worker_and_takes_them_back(
    defs: dg.Definitions, instance: dg.DagsterInstance, origin: Origin
) -> None:
    worker = Worker(of_definitions(defs, "here", instance, report_every=0.1))
    settle(worker)
    [sensed], logs = targets_of(defs), worker.driven.logs
    origin.add("sales.orders", id=[3], v=["c"])

    def requested() -> set[dg.AssetKey]:
        tick = evaluate(sensed.assets, instance, logs, now=datetime.now(UTC))
        return {key for run in tick.run_requests or () for key in run.asset_selection or ()}

    assert not requested()
    assert worker.finish()
    assert ORDERS in requested()


@pytest.mark.long
def test_a_disabled_replication_and_a_publisher_that_hangs_hold_up_nobody(
    defs: dg.Definitions, origin: Origin, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(of_definitions(defs, "here", None))
    settle(worker)
    logs = worker.driven.logs
    replications = Replications(logs)
    replications.disable("shop")
    origin.add("sales.orders", id=[3], v=["c"])
    write("orders", id=[2])
    turns(worker, lambda: len(rows(logs, "beside")) == 2)
    assert len(rows(logs, "raw.orders")) == 2
    replications.enable("shop")
    turns(worker, lambda: rows(logs, "mart.both") == [{"n": 3, "id": 3}])
    settle(worker)

    asked, go = threading.Event(), threading.Event()
    whole = Replications.lag

    def slow(self: Replications, name: str, *, stopped: bool = True) -> Lag:
        asked.set()
        assert go.wait(300)
        return whole(self, name, stopped=stopped)

    monkeypatch.setattr(Replications, "lag", slow)
    turns(worker, asked.is_set)
    write("orders", id=[3])
    turns(worker, lambda: len(rows(logs, "beside")) == 3)
    origin.add("sales.orders", id=[4], v=["d"])
    go.set()
    turns(worker, lambda: rows(logs, "mart.both") == [{"n": 4, "id": 4}])
    assert worker.finish()


@pytest.mark.long
def test_a_replication_that_fails_is_told_of_and_holds_up_nobody(
    worker: Worker, instance: dg.DagsterInstance, origin: Origin, write: Write
) -> None:
    logs = worker.driven.logs
    origin.lake.slots.drop("shop", even_if_read=True)
    turns(worker, lambda: worker.memory[NODE].failures == 1)
    write("orders", id=[2])
    turns(worker, lambda: len(rows(logs, "beside")) == 2)
    assert worker.memory[NODE].failures == 1, "it is not tried again before its time"
    worker.driven.reports.close(60)
    [seen, *_] = instance.fetch_observations(ORDERS, limit=5).records
    observed = seen.asset_observation
    assert observed is not None
    assert "failed" in (observed.description or "")
