"""Processes that record failures of one table, as slowly or as often as a test needs."""

from __future__ import annotations

import multiprocessing
import time
from contextlib import suppress
from pathlib import Path

from dagster_streamtables.errors import FailedQuery
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.controls import Controls

TABLE = StreamTable("mart.shares", "SELECT id FROM customers", max_consecutive_errors=0)
EACH = 10
"""Number of failures of a process that fails often."""

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["dagster_streamtables.runtime.observe.controls"])


class SlowError(Exception):
    """Its message is asked for after the control was read, and before it is written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        (self._folder / "read").touch()
        wait_for(self._folder / "go")
        return "slow"


def wait_for(file: Path) -> None:
    for _ in range(12_000):
        if file.exists():
            return
        time.sleep(0.01)
    raise AssertionError(f"no {file} after two minutes")


def fail_slowly(root: str, folder: Path) -> None:
    with suppress(SlowError), Controls(root).watching(TABLE):
        raise SlowError(folder)


def fail_often(root: str, start: Path, name: str) -> None:
    """Fail again and again, and suspend a table of the process's own."""
    controls = Controls(root)
    wait_for(start)
    for _ in range(EACH):
        with suppress(FailedQuery), controls.watching(TABLE):
            raise FailedQuery(f"the query of {name} fails")
    controls.suspend(f"mart.{name}", "for a while")
