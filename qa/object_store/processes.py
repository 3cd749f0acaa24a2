"""The processes of writers: started, told, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from qa.object_store.jobs import Job, end_file, ready_file
from qa.object_store.spark import LogStore

_ROOT = Path(__file__).parents[2]


@dataclass
class Process:
    """One process after the other, of one name."""

    name: str
    log_store: LogStore
    log: Path
    job: Job | None = None
    started: int = 0
    deaths: int = 0
    """Of its own."""
    running: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def is_spark(self) -> bool:
        return self.name.startswith("spark")

    def begin(self, job: Job) -> None:
        if self.running is None:
            self._start()
        self._tell(job)

    def kill(self) -> None:
        """Without notice, with its JVM; the next one goes on with the same job."""
        job = self.job
        self.end()
        self._start()
        if job:
            self._tell(job)

    def look(self) -> None:
        """Start it again if it died by itself."""
        if self.running and self.running.poll() is not None:
            self.deaths += 1
            self.kill()

    def is_ready(self) -> bool:
        return self.job is not None and ready_file(self.job.root, self.job.name).exists()

    def wait(self, seconds: float) -> bool:
        """Whether it ends its job by itself."""
        end = time.monotonic() + seconds
        while self.job and not end_file(self.job.root, self.job.name).exists():
            if time.monotonic() > end or (self.running and self.running.poll() is not None):
                self.end()
                return False
            time.sleep(0.05)
        self.job = None
        return True

    def end(self) -> None:
        if self.running:
            # A JVM that still runs after its Python would go on to write.
            with suppress(ProcessLookupError):
                os.killpg(self.running.pid, signal.SIGKILL)
            self.running.wait()
        self.running, self.job = None, None

    def _start(self) -> None:
        self.started += 1
        writer = ["spark_writer", self.log_store] if self.is_spark else ["delta_rs_writer"]
        command = [sys.executable, "-c", _BEGIN, *writer]
        with self.log.open("ab") as said:
            self.running = subprocess.Popen(
                command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip

    def _tell(self, job: Job) -> None:
        assert self.running and self.running.stdin
        self.job = replace(job, name=f"{self.name}.{self.started}")
        self.running.stdin.write(self.job.text().encode())
        self.running.stdin.flush()


_BEGIN = """
import runpy, sys
sys.path[:0] = [".", "tests"]
module, sys.argv = sys.argv[1], sys.argv[1:]
runpy.run_module(f"qa.object_store.{module}", run_name="__main__")
"""
"""The modules of the tests import one another as pytest lets them."""
