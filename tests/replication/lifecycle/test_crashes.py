"""Killed between any two steps of a refresh: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from dagster_streamtables import Lake, Replication, Replications
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin, Row, rows
from replication.postgres.database import Database

pytestmark = pytest.mark.process

STEPS = ("publish", "slot", "copy", "store the copy", "read", "apply", "store", "confirm", "end")


class Killed(BaseException):
    """No `Exception`: what is killed handles nothing."""


def killed_at(lake: Lake, step: str, time: int) -> bool:
    """Refresh until a step is about to be taken for the n-th time. False if it is not."""
    seen = Counter[str]()

    def kill(now: str) -> None:
        seen[now] += 1
        if now == step and seen[now] == time:
            raise Killed

    replications = Replications(lake)
    replications._runs.step = kill
    try:
        replications.refresh("r")
    except Killed:
        return True
    return False


class History:
    """Two tables, one without an identity, that change at random."""

    def __init__(self, origin: Origin, lake: Lake, seed: int) -> None:
        self.origin, self.lake, self.chance = origin, lake, random.Random(seed)
        self.rows: dict[str, list[Row]] = {"t": [], "bag": []}
        self.next = 0
        origin.create("t")
        origin.create("bag", key=[])
        origin.publish("p", "t")
        # A server takes no update of a table without an identity.
        origin.publish("q", "bag", operations=["insert", "truncate"])

    def change(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self._insert("bag", (self.chance.randint(0, 2), "same"))
            kind = self.chance.random()
            if kind < 0.5 or not self.rows["t"]:
                self._insert("t", (self.next, f"v{self.next}"))
                self.next += 1
            elif kind < 0.8:
                k = self.chance.choice(self.rows["t"])[0]
                self.origin.update("t", f"k = {k}", v=f"'u{self.next}'")
                self.rows["t"] = [
                    (k, f"u{self.next}") if row[0] == k else row for row in self.rows["t"]
                ]
                self.next += 1
            else:
                k = self.chance.choice(self.rows["t"])[0]
                self.origin.delete("t", f"k = {k}")
                self.rows["t"] = [row for row in self.rows["t"] if row[0] != k]

    def _insert(self, table: str, row: Row) -> None:
        self.origin.insert(table, row)
        self.rows[table].append(row)

    @property
    def replications(self) -> Replications:
        return Replications(self.lake)

    def begin(self, **settings: Any) -> None:
        self.change()
        self.replications.create(self.declared(**settings))

    def declared(self, **settings: Any) -> Replication:
        return Replication("r", self.origin.declared("p", "q"), **settings)

    def require_refreshed(self, *, wait: float = 0, about: object = None) -> None:
        """After one more refresh everything is there, once."""
        self.replications.refresh("r", wait=wait)
        self.require_equal(about)

    def require_equal(self, about: object = None) -> None:
        for table, wanted in self.rows.items():
            assert self.stored(table) == Counter(wanted), (table, about)
        assert self.replications.check("r").equal

    def stored(self, table: str) -> Counter[Row]:
        return rows(self.lake, table)


@pytest.mark.parametrize("times", [(1,), pytest.param((1, 2, 3), marks=pytest.mark.hours)])
def test_killed_between_any_two_steps(origin: Origin, lake: Lake, times: tuple[int, ...]) -> None:
    history = History(origin, lake, 1)
    history.begin(max_rows=2)
    for step in STEPS:
        for time in times:
            killed = killed_at(lake, step, time)
            assert killed or time > 1 or step in ("slot", "copy", "store the copy"), step
            history.change()
    history.require_refreshed()
    assert not history.replications.read("r").errors


@pytest.mark.parametrize("step", ["slot", "copy", "store the copy"])
def test_killed_while_it_copies(origin: Origin, lake: Lake, step: str) -> None:
    history = History(origin, lake, 2)
    history.begin()
    for time in (1, 2):
        killed_at(lake, step, time)
        history.change()
    history.require_refreshed()


@pytest.mark.hours
@pytest.mark.parametrize("seed", range(40))
def test_killed_at_random_steps(origin: Origin, lake: Lake, seed: int) -> None:
    chance, history = random.Random(seed), History(origin, lake, seed)
    max_rows, by_commit = chance.choice([1, 3, 1000]), chance.random() < 0.5
    history.begin(max_rows=max_rows, commit_by_commit=by_commit)
    killed = []
    for _ in range(8):
        history.change()
        step, time = chance.choice(STEPS), chance.randint(1, 3)
        killed.append((step, time, killed_at(lake, step, time)))
        if chance.random() < 0.2:
            history.require_refreshed(about=killed)
    history.require_refreshed(about=killed)


REFRESH = """
import sys
from dagster_streamtables import Lake, Replications
for _ in range(1000):
    Replications(Lake(sys.argv[1])).refresh("r", wait=60)
    print("refreshed", flush=True)
