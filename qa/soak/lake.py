"""The example graph refreshed for as long as you like: does anything grow, does anything drift?

    python -m qa.soak.lake --minutes 60

Plays the sources hour by hour, refreshes every stream table after each, and writes down once a
minute what a process that never ends would die of: memory of Python and of Spark, files and log
entries of the stream tables, seconds of a round. Compares every table with plain Spark every tenth
minute and at the end; ends with 1 if one differs.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import psutil
import typer
from deltalake import DeltaTable
from rich.console import Console

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.declare.sql_files import load_tables
from dagster_streamtables.runtime.spark.local_server import server_status
from example_defs.dataset import START
from example_defs.headless import FOLDER, in_order
from example_defs.replay import Replay
from qa.soak.samples import show, show_names, summary

STEP = timedelta(hours=1)
SAMPLE, CHECK = 60.0, 600.0


@dataclass(frozen=True)
class Sample:
    """The state of things after some minutes. Memory is in MB."""

    minute: float
    rounds: int
    seconds: float
    """Of a round, the median since the last sample."""
    python: float
    spark: float
    """As the operating system counts it: with a heap of fixed size it grows to that, and stays."""
    live: float | None
    """Objects that Spark's JVM still uses, after a collection; None without a JDK's jcmd."""
    files: int
    """Of all stream tables."""
    largest: int
    """Files of the stream table that has most."""
    entries: int
    """Commits in the logs of all stream tables."""
    since_checkpoint: int
    """Commits that a reader must read one by one, at most."""


class Soak:
    """A lake under one root, its sources played, its stream tables refreshed."""

    def __init__(self, root: Path, console: Console) -> None:
        self.lake, self.console = Lake(str(root)), console
        self.replay = Replay(root, step=STEP)
        self.tables = in_order(load_tables(FOLDER))
        self.samples: list[Sample] = []
        self.different: list[str] = []

    def run(self, seconds: float) -> None:
        clock, began = START + timedelta(days=1), time.monotonic()
        lasted: list[float] = []
        rounds, sampled, checked = 0, began, began
        while time.monotonic() - began < seconds:
            clock += STEP
            self.replay.advance(clock)
            lasted.append(self._round())
            rounds += 1
            now = time.monotonic()
            if now - sampled >= SAMPLE:
                self._sample((now - began) / 60, rounds, statistics.median(lasted))
                sampled, lasted = now, []
            if now - checked >= CHECK:
                self.check()
                checked = time.monotonic()
        self.check()

    def _round(self) -> float:
        began = time.monotonic()
        for table in self.tables:
            self.lake.refresh(table)
        return time.monotonic() - began

    def check(self) -> None:
        self.different += [t.name for t in self.tables if not self.lake.check(t).equal]

    def _sample(self, minute: float, rounds: int, seconds: float) -> None:
        server = server_status()
        stored = [_stored(self.lake, table) for table in self.tables]
        files = [count for count, _, _ in stored]
        sample = Sample(
            minute=minute,
            rounds=rounds,
            seconds=seconds,
            python=psutil.Process().memory_info().rss / 2**20,
            spark=server.memory_bytes / 2**20 if server else 0,
            live=_live(server.pid) if server else None,
            files=sum(files),
            largest=max(files),
            entries=sum(entries for _, entries, _ in stored),
            since_checkpoint=max(since for _, _, since in stored),
        )
        self.samples.append(sample)
        show(sample, self.console)


def _stored(lake: Lake, table: StreamTable) -> tuple[int, int, int]:
    place = lake.location(table.name)
    log = Path(place) / "_delta_log"
    entries = len(list(log.glob("*.json")))
    checkpoints = [int(path.name[:20]) for path in log.glob("*.checkpoint*.parquet")]
    newest = DeltaTable(place)
    return len(newest.file_uris()), entries, newest.version() - max(checkpoints, default=-1)


def _live(pid: int) -> float | None:
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        return None
    said = subprocess.run([jcmd, str(pid), "GC.class_histogram"], capture_output=True, text=True)
    total = re.search(r"^Total\s+\d+\s+(\d+)", said.stdout, re.MULTILINE)
    return int(total.group(1)) / 2**20 if total else None


def main(minutes: Annotated[float, typer.Option(help="How long.")] = 60) -> None:
    """Refreshes the example graph, and shows what grows."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="streamtables-") as folder:
        soak = Soak(Path(folder), console)
        show_names(Sample, console)
        soak.run(minutes * 60)
    console.print(summary(Sample, soak.samples))
    if soak.different:
        console.print(f"[red]differ: {', '.join(sorted(set(soak.different)))}[/]")
        raise typer.Exit(1)
    console.print(f"{len(soak.tables)} tables equal their recomputation")


if __name__ == "__main__":
    typer.run(main)
