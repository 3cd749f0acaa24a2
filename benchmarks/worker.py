"""How soon a commit to a source is visible in the last of three stream tables, with a worker.

    python -m benchmarks.worker [--seconds 30] [--rates 1,10,100] [--schedules "1s,10s,on change"]

A worker runs as a process of its own, over a folder of `.sql` files. A source gets so many commits
a second, of ten rows each. The chain filters them, joins them with customers, and sums them by
region. For each commit, the time is taken from its file in the log of the source to the file of the
first version of the last table that reflects it, through the versions of the two between.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import typer
from deltalake import write_deltalake
from rich.table import Table

from benchmarks.results import CONSOLE
from dagster_streamtables import Lake
from dagster_streamtables.runtime.model.state import State
from dagster_streamtables.runtime.spark.server import server_status

_CHAIN = {
    "paid": "SELECT id, customer, amount FROM orders WHERE amount > 10",
    "placed": "SELECT p.id, c.region, p.amount FROM paid AS p JOIN customers AS c "
    "ON p.customer = c.id",
    "by_region": "SELECT region, count(*) AS orders, sum(amount) AS total FROM placed "
    "GROUP BY region",
}
_CUSTOMERS = 1000


@dataclass(frozen=True)
class Measured:
    """The ages of the commits of one combination, in seconds."""

    schedule: str
    rate: float
    ages: list[float]
    cores: float
    """Cores that the worker and Spark were busy with."""
    load: float

    @property
    def cells(self) -> tuple[str, ...]:
        ordered = sorted(self.ages)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        return (
            self.schedule, f"{self.rate:g}", str(len(ordered)), f"{statistics.median(ordered):.2f}",
            f"{p95:.2f}", f"{ordered[-1]:.2f}", f"{self.cores:.1f}", f"{self.load:.1f}",
        )  # fmt: skip


class Chain:
    """A source, three stream tables over it, and the worker that refreshes them."""

    def __init__(self, folder: Path) -> None:
        self.tables, self.root = folder / "tables", folder / "lake"
        self.tables.mkdir()
        self.root.mkdir()
        self.lake = Lake(self.root)
        ids = range(_CUSTOMERS)
        customers = pa.table({"id": [*ids], "region": [f"r{each % 20}" for each in ids]})
        write_deltalake(self.lake.location("customers"), customers)
        self.commits = 0
        self.commit()
        self.log = (folder / "worker.log").open("w")

    def declare(self, schedule: str) -> None:
        for name, query in _CHAIN.items():
            own = schedule if name == "by_region" else "CALCULATED"
            (self.tables / f"{name}.sql").write_text(f"-- schedule: {own}\n{query}\n")

    def start(self) -> psutil.Process:
        command = [sys.executable, "-m", "dagster_streamtables.cli", "worker"]
        command += ["--root", str(self.root), "--tables", str(self.tables)]
        started = subprocess.Popen(command, stderr=self.log, env=os.environ.copy())
        return psutil.Process(started.pid)

    def commit(self) -> None:
        """Ten rows more, in one commit."""
        begin = self.commits * 10
        ids = range(begin, begin + 10)
        rows = {
            "id": [*ids],
            "customer": [(each * 7919) % _CUSTOMERS for each in ids],
            "amount": [each % 100 for each in ids],
        }
        write_deltalake(self.lake.location("orders"), pa.table(rows), mode="append")
        self.commits += 1

    def reflected(self) -> int:
        """The newest version of the source that the last table reflects; -1 for none."""
        seen = self._frontiers("by_region")
        return max((self._source_of(version) for version, _ in seen[-1:]), default=-1)

    def visible(self) -> dict[int, float]:
        """For each version of the source, when the last table reflected it first."""
        found: dict[int, float] = {}
        reached = -1
        for version, at in self._frontiers("by_region"):
            for source in range(reached + 1, self._source_of(version) + 1):
                found[source] = at
            reached = max(reached, self._source_of(version))
        return found

    def written(self) -> dict[int, float]:
        """When each version of the source was written."""
        return {version: path.stat().st_mtime for version, path in self._commits("orders")}

    def _source_of(self, version: int) -> int:
        placed = self._frontier("by_region", version)["placed"]
        paid = self._frontier("placed", placed)["paid"]
        return self._frontier("paid", paid)["orders"]

    def _frontiers(self, name: str) -> list[tuple[int, float]]:
        return [(version, path.stat().st_mtime) for version, path in self._commits(name)]

    def _frontier(self, name: str, version: int) -> dict[str, int]:
        for older in range(version, -1, -1):  # an upkeep commit has no state of its own
            path = dict(self._commits(name)).get(older)
            state = None if path is None else _state(path)
            if state is not None:
                return state.frontier
        return {"orders": -1, "paid": 0, "placed": 0}

    def _commits(self, name: str) -> Iterator[tuple[int, Path]]:
        log = Path(self.lake.location(name)) / "_delta_log"
        for path in sorted(log.glob("*.json")):
            if path.stem.isdigit():
                yield int(path.stem), path


def _state(path: Path) -> State | None:
    for line in path.read_text().splitlines():
        info = json.loads(line).get("commitInfo")
        if info is not None:
            return State.from_json(info.get("userMetadata") or "")
    return None


def main(
    seconds: float = 30.0, rates: str = "1,10,100", schedules: str = "1s,10s,on change"
) -> None:
    """Measure, and print the table."""
    measured: list[Measured] = []
    for schedule in schedules.split(","):
        for rate in map(float, rates.split(",")):
            with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
                found = _measure(Chain(Path(folder)), schedule.strip(), rate, seconds)
            CONSOLE.print(*found.cells)
            measured.append(found)
    columns = ("schedule", "commits/s", "commits", "p50 s", "p95 s", "max s", "cores", "load")
    shown = Table(*columns, title="Commit to a source → visible in the last of three stream tables")
    for each in measured:
        shown.add_row(*each.cells)
    CONSOLE.print(shown)


def _measure(chain: Chain, schedule: str, rate: float, seconds: float) -> Measured:
    chain.declare(schedule)
    worker = chain.start()
    try:
        _warm(chain)
        first = chain.commits
        busy, began = _busy(worker), time.monotonic()
        _commit_steadily(chain, rate, seconds)
        lasted = time.monotonic() - began
        cores = (_busy(worker) - busy) / lasted
        load = psutil.getloadavg()[0]
        _until(chain, chain.commits - 1)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait()
    written, visible = chain.written(), chain.visible()
    ages = [visible[version] - written[version] for version in range(first, chain.commits)]
    return Measured(schedule, rate, ages, cores, load)


def _warm(chain: Chain) -> None:
    for _ in range(8):
        _until(chain, chain.commits - 1)
        chain.commit()
    _until(chain, chain.commits - 1)


def _until(chain: Chain, version: int) -> None:
    end = time.monotonic() + 300
    while chain.reflected() < version:
        if time.monotonic() > end:
            raise SystemExit(f"version {version} is not reflected after five minutes")
        time.sleep(0.2)


def _commit_steadily(chain: Chain, rate: float, seconds: float) -> None:
    began = time.monotonic()
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        chain.commit()
        if time.monotonic() > began + 2 * seconds:  # the machine does not keep up
            return


def _busy(worker: psutil.Process) -> float:
    """Seconds of processor time of the worker and of the local Spark server."""
    spark = server_status()
    total = 0.0
    for process in [worker, *([psutil.Process(spark.pid)] if spark is not None else [])]:
        with contextlib.suppress(psutil.Error):
            spent = process.cpu_times()
            total += spent.user + spent.system
    return total


if __name__ == "__main__":
    typer.run(main)
