"""The timeline: a time means the same versions, whoever asks and whenever."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from dagster_streamtables.changes.clock.version_timeline import (
    Tick,
    TimesUnavailable,
    Versions,
    VersionTimeline,
)

A, B, C = "/lake/a", "/lake/b", "/lake/c"
NOW = 1_800_000_000_000


@pytest.fixture(params=["folder", "uri"])
def timeline(request: pytest.FixtureRequest, tmp_path: Path) -> VersionTimeline:
    return VersionTimeline(str(tmp_path) if request.param == "folder" else f"file://{tmp_path}")


def of(**tables: int) -> Versions:
    return {f"/lake/{name}": (f"id of {name}", version) for name, version in tables.items()}


def entries(timeline: VersionTimeline) -> int:
    newest = timeline._record._ledger.read()
    return 0 if newest is None else newest.version + 1


def test_what_is_recorded_is_what_was_found(timeline: VersionTimeline) -> None:
    assert timeline.record(of(a=3), NOW) == Tick(NOW, of(a=3))
    assert timeline.at(NOW, [A]) == of(a=3)
    assert list(timeline.ticks(0, [A])) == [Tick(NOW, of(a=3))]


def test_what_is_known_is_not_recorded_again(timeline: VersionTimeline) -> None:
    timeline.record(of(a=3, b=5), NOW)
    for found in (of(a=3), of(b=5, a=3), of(a=2, b=4), {}):
        assert timeline.record(found, NOW + 99).ts == NOW
    assert timeline.record(of(a=2), NOW + 99) == Tick(NOW, of(a=3))
    assert entries(timeline) == 1


def test_times_ascend_whatever_the_clocks_say(timeline: VersionTimeline) -> None:
    times = [
        timeline.record(of(a=0), NOW).ts,
        timeline.record(of(a=1), NOW).ts,
        timeline.record(of(a=2), NOW - 5000).ts,
        timeline.record(of(a=3), NOW, NOW + 700).ts,
        timeline.record(of(a=4), NOW + 5000, NOW).ts,
    ]
    assert times == [NOW, NOW + 1, NOW + 2, NOW + 700, NOW + 5000]


def test_versions_of_one_table_never_go_back(timeline: VersionTimeline) -> None:
    timeline.record(of(a=3, b=1), NOW)
    late = timeline.record(of(a=2, b=2), NOW + 1)
    assert late.versions == timeline.at(NOW + 1, [A, B]) == of(a=3, b=2)


def test_a_table_that_was_created_again_is_newer(timeline: VersionTimeline) -> None:
    timeline.record(of(a=3), NOW)
    again = {A: ("another id", 0)}
    assert timeline.record(again, NOW + 1) == Tick(NOW + 1, again)
    assert list(timeline.ticks(NOW, [A])) == [Tick(NOW + 1, again)]


def test_a_tick_is_one_at_which_the_tables_moved(timeline: VersionTimeline) -> None:
    timeline.record(of(a=0, b=0), NOW)
    timeline.record(of(b=1), NOW + 1)
    timeline.record(of(a=1), NOW + 2)
    timeline.record(of(a=1, b=3), NOW + 3)
    timeline.record(of(c=0), NOW + 4)

    assert list(timeline.ticks(NOW, [A])) == [Tick(NOW + 2, of(a=1))]
    assert list(timeline.ticks(NOW, [B, A])) == [
        Tick(NOW + 1, of(a=0, b=1)), Tick(NOW + 2, of(a=1, b=1)), Tick(NOW + 3, of(a=1, b=3)),
    ]  # fmt: skip
    assert list(timeline.ticks(NOW + 1, [B])) == [Tick(NOW + 3, of(b=3))]
    assert next(iter(timeline.ticks(NOW - 1, [A]))) == Tick(NOW, of(a=0))
    assert list(timeline.ticks(NOW + 3, [A, B])) == []
    assert list(timeline.ticks(NOW, [C])) == [Tick(NOW + 4, of(c=0))]
    assert list(timeline.ticks(NOW, ["/lake/none"])) == []


def test_a_time_means_the_newest_tick_until_then(timeline: VersionTimeline) -> None:
    assert timeline.at(NOW, [A]) is None
    assert list(timeline.ticks(0, [A])) == []
    timeline.record(of(a=0), NOW)
    timeline.record(of(a=1, b=7), NOW + 10)
    assert timeline.at(NOW - 1, [A]) is None
    assert timeline.at(NOW + 9, [A, B]) == of(a=0)
    assert timeline.at(NOW + 10, [A, B]) == of(a=1, b=7)
    assert timeline.at(NOW + 10**9, [B]) == of(b=7)


def test_no_tick_comes_before_a_closed_time(timeline: VersionTimeline) -> None:
    timeline.close(NOW)
    assert timeline.at(NOW, [A]) == {}
    timeline.close(NOW - 7)
    assert timeline.record(of(a=0), NOW - 3).ts == NOW + 1
    timeline.close(NOW + 1)
    assert entries(timeline) == 2
    timeline.close(NOW + 5)
    assert timeline.record(of(a=0), NOW + 2) == Tick(NOW + 5, of(a=0))
    assert timeline.record(of(a=1), NOW + 2).ts == NOW + 6
    assert [tick.ts for tick in timeline.ticks(0, [A])] == [NOW + 1, NOW + 6]
    assert timeline.at(NOW + 5, [A]) == of(a=0)


def test_times_that_are_no_longer_recorded_are_refused(tmp_path: Path) -> None:
    timeline = VersionTimeline(str(tmp_path), kept="interval 0 seconds")
    for version in range(1100):
        timeline.record(of(a=version), NOW + version)
    kept = min(int(each.stem) for each in tmp_path.rglob("*.json"))
    assert 0 < kept < 1100

    # What an entry before the first one meant is unknown, and so is what moved after it.
    for attempt in (
        lambda: timeline.at(NOW + kept - 1, [A]),
        lambda: list(timeline.ticks(NOW + kept - 1, [A])),
        lambda: list(timeline.ticks(0, [A])),
    ):
        with pytest.raises(TimesUnavailable, match="ms are no longer recorded"):
            attempt()
    assert timeline.at(NOW + kept, [A]) == of(a=kept)
    assert [tick.ts - NOW for tick in timeline.ticks(NOW + kept, [A])] == list(
        range(kept + 1, 1100)
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6), st.integers(-3, 3))))
def test_every_question_is_answered_as_by_a_list(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    timeline = VersionTimeline(str(tmp_path_factory.mktemp("lake")))
    model: list[Tick] = []
    for number, (name, version, skew) in enumerate(steps):
        tick = timeline.record(of(**{name: version}), NOW + number + skew)
        known = model[-1].versions if model else {}
        assert not model or tick.ts >= model[-1].ts
        assert tick.versions[f"/lake/{name}"][1] >= version
        if not model or tick.ts > model[-1].ts:
            model.append(Tick(tick.ts, {**known, **tick.versions}))
    for ts in range(NOW - 5, NOW + len(steps) + 8):
        until = [tick.versions for tick in model if tick.ts <= ts]
        assert timeline.at(ts, [A, B, C]) == (until[-1] if until else None)
        assert list(timeline.ticks(ts, [A, B, C])) == [tick for tick in model if tick.ts > ts]


FOLLOWER = """
import json, random, sys, time
from dagster_streamtables.changes.clock.version_timeline import VersionTimeline

