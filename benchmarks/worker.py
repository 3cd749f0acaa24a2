"""How soon a commit to a source is visible in the last of three stream tables, with a worker.

    python -m benchmarks.worker [--seconds 30] [--rates 1,10,100] [--schedules "1s,10s,on change"]
        [--drivers worker,sensor] [--publisher lake]

A worker, or `dagster dev` with its sensor and runs, drives a folder of `.sql` files. A source gets
so many commits a second, of ten rows each. The chain filters them, joins them with customers, and
sums them by region. For each commit, the time is taken from its file in the log of the source to
the file of the first version of the last table that reflects it, through the versions of the two
between; and to the rows of that version in a process that follows the last table. With
`--publisher postgres` the source is replicated, and the time is taken from the answer to the commit
in PostgreSQL.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import psutil
import typer
from rich.table import Table

from benchmarks.chain import Chain, ReplicatedChain
from benchmarks.drivers import WORKER, start
from benchmarks.postgres import started
from benchmarks.results import CONSOLE


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


def main(
    seconds: float = 30.0,
    rates: str = "1,10,100",
    schedules: str = "1s,10s,on change",
    drivers: str = WORKER,
    publisher: str = "lake",
) -> None:
    """Measure, and print the table."""
    measured: list[Measured] = []
    for driver, schedule in product(drivers.split(","), schedules.split(",")):
        for rate in map(float, rates.split(",")):
            with ExitStack() as stack:
                chain = _chain(stack, publisher)
                found = _measure(chain, driver, schedule.strip(), rate, seconds)
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


def _chain(stack: ExitStack, publisher: str) -> Chain:
    name = stack.enter_context(tempfile.TemporaryDirectory(prefix="streamtables-bench-"))
    if publisher == "lake":
        return Chain(Path(name))
    return ReplicatedChain(Path(name), stack.enter_context(started(Path(name))))


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
