"""`python -m tests.histories`: random histories for as long as one likes.

    python -m tests.histories --minutes 60 --seed 7
    python -m tests.histories --replay 7:123
    python -m tests.histories --history "7:123 [bag] spark:42 row-tracking:5"

It ends with what was covered, and with 1 if a stream table was not what its query says.
"""

from __future__ import annotations

import argparse
import itertools
import time

from rich.console import Console

from histories.history import Failure, History, open_sessions, run
from histories.rows import WITHOUT
from histories.shrink import shrink
from histories.steps import MODULES
from histories.tally import Tally


def main(arguments: list[str] | None = None) -> int:
    assert MODULES
    options = _options(arguments)
    console = Console(width=150, highlight=False, markup=False, soft_wrap=True)
    hunt = Hunt(options, console)
    if options.history:
        return hunt.one(History.read(options.history))
    if options.replay:
        seed, number = map(int, options.replay.split(":"))
        return hunt.one(History.random(seed, number, options.steps, options.roots))
    return hunt.many()


class Hunt:
    def __init__(self, options: argparse.Namespace, console: Console) -> None:
        self.options, self.console = options, console
        WITHOUT.update(filter(None, options.without.split(",")))
        self.sessions = open_sessions(options.spark or None)
        self.tally, self.failures = Tally(), 0
        self.began = time.monotonic()

    def one(self, history: History) -> int:
        self.console.print(str(history))
        failure = run(history, self.sessions, self.tally)
        if failure is None:
            self._end()
            return 0
        self._tell(history, failure)
        return 1

    def many(self) -> int:
        options = self.options
        end, said = self.began + options.minutes * 60, 0.0
        numbers = itertools.count(options.start, options.stride)
        for number in itertools.islice(numbers, options.histories):
            if time.monotonic() > end or self.failures >= options.failures:
                break
            history = History.random(options.seed, number, options.steps, options.roots)
            failure = run(history, self.sessions, self.tally)
            self.tally.histories += 1
            if failure is not None:
                self.failures += 1
                self._tell(history, failure)
            if self._seconds() > said + 60:
                said = self._seconds()
                self.console.print(f"{said:.0f} s: {self.tally.line()}")
        self._end()
        return 1 if self.failures else 0

    def _tell(self, history: History, failure: Failure) -> None:
        at = self._seconds()
        told = f"\nFAILED after {at:.0f} s, step {failure.at}: {failure.what} {failure.roots}"
        self.console.print(told)
        small = history
        if not self.options.no_shrink:
            unseen = Tally()
            small = shrink(history, failure, lambda h: run(h, self.sessions, unseen), seconds=120)
            failure = run(small, self.sessions, unseen) or failure
        self.console.print(f"replay: --replay {history.seed}\nhistory: {small}")
        self.console.print("\n".join(failure.detail))

    def _end(self) -> None:
        for table in self.tally.tables():
            self.console.print(table)
        self.console.print("\n".join(self.tally.lines()))
        self.console.print(f"{self._seconds():.0f} s: {self.tally.line()}, {self.failures} failed")

    def _seconds(self) -> float:
        return time.monotonic() - self.began


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.histories", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the number of the first history")
    parser.add_argument("--stride", type=int, default=1, help="each so-many-th number")
    parser.add_argument("--histories", type=int, default=10**9, help="at most so many")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--roots", type=int, default=0, help="so many kinds of roots; 0: all")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument("--replay", default="", metavar="SEED:N")
    parser.add_argument("--history", default="", help="a history as it was printed")
    parser.add_argument("--without", default="", help="values that hide others: minus-zero")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--spark", default="", help="an address, or a master such as local[2]")
    return parser.parse_args(arguments)
