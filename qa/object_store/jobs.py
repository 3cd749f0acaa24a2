"""What a process of writers is told to do: append to one table until a file says stop."""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from qa.object_store.store import Store


@dataclass(frozen=True)
class Job:
    address: str
    """Of the store."""
    place: str
    """Of the table."""
    folder: str
    """For records, and for the file that ends the job."""
    name: str
    """Of this process, another one after each kill."""
    threads: int = 1
    pause: float = 0
    """The most seconds between two commits."""
    rows: float = 0.05
    """The share of commits with a row, by the engine's own statement."""
    interrupts: float = 0
    """The seconds between two interrupts of a thread of Java, on average; 0 for none."""

    @property
    def store(self) -> Store:
        return Store(self.address)

    @property
    def root(self) -> Path:
        return Path(self.folder)

    def text(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    def ends(self) -> bool:
        return stop_file(self.root).exists() or not self.root.exists()

    def turns(self, writer: str) -> Iterator[tuple[str, bool]]:
        """The ids of commits, and whether each has a row, until the job ends."""
        chance = random.Random(f"{self.place} {writer}")
        while not self.ends():
            yield f"{writer}-{uuid.uuid4().hex[:12]}", chance.random() < self.rows
            if self.pause:
                time.sleep(chance.random() * self.pause)


def stop_file(folder: Path) -> Path:
    return folder / "stop"


def go_file(folder: Path) -> Path:
    """There once all processes are ready: a JVM takes longer to start than a table to fill."""
    return folder / "go"


def ready_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.ready"


def end_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.ended"


def serve(work: Callable[[Job], None], prepare: Callable[[Job], None] = lambda job: None) -> None:
    """Do the jobs of standard input, a line each."""
    for line in sys.stdin:
        job = Job(**json.loads(line))
        prepare(job)
        ready_file(job.root, job.name).touch()
        while not (go_file(job.root).exists() or job.ends()):
            time.sleep(0.02)
        work(job)
        end_file(job.root, job.name).touch()
