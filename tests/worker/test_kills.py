"""A worker as a process: it ends when asked, and when it is killed at any moment nothing is wrong.

The long test kills the worker and the Spark server, each at random moments, while commits go on.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable

from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.observe.lease import Beats
from dagster_streamtables.runtime.spark.server import server_status, stop_server
from worker.conftest import Write

CHAIN = {
    "paid": "SELECT id, customer, amount FROM orders WHERE amount > 10",
    "totals": "-- schedule: on change\n"
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM paid GROUP BY customer",
}
_WAIT = 300


class Process:
    """Workers of one folder, started as a shell would start them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.tables = folder / "lake", folder / "tables"
        self.tables.mkdir()
        for name, query in CHAIN.items():
            (self.tables / f"{name}.sql").write_text(query)
        self.log = folder / "worker.log"
        self.running: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dagster_streamtables.cli", "worker"]
        command += ["--root", str(self.root), "--tables", str(self.tables)]
        command += ["--log-format", "json", "--heartbeat", "1"]
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(command, stderr=log, env=os.environ.copy())
        return self.running

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    made = Process(tmp_path)
    yield made
    if made.running is not None:
        made.running.kill()
        made.running.wait()


def totals(root: Path) -> dict[int, tuple[int, int]] | None:
    place = Lake(root).location("totals")
    if not DeltaTable.is_deltatable(place):
        return None
    found = DeltaTable(place).to_pyarrow_table(columns=["customer", "n", "total"]).to_pylist()
    assert len({row["customer"] for row in found}) == len(found), "a group is there once"
    return {row["customer"]: (row["n"], row["total"]) for row in found}


@pytest.mark.long
def test_it_ends_when_asked_and_says_so(process: Process, write: Write) -> None:
    write("orders", id=[1, 2], customer=[7, 8], amount=[20, 30])
    worker = process.start()
    until(lambda: totals(process.root) == {7: (1, 20), 8: (1, 30)})
    write("orders", id=[3], customer=[7], amount=[40])
    until(lambda: totals(process.root) == {7: (2, 60), 8: (1, 30)})
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(_WAIT) == 0
    said = Beats(str(process.root)).newest()
    assert said is not None
    assert said.ended
    kinds = [event.get("event") for event in process.events()]
    assert kinds[0] == "works"
    assert kinds.count("refreshed") == 4
    assert kinds[-1] == "stops"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_kills_at_random_moments_leave_nothing_wrong(process: Process, write: Write) -> None:
    """A new worker goes on where the killed one stopped, and no row is there twice or missing."""
    randomly = random.Random(27)
    wanted: dict[int, tuple[int, int]] = {}
    number = 0

    def commit() -> None:
        nonlocal number
        number += 1
        customer, amount = number % 5, 11 + number
        write("orders", id=[number], customer=[customer], amount=[amount])
        count, total = wanted.get(customer, (0, 0))
        wanted[customer] = count + 1, total + amount

    commit()
    worker = process.start()
    until(lambda: totals(process.root) == wanted)
    for kill in range(20):
        for _ in range(randomly.randint(1, 4)):
            commit()
            time.sleep(randomly.random())
        if kill % 4 == 3:
            server = server_status()
            if server is not None:
                psutil.Process(server.pid).kill()
        else:
            worker.kill()
            worker.wait()
            worker = process.start()
        if kill % 3 == 0:
            until(lambda: totals(process.root) == wanted)
    until(lambda: totals(process.root) == wanted)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(_WAIT) == 0
    stop_server()
