"""A subscriber that is killed at random moments loses no row, and stores none twice.

The sink stores rows and token in one transaction; see `sink`. A slot is acknowledged after it, so
what a killed sink had stored and not acknowledged comes again, and the sink knows it by its time.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Lake

pytestmark = pytest.mark.process

KILLS = 100
FEW, MANY = 100, 100_000
"""Rows that a run of Dagster takes: no more than it can store between two kills, and at the end all
that is there."""
PATIENCE = 300
"""Seconds: on a busy machine a process of Dagster takes a minute to begin."""
TESTS = Path(__file__).parent.parent

ways = pytest.mark.parametrize(
    ("program", "slot"),
    [
        pytest.param("sink", "-", id="token"),
        pytest.param("sink", "index", id="slot"),
        pytest.param("run_sink", "index", id="runs of Dagster"),
    ],
)


@pytest.mark.long
@pytest.mark.timeout(3600)
@ways
def test_killed_a_hundred_times(program: str, slot: str, tmp_path: Path) -> None:
    lake, dice = Lake(tmp_path / "lake"), random.Random(KILLS)
    place, database = lake.location("t"), tmp_path / "sink.db"
    write_deltalake(place, _rows(dice, 20), configuration={"delta.enableChangeDataFeed": "true"})
    for _ in range(KILLS):
        with _sink(program, lake, database, slot, FEW) as sink:
            assert sink.stdout is not None
            sink.stdout.readline()
            end = time.monotonic() + dice.random() * (0.6 if program == "sink" else 3)
            while time.monotonic() < end:
                _change(place, dice)
        _free(lake, slot)
    with _sink(program, lake, database, slot, MANY) as sink:
        # The last commit is one of rows, which the sink can be seen to store.
        write_deltalake(place, _rows(dice, 1), mode="append")
        _wait_for(database, DeltaTable(place).version())
    assert _stored(database) == _held(place)


@contextmanager
def _sink(
    program: str, lake: Lake, database: Path, slot: str, max_rows: int
) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed at the end, also of a test that fails: it would never end."""
    command = [sys.executable, "-m", f"changes.{program}", lake.root, str(database), slot]
    command += [str(max_rows)] if program == "run_sink" else []
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as sink:
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


def _rows(dice: random.Random, count: int) -> pa.Table:
    keys = [dice.randrange(1000) for _ in range(count)]
    return pa.table({"k": pa.array(keys, pa.int64()), "v": [f"v{key % 5}" for key in keys]})


def _change(place: str, dice: random.Random) -> None:
    match dice.randrange(5):
        case 0:
            DeltaTable(place).delete(f"k % 17 = {dice.randrange(17)}")
        case 1:
            updates = {"v": f"'w{dice.randrange(9)}'"}
            DeltaTable(place).update(predicate=f"k % 13 = {dice.randrange(13)}", updates=updates)
        case 2:
            write_deltalake(place, _rows(dice, 30), mode="overwrite")
        case _:
            write_deltalake(place, _rows(dice, 5), mode="append")


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


def _held(place: str) -> Counter[tuple[int, str]]:
    rows = DeltaTable(place).to_pyarrow_table().to_pylist()
    return Counter((row["k"], row["v"]) for row in rows)
