"""Freshness policies, judged by Dagster's own daemon, and run-less events that keep them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.definitions.freshness_evaluator import FRESHNESS_EVALUATORS_BY_POLICY_TYPE
from dagster._core.loader import LoadingContextForTest
from dagster._core.test_utils import create_test_daemon_workspace_context, freeze_time
from dagster._core.workspace.load_target import PythonFileTarget
from dagster._daemon.freshness import FreshnessDaemon

from dagster_streamtables.declare.schedule import parse_schedule
from dagster_streamtables.orchestration.catalog.freshness import freshness_policy, passes
from dagster_streamtables.orchestration.catalog.provenance import copy_tags

REPOSITORY = Path(__file__).parents[2]


def policy(text: str | None) -> dg.FreshnessPolicy | None:
    return freshness_policy(parse_schedule(text, "Europe/Berlin", min_schedule_seconds=0))


def minutes(value: float) -> timedelta:
    return timedelta(minutes=value)


@pytest.mark.parametrize(
    ("schedule", "fail", "warn"),
    [
        ("on change", 5, 4),
        ("10s", 5, 4),
        ("1m", 5, 4),
        ("3m", 6, 4),
        ("30m", 60, 30),
        ("1h", 120, 60),
        ("* * * * *", 5, 4),
        # Six fields, which Dagster's cron policy does not take: from the longest gap.
        ("0 0 */5 * * *", 600, 300),
    ],
)
def test_a_duration_is_a_window(schedule: str, fail: float, warn: float) -> None:
    expected = dg.FreshnessPolicy.time_window(fail_window=minutes(fail), warn_window=minutes(warn))
    assert policy(schedule) == expected


@pytest.mark.parametrize(
    "schedule",
    [
        "0 9,11,18 * * *",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("30s", "2h", "@daily")),
    ],
)
def test_what_passes_is_what_the_daemon_calls_fresh(schedule: str) -> None:
    """Judged by Dagster's own evaluators, at every moment of some days."""
    judged, last = policy(schedule), datetime(2026, 3, 28, 9, 10, tzinfo=UTC)
    assert judged is not None
    node: Any = SimpleNamespace(freshness_policy_or_from_metadata=judged, key=dg.AssetKey("table"))
    evaluator = FRESHNESS_EVALUATORS_BY_POLICY_TYPE[type(judged)]()
    with dg.instance_for_test() as instance:
        with freeze_time(last):
            instance.report_runless_asset_event(dg.AssetMaterialization("table"))
        for minute in range(7, 3 * 24 * 60, 37):
            at = last + minutes(minute)
            with freeze_time(at):
                context = LoadingContextForTest(instance)
                state = asyncio.run(evaluator.evaluate_freshness(context, node))
            assert passes(judged, last, at) == (state.value == "PASS"), at


@pytest.mark.parametrize(
    ("schedule", "deadline", "before"),
    [
        ("0 9,11,18 * * *", "0 10,12,19 * * *", 60),
        ("@daily", "0 1 * * *", 60),
        ("30 23 * * *", "30 0 * * *", 60),
        ("0 */6 1 * *", "0 1,7,13,19 1 * *", 60),
        # An hour later may be another day, or the next tick: judged at the next tick.
        ("30 23 * * 5", "30 23 * * 5", 7 * 24 * 60),
        ("0 9,10,18 * * *", "0 9,10,18 * * *", 60),
        ("@hourly", "0 * * * *", 60),
        ("*/5 * * * *", "*/5 * * * *", 5),
    ],
)
def test_a_cron_is_a_deadline_in_its_time_zone(schedule: str, deadline: str, before: float) -> None:
    assert policy(schedule) == dg.FreshnessPolicy.cron(deadline, minutes(before), "Europe/Berlin")


def test_a_refresh_that_fails_at_night_shows_in_the_morning() -> None:
    """It showed at the next night's tick."""
    judged, zone = policy("0 2 * * *"), ZoneInfo("Europe/Berlin")
    assert judged is not None
    yesterday = datetime(2026, 5, 4, 2, 1, tzinfo=zone)
    assert passes(judged, yesterday, datetime(2026, 5, 5, 2, 59, tzinfo=zone))
    assert not passes(judged, yesterday, datetime(2026, 5, 5, 3, 1, tzinfo=zone))
    assert passes(judged, yesterday + timedelta(days=1), datetime(2026, 5, 5, 3, 1, tzinfo=zone))


def test_a_table_on_demand_has_no_policy() -> None:
    assert policy(None) is None


CODE = """
from datetime import timedelta
import dagster as dg

policy = dg.FreshnessPolicy.time_window(timedelta(minutes=2), timedelta(minutes=1))

@dg.asset(freshness_policy=policy)
def source():
    return dg.MaterializeResult(data_version=dg.DataVersion("7"))

@dg.asset(deps=[source], code_version="1", freshness_policy=policy)
def table():
    return dg.MaterializeResult(data_version=dg.DataVersion("3"))

defs = dg.Definitions([source, table])
"""


def test_a_repeated_materialization_restarts_the_clock_and_changes_nothing(tmp_path: Path) -> None:
    """What the sensor reports of a table that is due and unchanged, judged by the daemon."""
    file = tmp_path / "location.py"
    file.write_text(CODE)
    key, found = dg.AssetKey("table"), {}
    exec(CODE, found)
    target = PythonFileTarget(str(file), None, str(REPOSITORY), "location")
    with (
        dg.instance_for_test() as instance,
        create_test_daemon_workspace_context(target, instance) as workspace,
    ):
        daemon, start = FreshnessDaemon(), datetime.now(UTC)

        def state(seconds: float) -> str:
            with freeze_time(start + timedelta(seconds=seconds)):
                list(daemon.run_iteration(workspace))
            return instance.get_freshness_state_records([key])[key].freshness_state.value

        dg.materialize([found["source"], found["table"]], instance=instance)
        assert [state(30), state(90), state(150)] == ["PASS", "WARN", "FAIL"]

        event = instance.get_latest_materialization_event(key)
        assert event is not None and event.asset_materialization is not None
        tags = copy_tags(event.asset_materialization.tags or {})
        with freeze_time(start + timedelta(seconds=140)):
            instance.report_runless_asset_event(dg.AssetMaterialization(key, tags=tags))
        assert state(150) == "PASS"

        again = instance.get_latest_materialization_event(key)
        assert again is not None and again.asset_materialization is not None
        assert again.run_id != event.run_id
        assert again.asset_materialization.tags == event.asset_materialization.tags
        staleness = CachingStaleStatusResolver(
            instance=instance,
            asset_graph=found["defs"].resolve_asset_graph(),
            loading_context=LoadingContextForTest(instance),
        )
        assert staleness.get_status(key).value == "FRESH"