root, seed = sys.argv[1:]
timeline, rows, chance = VersionTimeline(root), [], random.Random(seed)
for step in range(150):
    # As if all processes saw one lake that moves on: version = time.
    seen = int(time.monotonic() * 200)
    found = {f"/lake/{n}": (n, seen) for n in chance.sample("abc", 2)}
    tick = timeline.record(found, int(time.time() * 1000) + chance.randint(-50, 50))
    rows.append([tick.ts, found, tick.versions])
print(json.dumps(rows))
"""


@pytest.mark.process
def test_processes_that_follow_the_same_tables_agree(tmp_path: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", FOLLOWER, tmp_path, n], stdout=subprocess.PIPE)
        for n in "xyz"
    ]
    told = [row for each in started for row in json.loads(each.communicate()[0])]

    timeline = VersionTimeline(str(tmp_path))
    ticks = list(timeline.ticks(0, [A, B, C]))
    assert [tick.ts for tick in ticks] == sorted({tick.ts for tick in ticks})
    for before, after in itertools.pairwise(ticks):
        assert all(after.versions[each] >= before.versions[each] for each in before.versions)
    for ts, found, versions in random.Random(0).sample(told, 100):
        meant = timeline.at(ts, list(found))
        assert meant is not None
        assert {place: list(each) for place, each in meant.items()} == versions
        assert all(meant[place][1] >= version for place, (_, version) in found.items())
