"""Of several workers one works, and a watcher knows which, by commits and its own clock alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime.observe.lease import Heartbeat, Heartbeats, WorkerLease
from dagster_streamtables.runtime.storage.documents import Ledger
from runtime.test_lease import ended_process


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def lease(root: Path, clock: Clock) -> WorkerLease:
    return WorkerLease(Heartbeats(str(root)), Heartbeat.of_this_process(5), clock)


def test_the_second_worker_stands_by_until_the_first_has_missed_three_heartbeats(
    tmp_path: Path,
) -> None:
    clock = Clock()
    first, second = lease(tmp_path, clock), lease(tmp_path, clock)
    assert first.renew(tables=("a",))
    assert not second.renew()
    assert second.holder is not None
    assert second.holder.tables == ("a",)
    for _ in range(5):
        clock.now += 5
        assert first.renew()
        assert not second.renew()
    clock.now += 14
    assert not second.renew()
    assert first.is_active
    clock.now += 1
    assert not first.is_active, "it must not begin what the other may begin now"
    assert second.renew()
    assert not first.renew(), "its heartbeat is taken"
    assert not first.renew(), "it stands by"
    assert second.is_active


def test_a_worker_that_ends_makes_room_at_once(tmp_path: Path) -> None:
    clock = Clock()
    first, second = lease(tmp_path, clock), lease(tmp_path, clock)
    assert first.renew()
    first.end()
    assert not first.is_active
    assert second.renew()


def test_of_two_that_take_over_at_once_one_does(tmp_path: Path) -> None:
    clock = Clock()
    dead, one, two = (lease(tmp_path, clock) for _ in range(3))
    assert dead.renew()
    assert not one.renew()
    assert not two.renew()
    clock.now += 15
    assert [one.renew(), two.renew()] == [True, False]


def test_a_watcher_measures_by_its_own_clock(tmp_path: Path) -> None:
    clock, beats = Clock(), Heartbeats(str(tmp_path))
    assert beats.alive(None, 7.0) == (None, None)
    worker = lease(tmp_path, clock)
    worker.renew()
    heard, said = beats.alive(None, 1_000_000.0)
    assert said is not None
    assert said.place == worker.me.place
    assert beats.alive(heard, 1_000_014.0)[1] is not None
    assert beats.alive(heard, 1_000_015.0)[1] is None
    clock.now += 5
    worker.renew()
    heard, said = beats.alive(heard, 1_000_600.0)
    assert said is not None, "a new heartbeat, however late the look"
    # The clock of the watcher is set back by a day.
    heard, said = beats.alive(heard, 900_000.0)
    assert said is not None
    assert beats.alive(heard, 900_015.0)[1] is None
    worker.end()
    assert beats.alive(heard, 900_001.0)[1] is None


def test_workers_of_other_definitions_do_not_meet(tmp_path: Path) -> None:
    me = Heartbeat.of_this_process(5)
    assert WorkerLease(Heartbeats(str(tmp_path), name="one"), me).renew()
    assert WorkerLease(
        Heartbeats(str(tmp_path), name="two"), replace(me, lease=replace(me.lease, id="other"))
    ).renew()


def test_a_heartbeat_of_something_else_is_told(tmp_path: Path) -> None:
    beats = Heartbeats(str(tmp_path))
    value = {**Heartbeat.of_this_process(5).to_json(), "mood": "fine"}
    Ledger(beats.document.location).append(value, None)
    with pytest.raises(DamagedTable, match="the heartbeat of a worker cannot be read") as told:
        beats.newest()
    assert told.value.where == beats.document.location


def test_the_heartbeat_of_an_earlier_version_keeps_others_out(tmp_path: Path) -> None:
    clock, beats = Clock(), Heartbeats(str(tmp_path))
    other = {"worker": "9a", "host": "elsewhere", "pid": 7, "every": 5.0, "started": "2026-11-01"}
    at, rest = datetime.now(UTC).isoformat(), {"tables": ["a"], "definitions": "d", "about": {}}
    Ledger(beats.document.location).append({**other, **rest, "at": at, "ended": False}, None)

    said = beats.newest()
    assert said is not None
    assert (said.place, said.tables, said.seems_alive(datetime.now(UTC))) == (
        "elsewhere:7", ("a",), True,
    )  # fmt: skip
    mine = lease(tmp_path, clock)
    assert not mine.renew()
    clock.now += 15
    assert mine.renew()


def test_the_lease_of_a_worker_that_was_killed_is_taken_at_once(tmp_path: Path) -> None:
    gone, beats = ended_process(), Heartbeats(str(tmp_path))
    me = Heartbeat.of_this_process(5)
    dead = replace(me, lease=replace(me.lease, id="other", pid=gone))
    assert WorkerLease(beats, dead, Clock()).renew()
    assert beats.alive(None, 7.0)[1] is None
    assert lease(tmp_path, Clock()).renew()
