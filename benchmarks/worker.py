"""How soon a commit to a source is visible in the last of three stream tables, with a worker.

    python -m benchmarks.worker [--seconds 30] [--rates 1,10,100] [--schedules "1s,10s,on change"]
        [--drivers worker,sensor]

A worker, or `dagster dev` with its sensor and runs, drives a folder of `.sql` files. A source gets
so many commits a second, of ten rows each. The chain filters them, joins them with customers, and
sums them by region. For each commit, the time is taken from its file in the log of the source to
the file of the first version of the last table that reflects it, through the versions of the two
between; and to the rows of that version in a process that follows the last table.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import psutil
import pyarrow as pa
import typer
from deltalake import write_deltalake
from rich.table import Table

from benchmarks.drivers import WORKER, start
from benchmarks.results import CONSOLE
from dagster_streamtables import Lake
from dagster_streamtables.runtime.model.state import State

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
    driver: str
    ages: list[float]
    followed: list[float]
    """The same to the follower's rows."""
    cores: float
    """Cores that the worker and Spark were busy with."""
    load: float

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.driver, self.schedule, f"{self.rate:g}", str(len(self.ages)),
            *(f"{of:.2f}" for of in quantiles(self.ages)),
            *(f"{of:.2f}" for of in quantiles(self.followed)[:2]),
            f"{self.cores:.1f}", f"{self.load:.1f}",
        )  # fmt: skip


def quantiles(ages: list[float]) -> tuple[float, float, float]:
    """The median, what 95 of 100 do not exceed, and the most."""
    ordered = sorted(ages)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return statistics.median(ordered), p95, ordered[-1]


class Chain:
    """A source, three stream tables over it, and the worker that refreshes them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tables, self.root = folder, folder / "tables", folder / "lake"
        self.tables.mkdir()
        self.root.mkdir()
        self.lake = Lake(self.root)
        ids = range(_CUSTOMERS)
        customers = pa.table({"id": [*ids], "region": [f"r{each % 20}" for each in ids]})
        write_deltalake(self.lake.location("customers"), customers)
        self.commits = 0
        self.commit()

    def declare(self, schedule: str) -> None:
        for name, query in _CHAIN.items():
            own = schedule if name == "by_region" else "CALCULATED"
            (self.tables / f"{name}.sql").write_text(f"-- schedule: {own}\n{query}\n")

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

    def followed(self, said: str) -> dict[int, float]:
        """For each version of the source, when the follower had it.

        Args:
            said: What the follower has printed.
        """
        found: dict[int, float] = {}
        reached = -1
        for line in said.splitlines():
            version, at = line.split()
            now = self._source_of(int(version))
            for source in range(reached + 1, now + 1):
                found[source] = float(at)
            reached = max(reached, now)
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
    seconds: float = 30.0,
    rates: str = "1,10,100",
    schedules: str = "1s,10s,on change",
    drivers: str = WORKER,
) -> None:
    """Measure, and print the table."""
    measured: list[Measured] = []
    for driver, schedule in product(drivers.split(","), schedules.split(",")):
        for rate in map(float, rates.split(",")):
            with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as folder:
                found = _measure(Chain(Path(folder)), driver, schedule.strip(), rate, seconds)
            CONSOLE.print(*found.cells)
            measured.append(found)
    columns = (
        "driver", "schedule", "commits/s", "commits", "p50 s", "p95 s", "max s", "follower p50 s",
        "p95 s", "cores", "load",
    )  # fmt: skip
    shown = Table(*columns, title="Commit to a source → visible in the last of three stream tables")
    for each in measured:
        shown.add_row(*each.cells)
    CONSOLE.print(shown)


def _measure(chain: Chain, kind: str, schedule: str, rate: float, seconds: float) -> Measured:
    chain.declare(schedule)
    driver = start(kind, chain.folder, chain.tables, chain.root)
    follower: subprocess.Popen[str] | None = None
    try:
        _warm(chain, 8 if kind == WORKER else 2)
        follower = _follower(chain)
        chain.commit()
        _until(chain, chain.commits - 1)
        first = chain.commits
        busy, began = driver.busy(), time.monotonic()
        _commit_steadily(chain, rate, seconds)
        lasted = time.monotonic() - began
        cores = (driver.busy() - busy) / lasted
        load = psutil.getloadavg()[0]
        _until(chain, chain.commits - 1)
        time.sleep(2)  # the follower's last rows
    finally:
        if follower is not None:
            follower.terminate()
        driver.stop()
    assert follower is not None
    said = follower.communicate()[0]
    written, visible, followed = chain.written(), chain.visible(), chain.followed(said)
    versions = range(first, chain.commits)
    ages = [visible[version] - written[version] for version in versions]
    reached = [followed[version] - written[version] for version in versions if version in followed]
    return Measured(schedule, rate, kind, ages, reached, cores, load)


def _follower(chain: Chain) -> subprocess.Popen[str]:
    """Follows the last table; it has its position when this returns."""
    command = [sys.executable, "-m", "benchmarks.follower", str(chain.root), "by_region"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    time.sleep(10)  # of which nothing is measured: the next commit is followed
    return started


def _warm(chain: Chain, times: int) -> None:
    for _ in range(times):
        _until(chain, chain.commits - 1)
        chain.commit()
    _until(chain, chain.commits - 1)


def _until(chain: Chain, version: int) -> None:
    end = time.monotonic() + 600
    while chain.reflected() < version:
        if time.monotonic() > end:
            raise SystemExit(f"version {version} is not reflected after ten minutes")
        time.sleep(0.2)


def _commit_steadily(chain: Chain, rate: float, seconds: float) -> None:
    began = time.monotonic()
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        chain.commit()
        if time.monotonic() > began + 2 * seconds:  # the machine does not keep up
            return


if __name__ == "__main__":
    typer.run(main)
