"""Processes that refresh, each by threads that share one `Lake`."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.errors import ConflictingCommit
from qa.races.lake import TABLES

_BUSY, _IDLE = 0.02, 0.5
"""Seconds. Threads that ask all the time for what is not there leave Spark no processor."""
_processes = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Refreshers:
    """Threads of one process."""

    root: str
    threads: int
    seed: int
    driver_rows: int | None = None
    """0 makes Spark write."""
    home: str = ""
    """Of the Spark server that the process uses; where empty, that of this one."""

    def started(self, stop: Any, problems: Any) -> Any:
        process = _processes.Process(target=_work, args=(self, stop, problems), daemon=True)
        process.start()
        return process

    def work(self, lake: Lake, stop: Any, problems: Any) -> list[threading.Thread]:
        """Start them here, over a lake that is shared."""
        threads = [
            threading.Thread(target=self._loop, args=(lake, number, stop, problems), daemon=True)
            for number in range(self.threads)
        ]
        for thread in threads:
            thread.start()
        return threads

    def _loop(self, lake: Lake, number: int, stop: Any, problems: Any) -> None:
        random = Random(f"{self.seed}:{number}")
        while not stop.is_set():
            table, pause = _chosen(random), _IDLE
            try:
                pause = _IDLE if lake.refresh(table).action is Action.NO_DATA else _BUSY
            except ConflictingCommit:  # another one was first
                pause = _BUSY
            except Exception as error:
                if not _waits(error):
                    problems.put(f"{table.name}: {traceback.format_exc(limit=-3)}")
            time.sleep(random.random() * pause)


def _chosen(random: Random) -> StreamTable:
    """Mostly any table; else the one that all threads refresh in this second, and one commits."""
    if random.random() < 0.8:
        return random.choice(TABLES)
    return TABLES[int(time.time()) % len(TABLES)]


def _waits(error: Exception) -> bool:
    """Whether a table is read that nobody has made yet."""
    return "there is no Delta table" in str(error) or type(error).__name__ == "MissingSource"


def _work(refreshers: Refreshers, stop: Any, problems: Any) -> None:
    if refreshers.home:
        os.environ["STREAMTABLES_HOME"] = refreshers.home
    lake = Lake(Path(refreshers.root), driver_rows=refreshers.driver_rows)
    for thread in refreshers.work(lake, stop, problems):
        thread.join()
