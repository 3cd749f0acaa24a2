"""Automation conditions say what the refresh sensor says, and then they alone start refreshes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dagster_streamtables import (
    Lake,
    SensorSettings,
    StreamTable,
    StreamTablesResource,
    build_definitions,
)
from dagster_streamtables.orchestration.automation.refresh_sensor import targets_of
from dagster_streamtables.orchestration.instance.dagster_runs import DEFINITIONS_TAG, SENSOR_TAG
from dagster_streamtables.runtime.observe.lease import Heartbeat, Heartbeats, WorkerLease
from orchestration.place import ticked
from orchestration.replicated import ORDERS, Origin

PAID, TOTALS, YEARLY = (dg.AssetKey(name) for name in ("paid", "totals", "yearly"))


@pytest.fixture
def defs(tmp_path: Path) -> dg.Definitions:
    root = tmp_path / "lake"
    write_deltalake(Lake(root).location("orders"), pa.table({"id": [1], "amount": [20]}))
    return build_definitions(
        resource=StreamTablesResource(root=str(root)),
        tables=[
            StreamTable("paid", "SELECT id, amount FROM orders WHERE amount > 10"),
            StreamTable("totals", "SELECT sum(amount) AS total FROM paid", schedule="1m"),
            StreamTable("yearly", "SELECT id FROM raw.orders", schedule="@yearly"),
        ],
        replications=[Origin(tmp_path / "origin").replication()],
        sensor=SensorSettings(conditions=True),
    )


def requested(defs: dg.Definitions, instance: dg.DagsterInstance, at: datetime) -> set[dg.AssetKey]:
    found = dg.evaluate_automation_conditions(defs, instance, evaluation_time=at)
    keys = defs.resolve_asset_graph().get_all_asset_keys()
    return {key for key in keys if found.get_num_requested(key)}


def test_what_the_sensor_would_refresh_the_conditions_request(
    defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    now = datetime.now(UTC)
    assert requested(defs, instance, now) == {PAID, TOTALS, YEARLY, ORDERS}
    # A run of them is not finished.
    job = defs.resolve_implicit_global_asset_job_def()
    instance.create_run_for_job(
        job, asset_selection=frozenset({PAID, TOTALS}), status=dg.DagsterRunStatus.STARTED
    )
    assert requested(defs, instance, now + timedelta(seconds=30)) == {YEARLY, ORDERS}


def test_nobody_else_starts_a_refresh(defs: dg.Definitions, instance: dg.DagsterInstance) -> None:
    sensors = {each.name: each for each in defs.sensors or ()}
    conditions = sensors["streamtables_refresh_conditions"]
    assert isinstance(conditions, dg.AutomationConditionSensorDefinition)
    tags = conditions.run_tags
    assert tags[SENSOR_TAG] == "streamtables_refresh"
    assert tags[DEFINITIONS_TAG]
    found = ticked(defs, instance)
    assert not found.run_requests
    assert "Automation conditions start the refreshes" in str(found.skip_message)
    [sensed] = targets_of(defs)
    root = (defs.resources or {})["streamtables"].root
    lease = WorkerLease(Heartbeats(root), Heartbeat.of_this_process(5))
    assert lease.renew(tables=("paid", "totals"))
    due = requested(defs, instance, datetime.now(UTC))
    assert due == {YEARLY, ORDERS}, "a worker is alive"
    assert sensed.settings.conditions


def test_without_the_setting_no_asset_has_a_condition(tmp_path: Path) -> None:
    resource = StreamTablesResource(root=str(tmp_path))
    plain = build_definitions(resource=resource, tables=[StreamTable("a", "SELECT id FROM b")])
    assert not any(spec.automation_condition for spec in plain.resolve_all_asset_specs())
    assert [each.name for each in plain.sensors or ()] == ["streamtables_refresh"]


def test_the_runs_of_the_conditions_count_as_those_of_the_sensor(
    defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    """What the daemon asks for at a tick; a failed run is not repeated before its time."""

    def asked() -> set[dg.AssetKey]:
        found = ticked(defs, instance, "streamtables_refresh_conditions").run_requests or []
        for each in found:
            assert each.tags[SENSOR_TAG] == "streamtables_refresh"
        tags.update(found[0].tags if found else {})
        return {key for each in found for key in each.asset_selection or ()}

    tags: dict[str, str] = {}
    assert asked() == {PAID, TOTALS, YEARLY, ORDERS}
    job = defs.resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(
        job,
        asset_selection=frozenset({PAID, TOTALS}),
        status=dg.DagsterRunStatus.STARTED,
        tags=tags,
    )
    assert asked() == {YEARLY, ORDERS}
    instance.report_run_failed(run)
    assert asked() == {YEARLY, ORDERS}
