"""Writers of both engines race for the versions of one table after the other."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from qa.object_store.faults import Faults
from qa.object_store.jobs import Job, go_file, stop_file
from qa.object_store.processes import Process
from qa.object_store.spark import LogStore
from qa.object_store.store import AuditedStore
from qa.object_store.verdict import Verdict, judge

SETUPS = (
    {"spark-a": 1, "delta-rs-a": 1},
    {"spark-a": 1, "spark-b": 1, "delta-rs-a": 1, "delta-rs-b": 1},
    {"spark-a": 2, "delta-rs-a": 1, "delta-rs-b": 1},
)
"""Processes, and the writers of each: half of them Spark's, in one JVM or in two."""
# delta-rs believes that such a commit failed; the share is small, so that the race goes on.
_UNSURE = Faults(lost=0.03, failed=0.03, conflict=0.05)
_SLOW = Faults(slow_every=15, slow_for=3, slow_share=0.3, latency=0.05)
FAULTS = {
    "no faults": Faults(),
    "lost answers": _UNSURE,
    "slow store": _SLOW,
    "all faults": replace(_UNSURE, slow_every=20, slow_for=3, slow_share=0.3, latency=0.02),
}
PAUSES = (0, 0.2)
"""Seconds at most. At full speed Spark leaves few versions to delta-rs."""
_KILLED_AFTER = {True: 240, False: 40}
"""Seconds, on average: a JVM takes half a minute to start."""
_SECONDS = 900
"""A table is judged after them, however few commits it has."""


@dataclass
class Race:
    store: AuditedStore
    log_store: LogStore
    folder: Path
    seed: int
    per_table: int
    kills: bool = True
    calm: bool = False
    """Without faults, which may hide what a writer without them would do."""
    random: random.Random = field(init=False)
    total: Verdict = field(default_factory=Verdict)
    events: Counter[str] = field(default_factory=Counter)
    processes: dict[str, Process] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def run(self, commits: int) -> Verdict:
        began = time.monotonic()
        try:
            for number, (setup, fault, pause) in enumerate(self._rounds()):
                left = commits - self.total.numbers["versions"]
                if left <= 0:
                    break
                target = min(left, self.per_table)
                self._round(f"race-{self.log_store}-{number:04}", setup, fault, pause, target)
                hours = (time.monotonic() - began) / 3600
                made = self.total.numbers["versions"]
                print(f"  in all {made} commits, {made / hours:.0f} an hour; "
                      f"wrong: {self.total.wrong or 'nothing'}", flush=True)  # fmt: skip
        finally:
            for each in self.processes.values():
                each.end()
        self.events.update({f"fault {k}": n for k, n in self.store.met().items()})
        return self.total

    def _rounds(self) -> Iterator[tuple[dict[str, int], str, float]]:
        faults = ["no faults"] if self.calm else list(FAULTS)
        every = list(itertools.product(SETUPS, faults, PAUSES))
        while True:
            self.random.shuffle(every)
            yield from every

    def _round(
        self, bucket: str, setup: dict[str, int], fault: str, pause: float, target: int
    ) -> None:
        began = time.monotonic()
        folder = self.folder / bucket
        folder.mkdir()
        place, interrupts = self.store.make_table(bucket), 0 if self.calm else 120
        job = Job(self.store.address, place, str(folder), "", pause=pause, interrupts=interrupts)
        used = [self._process(name) for name in setup]
        for each in used:
            each.begin(replace(job, threads=setup[each.name]))
        self._wait(used)
        self.store.set(FAULTS[fault])
        go_file(folder).touch()
        self._until(bucket, used, target)
        stop_file(folder).touch()
        for each in used:
            if not each.wait(180):
                self.events["stuck at the end"] += 1
        self.store.set(Faults())
        verdict = judge(self.store, bucket, folder)
        self.total.add(verdict)
        self.store.drop(bucket)
        seconds = time.monotonic() - began
        print(f"{bucket}: {setup}, {fault}, pause {pause}, {seconds:.0f} s: {verdict.right}; "
              f"wrong: {verdict.wrong or 'nothing'}", *verdict.examples, sep="\n  ",
              flush=True)  # fmt: skip

    def _process(self, name: str) -> Process:
        if name not in self.processes:
            log = self.folder / f"{name}.log"
            self.processes[name] = Process(name, self.log_store, log)
        return self.processes[name]

    def _wait(self, used: list[Process]) -> None:
        end = time.monotonic() + _SECONDS
        while not all(each.is_ready() for each in used):
            for each in used:
                each.look()
            if time.monotonic() > end:
                raise TimeoutError(f"the writers do not begin; see {self.folder}")
            time.sleep(0.1)

    def _until(self, bucket: str, used: list[Process], target: int) -> None:
        end = time.monotonic() + _SECONDS
        looked = time.monotonic()
        while self.store.commits(bucket) < target and time.monotonic() < end:
            time.sleep(0.3)
            passed, looked = time.monotonic() - looked, time.monotonic()
            for each in used:
                deaths = each.deaths
                each.look()
                self.events["died by itself"] += each.deaths - deaths
                if self.kills and self.random.random() < passed / _KILLED_AFTER[each.is_spark]:
                    each.kill()
                    self.events["killed JVM" if each.is_spark else "killed delta-rs"] += 1
