"""What tests run in processes of their own, to kill them or to let them race."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.errors import ConflictingCommit

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["dagster_streamtables.runtime.lake", "pyspark.sql.connect"])


@dataclass(frozen=True)
class Refresher:
    """A process that refreshes a stream table."""

    root: str
    driver_rows: int
    """0 makes Spark write, a large number delta-rs."""
    table: StreamTable

    def in_a_loop(self) -> Any:
        """Start it; it goes on until it is killed. Returns once it is at work."""
        begun = _processes.Event()
        process = _processes.Process(target=_without_end, args=(self, begun), daemon=True)
        process.start()
        assert begun.wait(120)
        return process

    def times(self, count: int) -> Any:
        """Start it; it ends after a number of refreshes."""
        process = _processes.Process(target=_times, args=(self, count), daemon=True)
        process.start()
        return process


def killed(process: Any, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def _without_end(about: Refresher, begun: Any) -> None:
    lake = Lake(about.root, driver_rows=about.driver_rows)
    lake.read(about.table.name).limit(1).collect()  # Spark's first answer takes a second
    begun.set()
    while True:
        _refresh(lake, about.table)


def _times(about: Refresher, count: int) -> None:
    lake = Lake(about.root, driver_rows=about.driver_rows)
    for _ in range(count):
        _refresh(lake, about.table)


def _refresh(lake: Lake, table: StreamTable) -> None:
    with contextlib.suppress(ConflictingCommit):  # a writer, or another refresher, was first
        lake.refresh(table)
