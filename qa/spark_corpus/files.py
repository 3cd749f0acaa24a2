"""One file of the corpus: its statements in order, its queries in rounds that share tables.

A round ends where a statement changes a table or view that a query of it reads, or a setting.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.spark.connect import query
from dagster_streamtables.runtime.spark.settings import settings_for_now
from qa.spark_corpus.limits import TooSlow, limited
from qa.spark_corpus.outcome import Outcome, Result, reason_of
from qa.spark_corpus.outputs import names_needed, texts_with
from qa.spark_corpus.plain import local
from qa.spark_corpus.relations import (
    INTERPRETED,
    NotLoaded,
    NotStorable,
    Relations,
    mentioned,
    not_stored,
    nullable,
    own_session,
)
from qa.spark_corpus.round import Options, Query, Round, RoundRun, Sessions, _of_spark
from qa.spark_corpus.statements import Statement, TestFile

_SET = re.compile(r"(?i)^\s*SET\s+([\w.]+)\s*=\s*(.*?)\s*$", re.DOTALL)
_OF_FOLDER = {
    "nonansi": {"spark.sql.ansi.enabled": "false"},
    "timestampNTZ": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
}
_HOW_SPARK_RUNS = ("spark.sql.codegen.",)
_WORD = re.compile(r"\w+")


@dataclass
class FileReport:
    file: str
    results: list[Result] = field(default_factory=list[Result])
    statements: int = 0
    without_tables: int = 0
    """Queries that read no table."""
    failed: int = 0
    """Other statements that Spark refused."""
    problem: str = ""
    """What ended the file early, a defect of the harness."""


class FileRun:
    RELATIONS = Relations

    def __init__(
        self, test: TestFile, standard: dict[str, pa.Table], sessions: Sessions, options: Options,
        root: Path, chosen: Callable[[Statement], bool],
    ) -> None:  # fmt: skip
        self.test, self.sessions, self.options, self.chosen = test, sessions, options, chosen
        self.root = root
        given = _OF_FOLDER.get(test.name.partition("/")[0], {}) | test.settings
        self.settings = {k: v for k, v in given.items() if not k.startswith(_HOW_SPARK_RUNS)}
        self.standard = standard
        self.report = FileReport(test.name, statements=len(test.statements))
        self.rounds = 0

    def run(self) -> FileReport:
        database = f"corpus_{uuid.uuid4().hex[:12]}"
        with self._session(database) as self.relations:
            self.round = Round(self.test.name, 0)
            for statement in self.test.statements:
                if statement.is_query:
                    self._take(statement)
                else:
                    self._run(statement.text)
            self._end_round()
        return self.report

    @contextmanager
    def _session(self, database: str) -> Iterator[Relations]:
        session = own_session(INTERPRETED)
        try:
            session.sql(f"CREATE DATABASE {database}")
            session.sql(f"USE {database}")
            text = "\n".join(each.text.lower() for each in self.test.statements)
            for name, rows in self.standard.items():
                if name in text:
                    held = local(session, rows, from_arrow_schema(rows.schema))
                    held.createOrReplaceTempView(name)
            for name, value in self.settings.items():
                session.conf.set(name, value)
            yield self.RELATIONS(session, spellings={name: name for name in self.standard})
        finally:
            try:
                session.sql(f"DROP DATABASE {database} CASCADE")
            except PySparkException:
                self.report.failed += 1
            session.stop()

    def _run(self, sql: str) -> None:
        """A statement that is no query."""
        if self.round.reads({each.lower() for each in _WORD.findall(sql)}):
            self._end_round()
        if found := _SET.match(sql):
            self._end_round()
            if not found[1].startswith(_HOW_SPARK_RUNS):
                self.settings[found[1]] = found[2]
        session = self.relations.session
        try:
            with limited(session, self.options.seconds):
                session.sql(sql)
        except (PySparkException, TooSlow):
            self.report.failed += 1
        else:
            self.relations.define(sql)

    def _take(self, statement: Statement) -> None:
        """A query: it waits in its round, or its outcome is known at once."""
        if not mentioned(statement.text):
            self.report.without_tables += 1
        elif self.chosen(statement):
            sql = statement.text
            if not self.options.own_spelling:
                sql = self.relations.respelled(sql)
            result = Result(self.test.name, statement.number, sql)
            self.report.results.append(result)
            self._prepare(result)

    def _prepare(self, result: Result) -> None:
        try:
            with limited(self.relations.session, self.options.seconds):
                made = self._asked(result)
                if made is not None:
                    self.round.queries.append(made)
        except (NotLoaded, NotStorable) as error:
            kind = Outcome.NOT_LOADED if isinstance(error, NotLoaded) else Outcome.NOT_STORABLE
            result.outcome, result.reason = kind, str(error)
        except PySparkException as error:
            result.outcome, result.reason = Outcome.REFUSED_BY_SPARK, _of_spark(str(error))
            result.detail.append(str(error)[:300])
        except (pa.ArrowException, StreamTablesError, TypeError, ValueError) as error:
            result.outcome, result.reason = Outcome.NOT_LOADED, reason_of(error)
        except TooSlow:
            result.outcome, result.reason = Outcome.SLOW, "to be analyzed"

    def _asked(self, result: Result) -> Query | None:
        """The query with the tables that it reads; None if it reads none."""
        made = self._named(result)
        return made if self._load(result) else None

    def _named(self, result: Result) -> Query:
        session = self.relations.session
        schema = query(session, result.text, {}).schema
        names = schema.fieldNames()
        needed = names_needed(names)
        if any(not_stored(each.dataType.simpleString()) for each in schema.fields):
            raise NotStorable("a column of the result, by its type")
        for text in texts_with(result.text, names, needed):
            try:
                found = schema if text == result.text else query(session, text, {}).schema
            except PySparkException:
                continue
            if found.fieldNames() == needed:
                result.text = text
                return Query(result, nullable(found))
        raise NotStorable("the name of a column, which takes no alias")

    def _load(self, result: Result) -> bool:
        """Give the round the tables and views of a query; False if it reads no table."""
        views, tables = self.relations.read_by(result.text)
        if not tables:
            self.report.results.remove(result)
            self.report.without_tables += 1
            return False
        for view in views.values():
            self.relations.require_present_types(view)
        for name in tables:
            if name not in self.round.bases:
                self.round.bases[name] = self.relations.load(name)
        self.round.views |= views
        return True

    def _end_round(self) -> None:
        if self.round.queries:
            self._run_round(self.root / f"{self.round.number}")
        self.round = Round(self.test.name, self.round.number + 1)

    def _run_round(self, folder: Path) -> None:
        settings = {k: v for k, v in self.settings.items() if k.startswith("spark.sql.")}
        with (
            settings_for_now(self.sessions.product, settings),
            settings_for_now(self.sessions.plain, settings),
        ):
            RoundRun(self.round, folder, self.sessions, self.options).run()
