"""A worker as a process: it ends when asked, and when it is killed at any moment nothing is wrong.

The long test kills the worker, the Spark server and Dagster's daemon, and locks Dagster's
database, each at random moments, while commits go on. In the end the worker stays dead, and the
sensor takes over.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest
from deltalake import DeltaTable

from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.observe.lease import Heartbeats
from dagster_streamtables.runtime.spark.local_server import server_status
from worker.conftest import Write

pytestmark = pytest.mark.process

CHAIN = {
    "paid": "SELECT id, customer, amount FROM orders WHERE amount > 10",
    "totals": "-- schedule: on change\n"
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM paid GROUP BY customer",
}
DEFINITIONS = """
from dagster_streamtables import StreamTablesResource, build_definitions

defs = build_definitions(
    folder={tables!r}, resource=StreamTablesResource(root={root!r}), min_schedule_seconds=0
)
"""
_KILLS = 25
_LOCKED = 30
"""Seconds for which Dagster's database is locked."""
_STILL = 300
"""Seconds without any progress after which it will not come: a loaded machine is only slow."""


class Process:
    """Workers of one code location, started as a shell would start them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.tables, self.home = (folder / n for n in ("lake", "tables", "dagster"))
        self.tables.mkdir()
        self.home.mkdir()
        (self.home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        for name, query in CHAIN.items():
            (self.tables / f"{name}.sql").write_text(query)
        self.file = folder / "definitions.py"
        declared = DEFINITIONS.format(tables=str(self.tables), root=str(self.root))
        self.file.write_text(declared)
        self.log = folder / "worker.log"
        self.running: subprocess.Popen[bytes] | None = None
        self.daemon: psutil.Popen | None = None

    def start_daemon(self) -> None:
        """Dagster's daemon, whose sensor refreshes what no worker does."""
        command = [sys.executable, "-m", "dagster._daemon", "run", "-f", str(self.file)]
        environment = {**os.environ, "DAGSTER_HOME": str(self.home)}
        with (self.home / "daemon.log").open("ab") as log:
            self.daemon = psutil.Popen(command, stdout=log, stderr=log, env=environment)

    def kill_daemon(self) -> None:
        """With the code server and the runs that it has started."""
        if self.daemon is not None:
            family = [*self.daemon.children(recursive=True), self.daemon]
            for each in family:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            psutil.wait_procs(family, timeout=60)
            self.daemon = None

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dagster_streamtables.cli", "worker"]
        command += ["-f", str(self.file), "--log-format", "json", "--heartbeat", "1"]
        environment = {**os.environ, "DAGSTER_HOME": str(self.home)}
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(command, stderr=log, env=environment)
        return self.running

    def kill(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.running.wait()
            self.running = None

    def events(self) -> list[dict[str, Any]]:
        """What it logged; the last line of a killed worker may be a part of one."""
        found: list[dict[str, Any]] = []
        for line in self.log.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def begun(self) -> int:
        return sum(each.get("event") == "works" for each in self.events())

    def progress(self) -> tuple[int, ...]:
        """Grows as long as anything happens but heartbeats."""
        lake = Lake(self.root)
        versions = [lake.version(name) for name in CHAIN]
        return (*(-1 if v is None else v for v in versions), self.log.stat().st_size)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait as long as there is progress."""
        seen, since = self.progress(), time.monotonic()
        while not holds():
            if (now := self.progress()) != seen:
                seen, since = now, time.monotonic()
            assert time.monotonic() - since < _STILL, self.log.read_text()[-3000:]
            assert self.running is None or self.running.poll() is None, "the worker ended by itself"
            time.sleep(0.2)

    def ended_well(self) -> None:
        assert self.running is not None
        self.running.send_signal(signal.SIGTERM)
        running = self.running
        self.running = None
        self.until(lambda: running.poll() is not None)
        assert running.returncode == 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody can write to Dagster's event log."""
        database = self.home / "history" / "runs" / "index.db"
        with closing(sqlite3.connect(database, timeout=_STILL, isolation_level=None)) as held:
            held.execute("BEGIN EXCLUSIVE")
            yield
            held.execute("ROLLBACK")

    def reported(self, name: str) -> int | None:
        """The version of a table that Dagster was told of last."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            event = instance.get_latest_materialization_event(dg.AssetKey(name))
        made = event.asset_materialization if event is not None else None
        found = made.metadata.get(metadata.VERSION) if made is not None else None
        return found.value if isinstance(found, dg.IntMetadataValue) else None


def last_refresh(root: Path, name: str) -> int:
    """The version of a table's last refresh: small files may have been compacted since."""
    history = DeltaTable(Lake(root).location(name)).history()
    return max(each["version"] for each in history if "userMetadata" in each)


@pytest.fixture
def process(tmp_path: Path, own_home: Path) -> Iterator[Process]:
    """With a Spark server of its own, which may be killed."""
    made = Process(tmp_path)
    yield made
    made.kill()
    made.kill_daemon()


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
    process.start()
    process.until(lambda: totals(process.root) == {7: (1, 20), 8: (1, 30)})
    write("orders", id=[3], customer=[7], amount=[40])
    process.until(lambda: totals(process.root) == {7: (2, 60), 8: (1, 30)})
    process.ended_well()
    said = Heartbeats(str(process.root)).newest()
    assert said is not None
    assert said.ended
    assert process.reported("totals") == Lake(process.root).version("totals")
    kinds = [event.get("event") for event in process.events()]
    assert kinds[0] == "works"
    assert kinds.count("refreshed") == 4
    assert kinds[-1] == "stops"


class Orders:
    """Commits to the source, and what follows from them."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self.wanted: dict[int, tuple[int, int]] = {}
        self._number = 0

    def commit(self) -> None:
        self._number += 1
        customer, amount = self._number % 5, 11 + self._number
        self._write("orders", id=[self._number], customer=[customer], amount=[amount])
        count, total = self.wanted.get(customer, (0, 0))
        self.wanted[customer] = count + 1, total + amount


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", [27, 28])
def test_kills_at_random_moments_leave_nothing_wrong(
    process: Process, write: Write, seed: int
) -> None:
    """A new worker goes on where the killed one stopped, and no row is there twice or missing."""
    randomly, orders = random.Random(seed), Orders(write)

    def caught_up() -> bool:
        return totals(process.root) == orders.wanted

    def kill_worker() -> None:
        process.kill()
        process.start()

    def kill_spark() -> None:
        server = server_status()
        if server is not None:
            psutil.Process(server.pid).kill()

    def kill_daemon() -> None:
        process.kill_daemon()
        process.start_daemon()

    def lock() -> None:
        """Refreshes go on meanwhile; Dagster gives up waiting before the database is free."""
        with process.locked():
            free = time.monotonic() + _LOCKED
            orders.commit()
            process.until(caught_up)
            time.sleep(max(0, free - time.monotonic()))

    orders.commit()
    process.start()
    process.start_daemon()
    process.until(caught_up)
    for number in range(_KILLS):
        for _ in range(randomly.randint(1, 4)):
            orders.commit()
            time.sleep(randomly.random())
        (kill_worker, kill_spark, kill_daemon, kill_worker, lock)[number % 5]()
        if number % 3 == 0:
            process.until(caught_up)
    process.until(caught_up)
    process.kill_daemon()
    process.ended_well()
    for name in CHAIN:
        assert process.reported(name) == last_refresh(process.root, name)
    begun = process.begun()
    process.start()
    process.until(lambda: process.begun() > begun)
    process.start_daemon()
    process.kill()
    orders.commit()
    process.until(caught_up)
