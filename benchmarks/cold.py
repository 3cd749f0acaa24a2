"""From nothing to the first row: no Spark server runs, and nothing is in the memory of one.

    python -m benchmarks.cold [--rows 10000] [--runs 3] [--no-windows]

`streamtables refresh`, and `streamtables worker`, of one table that joins and sums, each in a new
process and in a folder of Spark's own: without a class archive, and with one. Then the first and
the third window of each query on a fresh server, after nothing, and after the rehearsal of a
worker. Processor time is that of all processes, and so comparable where others work beside.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import typer
from rich.table import Table

from benchmarks.orders import Orders
from benchmarks.results import CONSOLE
from benchmarks.shapes import SHAPES
from benchmarks.ways import Streamed
from dagster_streamtables import Lake, Mode
from dagster_streamtables.runtime.rehearsal import rehearse
from dagster_streamtables.runtime.spark import class_dump
from dagster_streamtables.runtime.spark.environment import home
from dagster_streamtables.runtime.spark.jars import delta_jars
from dagster_streamtables.runtime.spark.local_server import (
    ensure_server,
    server_status,
    stop_server,
)
from dagster_streamtables.runtime.spark.session import open_session

_QUERY = SHAPES[-1].query
_POLL = 0.02


@dataclass
class Start:
    """One start, in seconds since the command was begun."""

    answers: float
    """When the server answered."""
    row: float
    """When the first row was committed."""
    client: float
    """Processor time of the command until then."""
    spark: float
    """Processor time of the server until then."""


@dataclass
class Cold:
    """A folder of Spark's own, a lake, and a folder of one `.sql` file."""

    folder: Path
    rows: int
    table: Table = field(init=False)

    def __post_init__(self) -> None:
        fetched = delta_jars()[0].parent.parent
        os.environ["STREAMTABLES_HOME"] = str(self.folder / "home")
        (home() / "jars").symlink_to(fetched)
        self.lake, self.log = Lake(self.folder / "lake"), self.folder / "lake/out/t/_delta_log"
        self.orders = Orders(
            self.lake.location("orders"), self.lake.location("customers"), self.rows
        )
        (self.folder / "tables/out").mkdir(parents=True)
        (self.folder / "tables/out/t.sql").write_text(f"-- schedule: 1m\n{_QUERY}\n")
        self.table = Table("", "answers s", "first row s", "CPU command s", "CPU Spark s", "load")

    def measure(self, title: str, runs: int) -> None:
        for command in ("refresh", "worker"):
            found = [self._start(command) for _ in range(runs)]
            cells = (
                statistics.median(getattr(each, name) for each in found)
                for name in ("answers", "row", "client", "spark")
            )
            load = psutil.getloadavg()[0]
            self.table.add_row(f"{command}, {title}", *(f"{x:.1f}" for x in cells), f"{load:.1f}")
            CONSOLE.print(f"{command}, {title}: {found}")

    def make_archive(self) -> None:
        """What the supervisor does after a minute."""
        ensure_server()
        rehearse()
        begin = time.perf_counter()
        classes = next((home() / "classes").glob("*.classlist"))
        status = server_status()
        assert status is not None
        archive = classes.with_suffix(".jsa")
        assert class_dump.make(classes, archive, psutil.Process(status.pid))
        size, took = archive.stat().st_size / 2**20, time.perf_counter() - begin
        CONSOLE.print(f"the archive has {size:.0f} MB, and took {took:.0f} s")
        stop_server()

    def _start(self, command: str) -> Start:
        shutil.rmtree(self.folder / "lake/out", ignore_errors=True)
        begin = time.time()
        what = [sys.executable, "-m", "dagster_streamtables.cli", command]
        what += ["--root", self.lake.root, "--tables", str(self.folder / "tables")]
        process = psutil.Popen(what, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        answers = self._until(lambda: _answers(), process) - begin
        row = self._until(lambda: any(self.log.glob("*.json")), process) - begin
        status = server_status()
        assert status is not None
        found = Start(answers, row, _spent(process), _spent(psutil.Process(status.pid)))
        process.send_signal(signal.SIGTERM)
        process.wait()
        stop_server()
        return found

    def _until(self, happens: Callable[[], bool], process: psutil.Popen) -> float:
        while not happens():
            if process.poll() is not None:
                raise SystemExit(f"the command ended with {process.returncode}")
            time.sleep(_POLL)
        return time.time()


def main(rows: int = 10_000, runs: int = 3, windows: bool = True) -> None:
    """Measure, and print the tables."""
    with tempfile.TemporaryDirectory(prefix="streamtables-bench-") as name:
        folder = Path(name)
        try:
            cold = Cold(folder, rows)
            cold.measure("no class archive", runs)
            shown = Table("first window s (CPU s)", *(shape.name for shape in SHAPES))
            if windows:
                shown.add_row("no class archive", *_windows(folder / "plain", rows))
            cold.make_archive()
            cold.measure("class archive", runs)
            if windows:
                shown.add_row("class archive", *_windows(folder / "archived", rows))
                shown.add_row("rehearsed", *_windows(folder / "warm", rows, rehearsed=True))
        finally:
            stop_server()
    CONSOLE.print(cold.table)
    CONSOLE.print(shown)


def _windows(folder: Path, rows: int, *, rehearsed: bool = False) -> list[str]:
    """The first window of each query, and in parentheses its processor time."""
    lake = Lake(folder)
    orders = Orders(lake.location("orders"), lake.location("customers"), rows)
    way, cells = Streamed(lake, Mode.DIFFERENTIAL), list[str]()
    for shape in SHAPES:
        way.create(shape)
    for shape in SHAPES:
        stop_server()
        open_session().sql("SELECT 1").collect()
        if rehearsed:
            rehearse()
        orders.change(10, scattered=False)
        status = server_status()
        assert status is not None
        both = [psutil.Process(), psutil.Process(status.pid)]
        spent, begin = sum(map(_spent, both)), time.perf_counter()
        way.refresh(shape, orders.version)
        took = time.perf_counter() - begin
        cells.append(f"{took:.2f} ({sum(map(_spent, both)) - spent:.2f})")
    return cells


def _answers() -> bool:
    from dagster_streamtables.runtime.spark.supervisor import read_state

    state = read_state(home())
    return state is not None and state.answers


def _spent(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return spent.user + spent.system


if __name__ == "__main__":
    typer.run(main)