"""
STOP = """
import os, sys
from dagster_streamtables import Lake, Replications
r = Replications(Lake(sys.argv[1]))
r._runs.step = lambda step: step == 'store' and os._exit(9)
r.refresh('r')
"""


def program(text: str, lake: Lake) -> subprocess.Popen[str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-c", text, lake.root],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


class Refresher:
    """A process that refreshes again and again, until it is killed."""

    def __init__(self, lake: Lake) -> None:
        self.process = program(REFRESH, lake)

    def told(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def require_refreshed(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "refreshed\n", self.told()

    def work(self, ticks: int) -> None:
        """So much of its own, in hundredths of a second, however busy the machine is."""
        about = psutil.Process(self.process.pid)
        spent = about.cpu_times().user
        while about.cpu_times().user < spent + ticks / 100:
            assert self.process.poll() is None, self.told()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start(lake: Lake) -> Iterator[Callable[[], Refresher]]:
    """Starts processes, which are gone after the test."""
    started: list[Refresher] = []
    yield lambda: started.append(Refresher(lake)) or started[-1]
    for each in started:
        each.kill()


@pytest.mark.hours
@pytest.mark.parametrize("seed", range(4))
def test_processes_are_killed_at_random_moments(
    origin: Origin, lake: Lake, start: Callable[[], Refresher], seed: int
) -> None:
    """25 kills in each of these eight tests; a second process takes over at once."""
    chance, history = random.Random(seed), History(origin, lake, seed)
    history.begin(max_rows=3)
    for _ in range(25):
        process = start()
        refreshes, ticks = chance.randint(0, 2), chance.randint(0, 12)
        for _ in range(refreshes):
            history.change()
            process.require_refreshed()
        history.change()
        process.work(ticks)
        process.kill()
    history.require_refreshed()


@pytest.mark.hours
@pytest.mark.parametrize("seed", range(2))
def test_processes_are_killed_while_the_way_changes(
    database: Database, lake: Lake, start: Callable[[], Refresher], seed: int
) -> None:
    """From triggers to the log and back, again and again."""
    origin, chance = PostgresOrigin(database, "trigger"), random.Random(seed)
    history = History(origin, lake, seed)
    history.replications.refresh(history.declared(max_rows=3))
    for number in range(24):
        origin.capture = "auto" if number % 4 < 2 else "trigger"
        history.replications.alter(history.declared(max_rows=3))
        history.change()
        process = start()
        if number % 2:  # so that it has switched before the next one is told to
            process.require_refreshed()
        process.work(chance.randint(40, 140))
        process.kill()
    history.require_refreshed()


@pytest.mark.hours
def test_processes_that_refresh_at_once_apply_everything_once(
    origin: Origin, lake: Lake, start: Callable[[], Refresher]
) -> None:
    """Four of them, one of which is killed now and then and comes again."""
    chance, history = random.Random(7), History(origin, lake, 7)
    history.begin(max_rows=5)
    running = [start() for _ in range(4)]
    for number in range(40):
        history.change()
        if number % 10 == 9:
            running.pop(chance.randrange(4)).kill()
            running.append(start())
    for each in running:
        each.kill()
    history.require_refreshed(wait=90)


def test_a_process_that_is_gone_is_not_waited_for(lake: Lake, shop: LakeOrigin) -> None:
    history = History(shop, lake, 3)
    history.begin()
    assert program(STOP, lake).wait() == 9
    assert history.replications.read("r").worker == ""
    history.change()
    history.require_refreshed()
