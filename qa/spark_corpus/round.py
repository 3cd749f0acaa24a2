"""The queries that share tables: through the first refresh and all windows, compared after each."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.compiler import View
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.spark.session import drop_views
from qa.spark_corpus.changes import WINDOWS, SourceTable
from qa.spark_corpus.follow import FOLLOWERS, Followed, Follower, same_columns
from qa.spark_corpus.limits import TooSlow, limited
from qa.spark_corpus.oracle import Held, Line, Oracle
from qa.spark_corpus.outcome import Outcome, Result, reason_of
from qa.spark_corpus.plain import Plain
from qa.spark_corpus.relations import Base

_TOGETHER = 8
"""Queries whose rows one statement compares."""
_SHOWN = 6


@dataclass(frozen=True)
class Options:
    follower: str = "refresh"
    """How a query is followed; see `FOLLOWERS`."""
    partitioned: bool = False
    """Each table has a random partition column."""
    compiled: bool = False
    """Spark compiles statements to Java, and shuffles into three partitions."""
    seconds: float = 40.0
    """The limit of one query in one window."""
    windows: int = WINDOWS
    """How many follow the first refresh; below 0, a query is compiled and not refreshed."""
    seed: int = 0
    own_spelling: bool = False
    """Names of tables stay as a query spells them, in other case than their folders."""


@dataclass(frozen=True)
class Sessions:
    """Two that share nothing but the server."""

    product: SparkSession
    plain: SparkSession


@dataclass
class Query:
    """One that Spark takes, and what is known of it so far."""

    result: Result
    schema: StructType
    """Its columns, as plain Spark says."""
    follower: Follower | None = None
    over: bool = False

    @property
    def name(self) -> str:
        return f"st_{self.result.number}"

    def end(self, outcome: Outcome, reason: str, *detail: str) -> None:
        """Its outcome is known: it takes no part from now on."""
        self.over = True
        self.result.outcome, self.result.reason = outcome, reason
        self.result.detail += detail


@dataclass
class Round:
    """Queries over the same tables and views."""

    file: str
    number: int
    bases: dict[str, Base] = field(default_factory=dict[str, Base])
    """By the names that queries say."""
    views: dict[str, View] = field(default_factory=dict[str, View])
    queries: list[Query] = field(default_factory=list[Query])

    def reads(self, words: set[str]) -> bool:
        """Whether one of the words, in lower case, is a name that a query of it reads."""
        names = [*self.bases, *self.views]
        return any(part in words for name in names for part in name.lower().split("."))


class RoundRun:
    DIALECT = "spark"
    """In which its queries are written."""

    def __init__(
        self, round_: Round, root: Path, sessions: Sessions, options: Options,
        oracle: Oracle | None = None,
    ) -> None:  # fmt: skip
        """The root is a new folder. Plain Spark is the oracle by default."""
        self.round, self.root, self.options = round_, root, options
        self.sessions = sessions
        self.lake = Lake(root, spark=sessions.product, views=list(round_.views.values()))
        self.oracle: Oracle = oracle or Plain(sessions.plain)
        self.tables = self._tables()

    def _tables(self) -> dict[str, SourceTable]:
        made: dict[str, SourceTable] = {}
        shift = Random(f"{self.options.seed} {self.round.file}").randrange(3)
        for turn, (name, base) in enumerate(sorted(self.round.bases.items()), start=shift):
            random = Random(f"{self.options.seed} {self.round.file} {self.round.number} {name}")
            made[name] = SourceTable(Path(self.lake.location(name)), base.rows, random, turn)
        return made

    def run(self) -> None:
        """Every query of the round has its outcome afterwards."""
        try:
            for table in self.tables.values():
                table.create(self.options.partitioned)
            self._give()
            self.oracle.define(list(self.round.views.values()))
            for each in self.round.queries:
                self._begin(each)
            for window in range(self.options.windows + 1):
                self._window(window)
            for each in self._live:
                each.end(Outcome.ACCEPTED if self.options.windows < 0 else Outcome.EXACT, "")
        finally:
            for each in self.round.queries:
                if each.follower is not None:
                    each.follower.close()
            self.oracle.forget()
            drop_views(self.sessions.product)
            shutil.rmtree(self.root, ignore_errors=True)

    @property
    def _live(self) -> list[Query]:
        return [each for each in self.round.queries if not each.over]

    def _give(self) -> None:
        """The oracle gets the rows that the tables have now."""
        self.oracle.give(
            [(self.round.bases[name], table.rows) for name, table in self.tables.items()]
        )

    def _begin(self, each: Query) -> None:
        with self._judged(each, 0):
            each.follower = FOLLOWERS[self.options.follower](self.lake, self._table(each))

    def _table(self, each: Query) -> StreamTable:
        return StreamTable(
            each.name,
            each.result.text,
            dialect=self.DIALECT,
            differential_max_change_ratio=0,
            max_consecutive_errors=0,
        )

    def _window(self, window: int) -> None:
        if window and self._live:
            for table in self.tables.values():
                table.move(window)
            self._give()
        held: list[Held] = []
        for each in self._live:
            assert each.follower is not None
            with self._judged(each, window):
                followed = each.follower.follow()
                self._look(each, window, followed)
                held.append(self._held(each, followed))
        for begin in range(0, len(held), _TOGETHER):
            self._compare(window, held[begin : begin + _TOGETHER])

    @contextmanager
    def _judged(self, each: Query, window: int) -> Iterator[None]:
        """What is raised within is the query's outcome."""
        begin = time.perf_counter()
        try:
            with limited(self.sessions.product, self.options.seconds):
                yield
        except StreamTablesError as error:
            self._refused(each, window, error)
        except TooSlow:
            each.end(Outcome.SLOW, f"more than {self.options.seconds:g} s in a window")
        except Exception as error:
            each.end(Outcome.RAW, reason_of(error), f"window {window}: {error}")
        each.result.seconds += time.perf_counter() - begin

    def _refused(self, each: Query, window: int, error: StreamTablesError) -> None:
        """By the product alone, or by plain Spark too."""
        if not (fails := self._fails(each)):
            when = "" if each.follower is None else "at a refresh: "
            each.end(Outcome.REFUSED, when + reason_of(error), f"window {window}: {error}")
        elif window:
            each.end(Outcome.EXACT, "Spark does not run it over later rows", fails[:300])
        else:
            each.end(Outcome.REFUSED_BY_SPARK, _of_spark(fails), fails[:300])

    def _fails(self, each: Query) -> str:
        try:
            with limited(self.sessions.plain, self.options.seconds):
                return self.oracle.fails(each.result.text)
        except TooSlow:
            return "[TOO SLOW] in plain Spark"

    def _look(self, each: Query, window: int, followed: Followed) -> None:
        """At what is told beside the rows."""
        if followed.in_full:
            reason = reason_of(StreamTablesError(followed.in_full))
            each.end(Outcome.FELL_BACK, reason, f"window {window}: {followed.in_full}")
        expected = [(f.name, f.dataType.simpleString()) for f in each.schema.fields]
        if said := same_columns(followed.columns, expected):
            each.end(Outcome.WRONG, "other columns", f"window {window}: {said}")
        each.result.changed |= followed.changed

    def _held(self, each: Query, followed: Followed) -> Held:
        return Held(each.name, each.result.text, each.schema, followed.rows, followed.copies)

    def _compare(self, window: int, held: Sequence[Held]) -> None:
        queries = {each.name: each for each in self._live}
        held = [each for each in held if each.name in queries]
        if not held:
            return
        try:
            with limited(self.sessions.plain, self.options.seconds * len(held)):
                found = self.oracle.differences(held)
        except TooSlow:
            for each in held:
                queries[each.name].end(Outcome.SLOW, f"{self.oracle.name} in a window")
            return
        for each in held:
            self._settle(queries[each.name], window, each, found[each.name])

    def _settle(self, query: Query, window: int, held: Held, found: list[Line] | Exception) -> None:
        if isinstance(found, Exception):
            self._unanswered(query, window, found)
            return
        if found:
            self._differs(query, window, held, found)
        if not query.over:
            query.result.windows = window

    def _unanswered(self, query: Query, window: int, error: Exception) -> None:
        """The oracle does not run what the product has run."""
        outcome = Outcome.EXACT if window else Outcome.REFUSED_BY_SPARK
        query.end(outcome, _of_spark(str(error)), f"window {window}: {str(error)[:300]}")

    def _differs(self, query: Query, window: int, held: Held, found: list[Line]) -> None:
        """Wrong, unless the rows are equal but for rounding, or the oracle has several answers."""
        shown = [f"window {window}: {self._told()}", *map(str, found[:_SHOWN])]
        try:
            with limited(self.sessions.plain, self.options.seconds * 2):
                if self.oracle.is_rounding(held):
                    return
                several = self.oracle.is_arbitrary(held, list(self.round.views.values()))
        except TooSlow:
            query.end(Outcome.SLOW, f"{self.oracle.name} in several orders", *shown)
        except self.oracle.errors as error:
            reason = f"{self.oracle.name} fails in another order"
            query.end(Outcome.ARBITRARY, reason, str(error)[:300])
        else:
            outcome = Outcome.ARBITRARY if several else Outcome.WRONG
            query.end(outcome, "" if several else "other rows", *shown)

    def _told(self) -> str:
        return ", ".join(f"{name}: {'/'.join(t.steps)}" for name, t in self.tables.items())


def _of_spark(said: str) -> str:
    """The condition of an error of Spark, in brackets before its words."""
    return said[1 : said.index("]")] if said.startswith("[") and "]" in said else said[:80]
