"""Replications in automation: what the sensor asks for, what checks find, who is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
from deltalake import DeltaTable

from dagster_streamtables import (
    FromLake,
    FromPostgres,
    Replication,
    Replications,
    StreamTablesResource,
    build_replication_assets,
)
from dagster_streamtables.catalog import build_catalog, build_replication_catalog
from dagster_streamtables.checks import build_replica_checks, build_replication_lag_checks
from dagster_streamtables.orchestration.alerts.alert_events import beginning, look
from dagster_streamtables.orchestration.alerts.alerts import AlertState
from dagster_streamtables.orchestration.automation.tick import evaluate
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from orchestration.place import reasons, selections
from orchestration.replicated import ORDERS, TOTALS, Origin, materialized, version

NOW, LATER = timedelta(), timedelta(minutes=5)


class Location:
    """A stream table over a replicated one, and what their sensor asks for."""

    def __init__(
        self, replication: Replication, lake: StreamTablesResource, instance: dg.DagsterInstance
    ) -> None:
        self.instance, self.lake = instance, lake
        made = build_replication_catalog([replication])
        self.tables = build_catalog(
            [TOTALS], source_keys=made.keys, written_by_dagster={*made.nodes}
        )
        self.replicated = made.read_by([self.tables])
        self.assets = build_replication_assets(replications=self.replicated, retry_policy=None)

    def tick(self, after: timedelta = NOW) -> dg.SensorResult:
        return evaluate(
            NodeAssets(self.tables, self.replicated),
            self.instance,
            self.lake.logs(),
            now=datetime.now(UTC) + after,
        )

    def until_due(self) -> timedelta:
        now = datetime.now(UTC)
        schedule = NodeAssets(self.tables, self.replicated).nodes.schedules["replication shop"]
        assert schedule is not None
        return schedule.due_at(now) - now

    def run(self, *more: Any, **settings: Any) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [*self.assets, *more],
            instance=self.instance,
            resources={"streamtables": self.lake},
            raise_on_error=False,
            **settings,
        )

    def replicate(self) -> dg.ExecuteInProcessResult:
        """As a run that the sensor asked for."""
        [request] = self.tick().run_requests or ()
        defs = dg.Definitions(self.assets, resources={"streamtables": self.lake})
        job = defs.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance, asset_selection=[ORDERS], tags=request.tags,
            raise_on_error=False,
        )  # fmt: skip


@pytest.fixture
def location(origin: Origin, lake: StreamTablesResource, instance: dg.DagsterInstance) -> Location:
    return Location(origin.replication(), lake, instance)


def test_the_sensor_refreshes_a_replication_and_what_reads_it_in_one_run(
    origin: Origin, location: Location
) -> None:
    assert selections(location.tick()) == [{"raw/orders", "mart/totals"}]
    assert location.run().success
    # The publisher has nothing new; the stream table was never refreshed.
    assert selections(location.tick(LATER)) == [{"mart/totals"}]
    origin.add("sales.orders", id=[3], v=["c"])
    assert selections(location.tick(LATER)) == [{"raw/orders", "mart/totals"}]
    assert location.run().success
    Replications(location.lake.logs()).disable("shop")
    origin.add("sales.orders", id=[4], v=["d"])
    assert selections(location.tick(LATER)) == [{"mart/totals"}]


def test_a_replication_that_fails_or_is_disabled_holds_what_reads_it(
    origin: Origin, lake: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    gone = Replication(
        "shop", FromPostgres("host=/nowhere", tables=["public.orders"]), schema="raw"
    )
    location = Location(gone, lake, instance)
    assert selections(location.tick()) == [{"raw/orders", "mart/totals"}]
    assert not location.replicate().success
    said = reasons(location.tick())
    assert "replication shop is due, but not refreshed: failed once" in said
    assert "mart.totals is due, but not refreshed: waits for raw.orders" in said

    other = Location(origin.replication(enabled=False), lake, instance)
    Replications(lake.logs()).create(origin.replication(enabled=False))
    said = reasons(other.tick(timedelta(hours=2)))
    assert "replication shop is due, but not refreshed: suspended, the replication is di" in said


def test_an_unchanged_table_is_marked_fresh_before_its_policy_warns(location: Location) -> None:
    first = materialized(location.run())["raw/orders"]
    # Halfway to the next due time: just after one, the second next may be too late.
    assert not location.tick(location.until_due() / 2).asset_events
    [event] = location.tick(timedelta(minutes=40)).asset_events
    assert isinstance(event, dg.AssetMaterialization)
    assert (event.asset_key, version(event)) == (ORDERS, version(first))
    assert event.metadata["dagster/row_count"].value == 2


def checked(
    location: Location, *names: str, **lag: Any
) -> dict[str, tuple[bool, str, dict[str, Any]]]:
    """Of all checks, or of those that are named: whether it passes, and what it says."""
    every = {
        "replica_equals_origin": build_replica_checks(replications=location.replicated),
        "replication_lag": build_replication_lag_checks(replications=location.replicated, **lag),
    }
    selected = [every[name] for name in names or every]
    result = location.run(*selected, selection=dg.AssetSelection.all_asset_checks())
    return {
        e.check_name: (e.passed, e.description or "", {k: v.value for k, v in e.metadata.items()})
        for e in result.get_asset_check_evaluations()
    }


def test_checks_compare_with_the_origin_and_say_how_far_behind(
    origin: Origin, location: Location
) -> None:
    assert [passed for passed, *_ in checked(location).values()] == [False, False]
    location.run()
    origin.add("sales.orders", id=[3], v=["c"])
    told = checked(location, max_lag=timedelta(0))
    assert told["replica_equals_origin"][:2] == (True, "The table equals its origin: 3 rows.")

    DeltaTable(location.lake.logs().location("raw.orders")).delete("id = 1")
    origin.add("sales.orders", id=[4], v=["d"])
    told = checked(location, max_lag=timedelta(0))
    passed, why, more = told["replica_equals_origin"]
    assert (passed, more["streamtables/missing"], more["streamtables/unexpected"]) == (False, 1, 0)
    assert "Rows missing: 1" in why
    assert more["streamtables/sample"]

    Replications(location.lake.logs()).disable("shop")
    passed, why, _ = checked(location)["replication_lag"]
    assert (passed, why) == (False, "The replication is disabled: somebody disabled it.")


def test_the_sensor_refreshes_before_a_slot_of_an_idle_lake_is_let_go(
    origin: Origin, lake: StreamTablesResource, instance: dg.DagsterInstance
) -> None:
    shop = origin.replication()
    week = FromLake(origin.lake.root, ["sales"], slot_deadline=timedelta(days=7))
    location = Location(replace(shop, publisher=week), lake, instance)
    assert location.run().success
    for days, asked in ((3, False), (4, True)):
        used = datetime.now(UTC) - timedelta(days=days)
        origin.lake.slots.change(
            "shop", lambda slot, used=used: replace(slot, used_at=used, reader=None)
        )
        found = selections(location.tick(LATER))
        assert any("raw/orders" in each for each in found) is asked


def test_a_lost_slot_fails_its_check(origin: Origin, location: Location) -> None:
    location.run()
    assert checked(location, "replication_lag")["replication_lag"][0]
    origin.lake.slots.drop("shop", even_if_read=True)
    passed, why, _ = checked(location, "replication_lag")["replication_lag"]
    assert not passed and "shop" in why


def test_alerts_tell_a_lost_slot_errors_in_a_row_and_a_disabled_replication(
    origin: Origin, location: Location
) -> None:
    assert location.run().success
    lake = location.lake
    desk = AlertState(beginning(location.instance))

    def told() -> list[tuple[str, str]]:
        nonlocal desk
        found = look(location.instance, {}, lake.logs(), desk, location.replicated)
        before = replace(desk, waiting=())
        desk = replace(before.enqueue(found.alerts, 1), positions=found.positions)
        return [(alert.table, str(alert.kind)) for _, alert in desk.waiting]

    origin.lake.slots.drop("shop", even_if_read=True)
    location.run()
    assert told() == [("replication shop", "slot_lost")]
    location.run()
    assert told() == []
    location.run()
    assert told() == [("replication shop", "errors_in_a_row")]

    assert Replications(lake.logs()).copy("shop").action == "COPY"
    assert location.run().success
    assert set(told()) == {("replication shop", "recovered")}

    strict = Location(origin.replication(disable_on_error=True), lake, location.instance)
    origin.lake.slots.drop("shop", even_if_read=True)
    strict.run()
    assert ("replication shop", "replication_disabled") in told()
