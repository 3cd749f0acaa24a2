"""`python -m qa.fuzz`: random queries for as long as one likes.

    python -m qa.fuzz --minutes 60 --seed 7
    python -m qa.fuzz --engine spark --minutes 20 --only window,lateral
    python -m qa.fuzz --engine names            the columns alone, as Spark's analysis has them
    python -m qa.fuzz --replay 7:1234

It ends with a table of what was generated, refused, and compared, by construct; with the reasons of
refusals; and with 1 if a stream table was not what its query says, whose case it prints.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from random import Random

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from compiler.database import Rows
from dagster_streamtables.compiler import read
from qa.fuzz.changes import random_story
from qa.fuzz.duck import DuckEngine, NotHere
from qa.fuzz.grammar import Grammar
from qa.fuzz.names import NamesEngine
from qa.fuzz.outcome import Engine, Outcome, Trial, Verdict
from qa.fuzz.relations import Table
from qa.fuzz.report import Tally, as_case
from qa.fuzz.schema import SOURCES
from qa.fuzz.spark import SparkEngine
from qa.fuzz.switches import Switches, all_switches, only
from qa.fuzz.tree import walk

_ENGINES: dict[str, Callable[[], Engine]] = {
    "duckdb": DuckEngine,
    "spark": SparkEngine,
    "names": NamesEngine,
}


def make_trial(seed: int, number: int, on: Switches, *, whole: bool, batch: int = 1) -> Trial:
    """The query and the story of a number; the same for the same arguments.

    Args:
        whole: Use all that is switched on in every query; else a random part of it in each.
        batch: How many numbers share one story, which then is about all sources.
    """
    random = Random(f"{seed}:{number}")
    query = Grammar(random, on if whole else on.some(random)).whole()
    if batch > 1:
        random = Random(f"{seed}: story {number // batch}")
        story = random_story(random, tuple(sorted(SOURCES)))
        return Trial.of(query, replace(story, windows=story.windows[:2]))
    tables = tuple(sorted({e.name for e in walk(query) if isinstance(e, Table)} & set(SOURCES)))
    return Trial.of(query, random_story(random, tables or ("orders",)))


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    of_spark = options.engine != "duckdb"
    on = only(options.only.split(",")) if options.only else all_switches(of_spark=of_spark)
    console = Console(width=120)
    engine = _ENGINES[options.engine]()
    run = Run(engine, on, options)
    if options.replay:
        options.seed, options.start = map(int, options.replay.split(":"))
        trial = run.trial(options.start)
        run.judge(options.start, trial, engine.run(trial), console)
        console.print(trial.text, markup=False, highlight=False, soft_wrap=True)
        return 1 if run.failures else 0
    seconds = options.minutes * 60
    end = time.monotonic() + seconds
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=seconds)
        first = options.start // engine.batch * engine.batch
        while time.monotonic() < end and run.failures < options.failures:
            numbers = range(first, first + engine.batch)
            trials = [run.trial(number) for number in numbers]
            for number, trial, outcome in zip(
                numbers, trials, engine.run_many(trials), strict=True
            ):
                run.judge(number, trial, outcome, progress.console)
            first += engine.batch
            done = seconds - (end - time.monotonic())
            progress.update(task, completed=done, description=run.tally.line())
    console.print(run.tally.table())
    for line in run.tally.reasons():
        console.print(line, markup=False, highlight=False)
    return 1 if run.failures else 0


class Run:
    """One run of the command."""

    def __init__(self, engine: Engine, on: Switches, options: argparse.Namespace) -> None:
        self.engine, self.on, self.options = engine, on, options
        self.tally, self.failures = Tally(engine.name), 0
        self.told: set[str] = set()

    def trial(self, number: int) -> Trial:
        whole, batch = bool(self.options.only), self.engine.batch
        return make_trial(self.options.seed, number, self.on, whole=whole, batch=batch)

    def judge(self, number: int, trial: Trial, outcome: Outcome, console: Console) -> None:
        """Count what came of a trial, and print it if it failed."""
        self.tally.add(trial, outcome)
        if outcome.verdict is not Verdict.FAILED:
            return
        self.failures += 1
        gist = outcome.detail[:60]
        if self.options.each_once and gist in self.told:
            return
        self.told.add(gist)
        told = self._told(number, trial, outcome)
        console.print(told, markup=False, highlight=False, soft_wrap=True)
        console.file.flush()

    def _told(self, number: int, trial: Trial, outcome: Outcome) -> str:
        """A failure: where it was found, how to find it again, and its smallest case."""
        options, engine = self.options, self.engine
        small = trial if options.no_shrink else engine.shrunk(trial, outcome)
        again = engine.run(small)
        replay = f"--replay {options.seed}:{number} --engine {options.engine}"
        replay += f' --only "{options.only}"' if options.only else ""
        expected: list[Rows] | None = None
        with contextlib.suppress(NotHere):
            expected = engine.expected(small)
        title = f"random {options.seed}:{number}"
        sources = tuple(dict.fromkeys(name.lower() for name in read(small.text).sources))
        case = as_case(title, small, expected, sources)
        why = again.detail if again.verdict is Verdict.FAILED else outcome.detail
        return f"\nFAILED on {engine.name}: {why}\nreplay: {replay}\n\n{case}\n"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m qa.fuzz", description=__doc__)
    parser.add_argument("--engine", choices=list(_ENGINES), default="duckdb")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the number of the first query")
    parser.add_argument("--only", default="", help="constructs, separated by commas")
    parser.add_argument("--replay", default="", metavar="SEED:N")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument("--each-once", action="store_true", help="tell each kind of failure once")
    parser.add_argument("--no-shrink", action="store_true")
    return parser.parse_args(arguments)
