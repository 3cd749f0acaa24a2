"""Alerts of real runs: who is told of what, how often, and what happens when telling fails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterEventType, DagsterRunStatus
from dagster._core.definitions.freshness import FreshnessState, FreshnessStateChange
from dagster._core.test_utils import create_run_for_test

from dagster_streamtables import (
    CheckSettings,
    StreamTablesResource,
    build_definitions,
    build_stream_table_assets,
)
from dagster_streamtables.checks import build_table_checks
from dagster_streamtables.orchestration.alerts.alert_sensor import (
    UndeliveredAlerts,
    build_alert_sensor,
)
from dagster_streamtables.orchestration.alerts.alerts import Alert, AlertKind, AlertState
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.stream_table import StreamTable
from orchestration.conftest import Write

PAID = StreamTable("paid", "SELECT id, amount FROM orders", max_consecutive_errors=2)
OTHER = StreamTable("other", "SELECT id FROM refunds")
TABLES = [PAID, OTHER]
KEY = dg.AssetKey("paid")
WHOLE = CheckSettings(sample=None)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Watch:
    """An instance, an alert sensor over it, and what it told."""

    def __init__(
        self, resource: StreamTablesResource, notify: Callable[[Alert], object] | None = None
    ) -> None:
        self.instance = dg.DagsterInstance.ephemeral()
        self.resource = resource
        self.told: list[Alert] = []
        functions = [self.told.append, *([notify] if notify else [])]
        self.sensor = build_alert_sensor(tables=TABLES, notify=functions)
        self.assets = [
            *build_stream_table_assets(tables=TABLES, retry_policy=None),
            *build_table_checks(tables=TABLES, kinds=["equality"], settings=WHOLE),
        ]
        self.cursor: str | None = None
        self.tick()

    def tick(self) -> list[tuple[str, str]]:
        before = len(self.told)
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"streamtables": self.resource}
        ) as context:
            done = self.sensor.evaluate_tick(context)
            self.said = done.skip_message
            self.cursor = done.cursor
        return [(alert.table, str(alert.kind)) for alert in self.told[before:]]

    def run(self, selection: dg.AssetSelection | None = None) -> bool:
        return dg.materialize(
            self.assets,
            selection=selection or dg.AssetSelection.assets(KEY).without_checks(),
            instance=self.instance,
            resources={"streamtables": self.resource},
            raise_on_error=False,
        ).success


@pytest.fixture
def watch(logs: StreamTablesResource) -> Watch:
    return Watch(logs)


def test_nothing_of_the_past_is_told(watch: Watch) -> None:
    watch.cursor = None
    assert not watch.run()
    assert (watch.tick(), watch.said) == ([], "The first tick: reports what happens from now on.")
    assert (watch.tick(), watch.said) == ([], "No new alerts.")


def test_a_failed_refresh_is_told_once_with_its_four_parts_and_then_its_suspension(
    watch: Watch,
) -> None:
    assert not watch.run()
    assert watch.tick() == [("paid", "refresh_failed")]
    [alert] = watch.told
    for part in ('there is no table "orders"', "why: ", "fix: "):
        assert part in alert.message
    assert watch.instance.has_run(alert.run_id)
    assert watch.tick() == []

    assert not watch.run()  # which suspends it; the same error again is no news
    assert watch.tick() == [("paid", "suspended")]
    assert "it failed 2 times in a row" in watch.told[-1].message
    assert not watch.run()  # and this one fails otherwise: it is suspended
    assert watch.tick() == [("paid", "refresh_failed")]
    assert "suspended since" in watch.told[-1].message

    watch.instance.report_runless_asset_event(dg.AssetMaterialization(KEY))
    assert watch.tick() == [("paid", "recovered"), ("paid", "recovered")]
    assert watch.tick() == []
    assert not watch.run()
    assert ("paid", "refresh_failed") in watch.tick()


def test_a_table_that_fails_and_recovers_between_two_ticks_is_told_of(watch: Watch) -> None:
    assert not watch.run()
    watch.instance.report_runless_asset_event(dg.AssetMaterialization(KEY))
    assert watch.tick() == [("paid", "refresh_failed"), ("paid", "recovered")]


def test_a_run_that_never_started_fails_its_tables(watch: Watch) -> None:
    run = create_run_for_test(
        watch.instance,
        status=DagsterRunStatus.STARTED,
        asset_selection=frozenset({KEY, dg.AssetKey("somebody_elses")}),
    )
    watch.instance.report_run_failed(run, "the process was lost")
    assert watch.tick() == [("paid", "refresh_failed")]
    assert "the process was lost" in watch.told[-1].message


def test_runs_of_other_assets_are_nothing_to_tell(watch: Watch) -> None:
    @dg.asset
    def mine() -> None:
        raise ValueError("no")

    dg.materialize([mine], instance=watch.instance, raise_on_error=False)
    assert watch.tick() == []


def test_a_check_is_told_of_when_it_begins_to_fail_and_when_it_passes_again(watch: Watch) -> None:
    checks = dg.AssetSelection.all_asset_checks()
    assert watch.run(checks)
    assert sorted(watch.tick()) == [("other", "check_failed"), ("paid", "check_failed")]
    assert "equals_recomputation failed: " in watch.told[0].message
    assert "never been refreshed" in watch.told[0].message
    assert watch.run(checks)
    assert watch.tick() == []


def test_freshness_is_told_of_as_it_changes(watch: Watch) -> None:

    def change(key: str, old: FreshnessState, new: FreshnessState) -> None:
        at = datetime.now(UTC).timestamp()
        event = FreshnessStateChange(
            key=dg.AssetKey(key), new_state=new, previous_state=old, state_change_timestamp=at
        )
        watch.instance._report_runless_asset_event(event)

    states = FreshnessState
    change("paid", states.UNKNOWN, states.PASS)
    assert watch.tick() == []
    change("paid", states.PASS, states.WARN)
    change("paid", states.WARN, states.FAIL)
    change("somebody_elses", states.PASS, states.FAIL)
    assert watch.tick() == [("paid", "freshness_warning"), ("paid", "freshness_failed")]
    change("paid", states.FAIL, states.PASS)
    assert watch.tick() == [("paid", "recovered")]


def test_a_table_that_is_built_anew_is_told_of_but_for_the_first_time(watch: Watch) -> None:
    @dg.multi_asset(specs=[dg.AssetSpec("paid")])
    def made(context):  # type: ignore[no-untyped-def]
        version = int(context.run.tags["version"])
        return dg.MaterializeResult(
            metadata={
                metadata.ACTION: "REINITIALIZE",
                metadata.REASON: "the definition changed",
                metadata.VERSION: version,
            }
        )

    for version, told in ((0, []), (7, [("paid", "reinitialized")])):
        dg.materialize([made], instance=watch.instance, tags={"version": str(version)})
        assert watch.tick() == told
    assert watch.told[-1].message == "the definition changed"


def test_an_error_of_a_function_fails_the_tick_and_is_tried_again(
    logs: StreamTablesResource,
) -> None:
    broken = True
    got: list[Alert] = []

    def notify(alert: Alert) -> None:
        if broken:
            raise ConnectionError("no mail today")
        got.append(alert)

    watch = Watch(logs, notify)
    assert not watch.run()
    assert watch.tick() == [("paid", "refresh_failed")]
    assert watch.said == "Alerts delivered: 1; to retry: 1."
    for _ in range(2):
        with pytest.raises(UndeliveredAlerts, match="1 alerts could not be delivered") as error:
            watch.tick()
        assert "no mail today" in str(error.value)
    # What comes meanwhile is not held up.
    watch.instance.report_runless_asset_event(dg.AssetMaterialization(KEY))
    assert watch.tick() == [("paid", "recovered")]
    broken = False
    assert watch.tick() == []
    assert [str(alert.kind) for alert in got] == ["refresh_failed", "recovered"]
    assert len(watch.told) == 2


def test_what_is_kept_between_ticks_survives_as_text() -> None:
    alert = Alert("t", AlertKind.CHECK_FAILED, "no\nfix: yes", NOW, "run", "check")
    desk = AlertState({"RUN_FAILURE": 7}).enqueue([alert], 2)
    assert len(desk.waiting) == 2
    assert AlertState.from_cursor(desk.to_cursor()) == desk
    assert not desk.is_news(alert)
    over = Alert("t", AlertKind.RECOVERED, "", NOW + timedelta(1), about="check")
    assert desk.is_news(over)
    assert desk.enqueue([over], 1).open == ()
    assert not AlertState().is_news(over)


def test_a_source_that_comes_back_lets_the_table_recover(
    resource: StreamTablesResource, write: Write, tmp_path: Path
) -> None:
    watch = Watch(resource)
    assert not watch.run()
    write("orders", id=[1], amount=[5])
    assert watch.run()
    assert watch.tick() == [("paid", "refresh_failed"), ("paid", "recovered")]
    assert Lake(tmp_path).controls.read("paid").errors == 0
    assert not watch.instance.get_run_records(dg.RunsFilter(statuses=[DagsterRunStatus.STARTED]))
    assert (
        DagsterEventType.RUN_SUCCESS.value in AlertState.from_cursor(watch.cursor or "").positions
    )


def test_definitions_have_the_sensor_where_alerts_are_asked_for(logs: StreamTablesResource) -> None:
    told: list[Alert] = []
    defs = build_definitions(resource=logs, tables=TABLES, alerts=told.append)
    names = {sensor.name for sensor in defs.sensors or []}
    assert names == {"streamtables_refresh", "streamtables_alerts"}
    without = build_definitions(resource=logs, tables=TABLES)
    assert {sensor.name for sensor in without.sensors or []} == {"streamtables_refresh"}


def test_alerts_beyond_a_thousand_are_dropped_aloud(caplog: pytest.LogCaptureFixture) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    found = [Alert(f"t{n}", AlertKind.REINITIALIZED, "", at) for n in range(1_002)]

    desk = AlertState().enqueue(found[:1_000], 1)
    assert not caplog.records
    desk = desk.enqueue(found[1_000:], 1)

    assert [alert.table for _, alert in desk.waiting] == [f"t{n}" for n in range(2, 1_002)]
    [record] = caplog.records
    assert record.getMessage() == "2 alerts dropped: newer ones wait for their delivery"
