"""`python -m qa.histories`: random histories for as long as one likes.

    python -m qa.histories --minutes 60 --seed 7 --roots 2 --processes 2
    python -m qa.histories --replay 7:123
    python -m qa.histories --history "7:123 [bag] spark:42 row-tracking:5"

It ends with what was covered, and with 1 if a stream table was not what its query says.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from qa.histories.history import Failure, History, Sessions, open_sessions, run
from qa.histories.rows import WITHOUT
from qa.histories.shrink import shrink
from qa.histories.tally import Tally

_AHEAD = 1
"""So many histories wait for each process."""


_SERVER = {"STREAMTABLES_SPARK_MEMORY": "4g", "JAVA_TOOL_OPTIONS": "-XX:+UseParallelGC"}
"""Of a Spark server that is started here: each history leaves logs in its memory, and with 2 GB and
the usual collector a third of a core was at that."""


def main(arguments: list[str] | None = None) -> int:
    for name, value in _SERVER.items():
        os.environ.setdefault(name, value)
    options = _options(arguments)
    console = Console(width=150, highlight=False, markup=False, soft_wrap=True)
    if options.history or options.replay:
        return _one(options, console)
    return Hunt(options, console).many()


def _one(options: argparse.Namespace, console: Console) -> int:
    if options.history:
        history = History.read(options.history)
    else:
        seed, number = map(int, options.replay.split(":"))
        history = _history(options, seed, number)
    console.print(str(history))
    found = Worker(options).run(history)
    _tell(console, found)
    if not found.told:
        _end(console, found.tally)
    return 1 if found.told else 0


@dataclass
class Found:
    tally: Tally = field(default_factory=Tally)
    told: list[str] = field(default_factory=list[str])
    """Of its failure; nothing where there was none."""


class Worker:
    """Runs histories in this process, over sessions of its own."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        WITHOUT.update(filter(None, options.without.split(",")))
        self.sessions: Sessions = open_sessions(options.spark or None)

    def run(self, history: History) -> Found:
        found = Found()
        found.tally.histories += 1
        try:
            failure = run(history, self.sessions, found.tally)
            if failure is not None:
                found.told = self._told(history, failure)
        except Exception:
            # A mistake of the hunt itself is a failure to look at, and no end of the others.
            found.told = ["an error of the hunt", f"replay: --replay {history.seed}"]
            found.told += traceback.format_exc().splitlines()
        return found

    def _told(self, history: History, failure: Failure) -> list[str]:
        told = [f"step {failure.at}: {failure.what} {failure.roots}"]
        small, unseen = history, Tally()
        if not self.options.no_shrink:
            small = shrink(history, failure, lambda h: run(h, self.sessions, unseen), seconds=120)
            failure = run(small, self.sessions, unseen) or failure
        told += [f"replay: --replay {history.seed}", f"history: {small}"]
        return told + failure.detail


_here: list[Worker] = []


def _begin(options: argparse.Namespace) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process says when to end
    _here.append(Worker(options))


def _numbered(number: int) -> Found:
    [worker] = _here
    options = worker.options
    return worker.run(_history(options, options.seed, number))


def _history(options: argparse.Namespace, seed: int, number: int) -> History:
    subscribed = options.subscribed
    return History.random(seed, number, options.steps, options.roots, subscribed=subscribed)


class Hunt:
    """Histories in several processes, and what they found together."""

    def __init__(self, options: argparse.Namespace, console: Console) -> None:
        self.options, self.console = options, console
        self.tally, self.failures = Tally(), 0
        self.began = self.said = time.monotonic()

    def many(self) -> int:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        pool = ProcessPoolExecutor(
            self.options.processes,
            multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self.options,),
        )
        try:
            for found in self._found(pool):
                self._count(found)
        except KeyboardInterrupt:
            self.console.print("stopped")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        _end(self.console, self.tally)
        self.console.print(self._line())
        return 1 if self.failures else 0

    def _found(self, pool: ProcessPoolExecutor) -> Iterator[Found]:
        """Until there were enough histories, minutes, or failures."""
        options = self.options
        every = itertools.count(options.start, options.stride)
        numbers = itertools.islice(every, options.histories)
        end = self.began + options.minutes * 60
        running: set[Future[Any]] = set()
        while time.monotonic() < end and self.failures < options.failures:
            room = options.processes * (1 + _AHEAD) - len(running)
            running |= {pool.submit(_numbered, each) for each in itertools.islice(numbers, room)}
            if not running:
                return
            done, running = wait(running, max(0, end - time.monotonic()), FIRST_COMPLETED)
            yield from (each.result() for each in done)

    def _count(self, found: Found) -> None:
        self.tally.add(found.tally)
        if found.told:
            self.failures += 1
        _tell(self.console, found, f" after {time.monotonic() - self.began:.0f} s")
        if time.monotonic() > self.said + 60:
            self.said = time.monotonic()
            self.console.print(self._line())

    def _line(self) -> str:
        seconds = time.monotonic() - self.began
        return f"{seconds:.0f} s: {self.tally.line()}, {self.failures} failed"


def _tell(console: Console, found: Found, when: str = "") -> None:
    if found.told:
        console.print("\n".join([f"\nFAILED{when}, {found.told[0]}", *found.told[1:]]))


def _end(console: Console, tally: Tally) -> None:
    for table in tally.tables():
        console.print(table)
    console.print("\n".join(tally.lines()))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m qa.histories", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the number of the first history")
    parser.add_argument("--stride", type=int, default=1, help="each so-many-th number")
    parser.add_argument("--histories", type=int, default=10**9, help="at most so many")
    parser.add_argument("--processes", type=int, default=1, help="so many at a time")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--roots", type=int, default=0, help="so many kinds of roots; 0: all")
    parser.add_argument("--subscribed", action="store_true", help="roots that are not stored")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument("--replay", default="", metavar="SEED:N")
    parser.add_argument("--history", default="", help="a history as it was printed")
    parser.add_argument("--without", default="", help="values that hide others: minus-zero")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--spark", default="", help="an address, or a master such as local[2]")
    return parser.parse_args(arguments)
