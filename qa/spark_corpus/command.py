"""`python -m qa.spark_corpus`: Spark's own SQL tests as stream tables.

    python -m qa.spark_corpus --report findings.jsonl
    python -m qa.spark_corpus --files 'subquery/*' --part 2/10
    python -m qa.spark_corpus --query natural-join.sql:7 --follow subscription

It ends with the outcomes, counted by reason; and with 1 if a table was wrong, was recomputed behind
the user's back, or failed with an error that is none of the product.
"""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from random import Random

from dagster_streamtables.runtime.spark.environment import home
from dagster_streamtables.runtime.spark.local_server import ensure_server
from qa.spark_corpus.changes import WINDOWS
from qa.spark_corpus.files import FileReport, FileRun
from qa.spark_corpus.follow import FOLLOWERS
from qa.spark_corpus.jar import corpus
from qa.spark_corpus.relations import INTERPRETED, own_session
from qa.spark_corpus.report import tell
from qa.spark_corpus.round import Options, Sessions
from qa.spark_corpus.standard_tables import standard_tables
from qa.spark_corpus.statements import Statement, read_file


@dataclass(frozen=True)
class Part:
    """One of several parts, which together are all queries."""

    number: int = 1
    of: int = 1

    @classmethod
    def read(cls, text: str) -> Part:
        """
        >>> Part.read("2/10")
        Part(number=2, of=10)
        """
        number, of = map(int, text.split("/"))
        if not 1 <= number <= of:
            raise ValueError(text)
        return cls(number, of)

    def holds(self, file: str, number: int) -> bool:
        return Random(f"{file} {number}").randrange(self.of) == self.number - 1


@dataclass(frozen=True)
class Job:
    """One file for one process."""

    inputs: Path
    """The folder of all files."""
    standard: Path
    """That of the tables which every file can read."""
    file: str
    options: Options
    part: Part
    number: int | None

    def chosen(self, statement: Statement) -> bool:
        if self.number is not None:
            return statement.number == self.number
        return self.part.holds(self.file, statement.number)


def main(arguments: Sequence[str] | None = None, *, inputs: Path | None = None) -> int:
    """The inputs are the folder of the files, by default that of Spark's tests."""
    given = _options(arguments)
    folder = corpus()
    ensure_server()
    jobs = _jobs(inputs or folder / "sql-tests/inputs", folder / "test-data/postgresql", given)
    done = _all_done(jobs, given.processes, given.minutes * 60)
    return int(tell(done, len(jobs), given.report).has_defects)


def _all_done(jobs: Sequence[Job], processes: int, seconds: float) -> Iterator[FileReport]:
    """The reports of the files that are begun within the time."""
    end = time.monotonic() + seconds
    if processes == 1:
        for job in jobs:
            if time.monotonic() < end:
                yield run_job(job)
        return
    todo = list(reversed(jobs))
    running: set[Future[FileReport]] = set()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        while running or todo:
            while todo and len(running) < processes and time.monotonic() < end:
                running.add(pool.submit(run_job, todo.pop()))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in done)


def run_job(job: Job) -> FileReport:
    """One file, in the sessions of this process."""
    root = Path(tempfile.mkdtemp(prefix="run_", dir=_runs()))
    run = None
    try:
        test = read_file(job.inputs, job.file)
        standard = standard_tables(job.standard)
        sessions = _sessions(job.options)
        run = FileRun(test, standard, sessions, job.options, root, job.chosen)
        return run.run()
    except Exception:
        report = FileReport(job.file) if run is None else run.report
        report.problem = traceback.format_exc()
        return report
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _runs() -> Path:
    folder = home() / "spark-corpus" / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


_opened: dict[bool, Sessions] = {}


def _sessions(options: Options) -> Sessions:
    """Those of this process."""
    from dagster_streamtables.runtime.spark import session

    if options.compiled not in _opened:
        settings = {"spark.sql.shuffle.partitions": "3"} if options.compiled else {}
        plain = {} if options.compiled else INTERPRETED
        if options.compiled:  # no statement is small enough to be interpreted
            session.FEW = -1
        _opened[options.compiled] = Sessions(own_session(settings), own_session(settings | plain))
    return _opened[options.compiled]


def _jobs(inputs: Path, standard: Path, given: argparse.Namespace) -> list[Job]:
    """The largest files first, so that no process waits for one in the end."""
    files = {str(each.relative_to(inputs)): each.stat().st_size for each in inputs.rglob("*.sql")}
    number: int | None = None
    pattern = given.files
    if given.query:
        pattern, _, said = given.query.rpartition(":")
        number = int(said)
    names = sorted((n for n in files if fnmatch.fnmatch(n, pattern)), key=lambda n: -files[n])
    options = Options(
        follower=given.follow,
        partitioned=given.partitions,
        compiled=given.codegen,
        seconds=given.seconds,
        windows=given.windows,
        seed=given.seed,
        own_spelling=given.own_spelling,
    )
    return [Job(inputs, standard, name, options, given.part, number) for name in names]


def options_of(command: str, about: str | None, least_windows: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {command}", description=about)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--files", default="*", help="a pattern of paths below the inputs")
    add("--query", default="", help="FILE:N, one query of a file")
    add("--seed", type=int, default=0, help="of the changes")
    add("--seconds", type=float, default=40, help="the limit of a query in a window")
    windows = range(least_windows, WINDOWS + 1)
    told = "how many follow the first refresh; -1, where that may be, refreshes no query"
    add("--windows", type=int, default=WINDOWS, choices=windows, help=told)
    add("--report", type=Path, help="a file for each query as a line of JSON")
    return parser


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = options_of("qa.spark_corpus", __doc__, least_windows=-1)
    add = parser.add_argument
    add("--part", type=Part.read, default=Part(), metavar="K/N", help="of N parts the Kth")
    add("--minutes", type=float, default=600, help="no file is begun after them")
    add("--processes", type=int, default=2)
    add("--follow", choices=list(FOLLOWERS), default="refresh")
    add("--partitions", action="store_true", help="tables with random partition columns")
    add("--codegen", action="store_true", help="compiled to Java, three shuffle partitions")
    add("--own-spelling", action="store_true", help="names of tables in the case of the queries")
    return parser.parse_args(arguments)
