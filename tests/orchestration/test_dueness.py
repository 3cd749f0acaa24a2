"""Decisions of the sensor, as pure functions of schedules, states and the time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dagster_streamtables.declare.schedule import Cron, Duration, OnChange
from dagster_streamtables.scheduling.dueness import (
    Backoff,
    RefreshState,
    TickPlan,
    decide,
    due,
    runs,
    too_fast,
)

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
READS = {"a": ("s",), "b": ("a",), "c": ("b",)}
IDLE = RefreshState()
MOVED = replace(IDLE, work=("s moved",))
NEW = RefreshState(work=("it was never refreshed",))
FIVE, HOUR = Duration("5m", 300), Duration("1h", 3600)


def decision(**states: RefreshState) -> TickPlan:
    return decide(states, READS, NOW, Backoff())


def test_due_is_what_was_never_refreshed_and_what_is_old_enough() -> None:
    schedules = {"new": HOUR, "old": FIVE, "young": FIVE, "free": None}
    last = {"new": None, "old": NOW - timedelta(minutes=5), "young": NOW, "free": None}
    assert due(schedules, dict.fromkeys(schedules, ()), last, NOW) == ["new", "old"]


def test_a_cron_table_is_due_after_its_tick_and_its_calculated_sources_with_it() -> None:
    schedules = {"a": None, "b": None, "c": Cron("0 12 * * *")}
    last = dict.fromkeys("abc", NOW - timedelta(minutes=1))
    assert due(schedules, READS, last, NOW - timedelta(seconds=1)) == []
    assert due(schedules, READS, last, NOW) == ["a", "b", "c"]


def test_a_table_on_change_is_always_due_and_its_calculated_sources_with_it() -> None:
    schedules = {"a": None, "b": None, "c": OnChange()}
    assert due(schedules, READS, dict.fromkeys("abc", NOW), NOW) == ["a", "b", "c"]


def test_schedules_that_runs_do_not_keep_are_said() -> None:
    assert list(too_fast({"a": FIVE, "b": None}, 5)) == []
    [said] = too_fast({"a": FIVE, "b": OnChange(), "c": Duration("1s", 1)}, 1)
    assert "b (on change), c (1s)" in said
    assert "every 5 s" in said
    assert "streamtables worker" in said


def test_a_source_with_a_schedule_of_its_own_keeps_to_it() -> None:
    schedules = {"a": HOUR, "b": None, "c": FIVE}
    last = {"a": NOW - timedelta(minutes=1), "b": NOW, "c": NOW - timedelta(minutes=5)}
    assert due(schedules, READS, last, NOW) == ["b", "c"]


def test_what_moved_is_refreshed_and_what_reads_it_too() -> None:
    assert decision(a=MOVED, b=IDLE, c=IDLE).refresh == ("a", "b", "c")


def test_what_did_not_move_is_fresh_without_a_run() -> None:
    found = decision(a=IDLE, b=IDLE)
    assert (found.refresh, found.fresh) == ((), ("a", "b"))


def test_work_below_does_not_wake_what_is_above() -> None:
    found = decision(a=IDLE, b=MOVED, c=IDLE)
    assert (found.refresh, found.fresh) == (("b", "c"), ("a",))


def test_a_new_table_is_refreshed() -> None:
    assert decision(a=NEW).refresh == ("a",)


def test_a_table_in_a_run_is_left_out_and_those_below_wait() -> None:
    found = decision(a=replace(MOVED, run="f00dcafe-1"), b=MOVED, c=IDLE)
    assert (found.refresh, found.fresh) == ((), ())
    assert found.held["a"] == "run f00dcafe is refreshing it"
    assert found.held["b"].startswith("waits for a")
    assert found.held["c"].startswith("waits for b")


def test_a_table_that_failed_is_left_alone_for_twice_as_long_each_time() -> None:
    for failures, seconds in ((1, 30), (2, 60), (5, 480), (50, 3600)):
        failed = replace(MOVED, failures=failures, failed_at=NOW - timedelta(seconds=seconds - 1))
        assert "next retry at" in decision(a=failed).held["a"]
        failed = replace(failed, failed_at=NOW - timedelta(seconds=seconds * 1.25))
        assert decision(a=failed).refresh == ("a",)


def test_tables_that_failed_together_are_not_tried_again_together() -> None:
    failed = [NOW + timedelta(microseconds=n) for n in range(20)]
    pauses = {Backoff().until(3, at) - at for at in failed}
    assert len(pauses) == len(failed)
    assert all(timedelta(seconds=120) <= pause <= timedelta(seconds=150) for pause in pauses)


def test_a_table_below_a_failed_one_is_not_called_fresh_but_does_its_own_work() -> None:
    failed = replace(MOVED, failures=1, failed_at=NOW)
    assert decision(a=failed, b=IDLE).held["b"] == "waits for a"
    assert decision(a=failed, b=replace(IDLE, work=("t moved",))).refresh == ("b",)


def test_a_new_table_waits_for_a_source_that_does_not_exist() -> None:
    new = replace(NEW, missing=("s",))
    assert decision(a=new).held["a"] == "waits for s, which does not exist"


def test_a_new_table_does_not_wait_for_one_that_the_same_run_makes() -> None:
    assert decision(a=NEW, b=replace(NEW, missing=("a",))).refresh == ("a", "b")


def test_one_run_for_each_connected_part_and_the_tightest_deadline_first() -> None:
    reads = {"a": ("s",), "b": ("a",), "x": ("s",)}
    last = {"a": NOW - timedelta(minutes=50), "b": NOW - timedelta(minutes=50), "x": NOW}
    schedules = {"a": HOUR, "b": HOUR, "x": FIVE}
    refresh = TickPlan(refresh=("a", "b", "x"))
    assert runs(refresh, schedules, last, reads) == [["x"], ["a", "b"]]
    schedules["b"] = Duration("51m", 51 * 60)
    assert runs(refresh, schedules, last, reads) == [["a", "b"], ["x"]]
    assert runs(refresh, schedules, {**last, "x": None}, reads)[0] == ["x"]
    assert runs(TickPlan(), schedules, last, reads) == []


def test_a_suspended_table_is_left_alone_and_says_why() -> None:
    found = decision(a=replace(MOVED, suspended="it failed 3 times in a row"), b=IDLE)
    assert found.refresh == ()
    assert found.held["a"] == "suspended, it failed 3 times in a row"
    assert found.held["b"] == "waits for a"


def test_a_table_whose_first_refresh_is_left_to_a_person_waits_and_so_does_what_reads_it() -> None:
    by_hand = replace(NEW, by_hand=True)
    found = decision(a=by_hand, b=replace(NEW, missing=("a",)), c=IDLE)
    assert (found.refresh, found.fresh) == ((), ())
    assert "started by hand" in found.held["a"]
    assert found.held["b"] == "waits for a, which does not exist"
    # Its run is what it waits for, and says more.
    assert "is refreshing it" in decision(a=replace(by_hand, run="f00dcafe-1")).held["a"]
    assert decision(a=MOVED).refresh == ("a",)
