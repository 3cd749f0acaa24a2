"""Several readers and writers at once, and a subscriber that is killed at random moments.

The latter loses no row, and stores none twice. The sink stores rows and token in one transaction;
see `sink`. A slot is acknowledged after it, so what a killed sink had stored and not acknowledged
comes again, and the sink knows it by its time.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from changes.reading import contents, plain, read
from changes.table import Table
from dagster_streamtables import Lake, subscribe

pytestmark = pytest.mark.process

COMMITS = 20
TESTS = Path(__file__).parent.parent
IMPORTING = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
"""The environment of a process that imports the tests."""
READER = """
import json, sys
from dagster_streamtables import Lake, subscribe
from changes.reading import plain
root, last = sys.argv[1], int(sys.argv[2])
with subscribe(Lake(root), "t", clock="ms", as_of="{as_of}") as subscription:
    subscription.fetch(0)
    print("ready", flush=True)
    rows = []
    for batch in subscription:
        rows += plain(batch)
        if any(row[2] == last for row in rows):
            break
    print(json.dumps(rows))
"""


@pytest.mark.parametrize("clock", ["version", "ms"])
def test_two_threads_beside_a_writer(lake: Lake, t: Table, clock: Any) -> None:
    t.insert((0, "a"))
    found: dict[int, list[Any]] = {0: [], 1: []}

    def follow(n: int) -> None:
        with subscribe(lake, "t", clock=clock, poll_interval=0.01) as subscription:
            for batch in subscription:
                found[n] += plain(batch)
                if any(row[2] == COMMITS for row in found[n]):
                    return

    threads = [threading.Thread(target=follow, args=(n,)) for n in found]
    for thread in threads:
        thread.start()
    for n in range(1, COMMITS + 1):
        t.update(None, v="v || 'x'") if n % 5 == 0 else t.insert((n, "a"))
        if n == COMMITS:
            t.insert((n, "end"))
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()

    for rows in found.values():
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)
        assert contents(rows, rows[-1][0]) == t.rows(t.version)
    # A time means the same rows to both, from where the later one began.
    begins = max(rows[0][0] for rows in found.values())
    later = [sorted(row for row in rows if row[0] > begins) for rows in found.values()]
    assert later[0] == later[1]


@pytest.mark.long
def test_two_processes_have_the_same_times(lake: Lake, t: Table, tmp_path: Path) -> None:
    t.insert((0, "a"))
    with subscribe(lake, "t", clock="ms") as here:
        here.fetch(0)
        begun = here.timestamp
    command = [sys.executable, "-c", READER.format(as_of=begun), str(tmp_path), str(COMMITS)]
    options: dict[str, Any] = {"text": True, "env": IMPORTING}
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, **options) for _ in range(2)]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    for n in range(1, COMMITS + 1):
        t.insert((n, "a"))
    lines = [reader.communicate(timeout=60)[0] for reader in readers]
    told = [sorted(map(tuple, json.loads(line))) for line in lines]

    assert told[0] == told[1]
    # Whoever reads them again finds the same.
    assert sorted(read(lake, "t", clock="ms", as_of=begun)) == told[0]


def test_a_subscription_is_closed_by_another_thread(lake: Lake, t: Table) -> None:
    subscription = subscribe(lake, "t", slot="s")
    closing = threading.Timer(0.2, subscription.close)
    closing.start()
    assert list(subscription) == []
    closing.join()
    with subscribe(lake, "t", slot="s") as next_reader:
        assert next_reader.fetch(1, timeout=0).num_rows == 0


KILLS = 100
FEW, MANY = 100, 100_000
"""Rows that a run of Dagster takes: no more than it can store between two kills, and at the end all
that is there."""
PATIENCE = 300
"""Seconds: on a busy machine a process of Dagster takes a minute to begin."""

ways = pytest.mark.parametrize(
    ("program", "slot"),
    [("sink", "-"), ("sink", "index"), ("run_sink", "index")],
    ids=["token", "slot", "runs of Dagster"],
)


@pytest.mark.long
@pytest.mark.timeout(3600)
@ways
def test_killed_a_hundred_times(program: str, slot: str, tmp_path: Path) -> None:
    lake, dice = Lake(tmp_path / "lake"), random.Random(KILLS)
    table, database = Table.new(lake.location("t")), tmp_path / "sink.db"
    table.insert(*_rows(dice, 20))
    for _ in range(KILLS):
        with _sink(program, lake, database, slot, FEW) as sink:
            assert sink.stdout is not None
            sink.stdout.readline()
            end = time.monotonic() + dice.random() * (0.6 if program == "sink" else 3)
            while time.monotonic() < end:
                _change(table, dice)
        _free(lake, slot)
    with _sink(program, lake, database, slot, MANY) as sink:
        # The last commit is one of rows, which the sink can be seen to store.
        table.insert(*_rows(dice, 1))
        _wait_for(database, table.version)
    assert _stored(database) == table.rows(table.version)


@contextmanager
def _sink(
    program: str, lake: Lake, database: Path, slot: str, max_rows: int
) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed at the end, also of a test that fails: it would never end."""
    command = [sys.executable, "-m", f"changes.{program}", lake.root, str(database), slot]
    command += [str(max_rows)] if program == "run_sink" else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=IMPORTING) as sink:
        try:
            yield sink
        finally:
            sink.kill()


def _free(lake: Lake, slot: str) -> None:
    """What the end of a lease does, without waiting a minute for it."""
    if slot != "-":
        made = lake.slots.find(slot)
        if made is not None and made.reader is not None:
            lake.slots.release(slot, made.reader.id)


def _rows(dice: random.Random, count: int) -> list[tuple[int, str]]:
    keys = [dice.randrange(1000) for _ in range(count)]
    return [(key, f"v{key % 5}") for key in keys]


def _change(table: Table, dice: random.Random) -> None:
    match dice.randrange(5):
        case 0:
            table.delete(f"k % 17 = {dice.randrange(17)}")
        case 1:
            table.update(f"k % 13 = {dice.randrange(13)}", v=f"'w{dice.randrange(9)}'")
        case 2:
            table.overwrite(*_rows(dice, 30))
        case _:
            table.insert(*_rows(dice, 5))


def _wait_for(database: Path, version: int) -> None:
    """Until the sink has a version, or has stored nothing for long, which the test then tells.

    The sink that was killed all the time may have many versions to catch up with.
    """
    seen, end = None, time.monotonic() + PATIENCE
    while (newest := _newest(database)) != version and time.monotonic() < end:
        if newest != seen:
            seen, end = newest, time.monotonic() + PATIENCE
        time.sleep(0.2)
    assert newest == version


def _newest(database: Path) -> int | None:
    # Not read-only: what a sink that was killed had begun to write is rolled back by whoever reads.
    with sqlite3.connect(database) as store:
        return store.execute("SELECT MAX(ts) FROM rows").fetchone()[0]


def _stored(database: Path) -> Counter[tuple[int, str]]:
    with sqlite3.connect(database) as store:
        rows = store.execute("SELECT k, v, SUM(diff) FROM rows GROUP BY k, v").fetchall()
    return Counter({(k, v): n for k, v, n in rows if n})
