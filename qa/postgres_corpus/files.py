"""One file of the corpus, with PostgreSQL in the place of plain Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import NullType, StructField, StructType

from dagster_streamtables.compiler import QueryPlan
from dagster_streamtables.errors import RejectedQuery, StreamTablesError
from qa.postgres_corpus.oracle import Postgres
from qa.spark_corpus.files import FileRun
from qa.spark_corpus.follow import Followed
from qa.spark_corpus.outcome import Outcome, Result, reason_of, without_names
from qa.spark_corpus.outputs import names_needed, texts_with
from qa.spark_corpus.relations import Base, NotLoaded, NotStorable, Relations
from qa.spark_corpus.round import Options, Query, Round, RoundRun, Sessions
from qa.spark_corpus.statements import Statement, TestFile

DIALECT = "postgres"


class Folded(Relations):
    """Tables and columns whose names PostgreSQL puts into lower case."""

    def spelled(self, name: str) -> str:
        return name.lower()

    def load(self, name: str) -> Base:
        base = super().load(name)
        fields = [StructField(f.name.lower(), f.dataType, f.nullable) for f in base.schema.fields]
        rows = base.rows.rename_columns([each.name for each in fields])
        return Base(base.name, rows, StructType(fields))


class PostgresFile(FileRun):
    RELATIONS = Folded

    def __init__(
        self, test: TestFile, standard: dict[str, pa.Table], sessions: Sessions, options: Options,
        root: Path, chosen: Callable[[Statement], bool], oracle: Postgres,
    ) -> None:  # fmt: skip
        super().__init__(test, standard, sessions, options, root, chosen)
        self.oracle = oracle

    def _prepare(self, result: Result) -> None:
        try:
            super()._prepare(result)
        except psycopg.Error as error:
            result.outcome, result.reason = Outcome.REFUSED_BY_POSTGRES, reason(error)
            result.detail.append(str(error)[:300])

    def _asked(self, result: Result) -> Query | None:
        try:
            if not self._load(result):
                return None
        except PySparkException as error:
            raise NotLoaded("a table that is not there") from error
        bases, views = self.round.bases.values(), list(self.round.views.values())
        self.oracle.give([(b, b.rows) for b in bases if b.name not in self.oracle.bases])
        self.oracle.define(views)
        return self._named(result)

    def _load(self, result: Result) -> bool:
        found = super()._load(result)
        result.text = as_in_postgres(result.text)
        views = self.round.views
        self.round.views = {
            name: replace(view, name=name, query=as_in_postgres(view.query), dialect=DIALECT)
            for name, view in views.items()
        }
        return found

    def _named(self, result: Result) -> Query:
        """The query with names that Delta can store, where PostgreSQL's are none or repeat."""
        names = self.oracle.columns(result.text)
        needed = names_needed(names)
        for text in texts_with(result.text, names, needed, mark='"'):
            try:
                found = self.oracle.columns(text)
            except psycopg.Error:
                continue
            if found == needed:
                result.text = text
                return Query(result, StructType([StructField(n, NullType()) for n in needed]))
        raise NotStorable("the name of a column, which takes no alias")

    def _run_round(self, folder: Path) -> None:
        PostgresRound(self.round, folder, self.sessions, self.options, self.oracle).run()

    def _end_round(self) -> None:
        super()._end_round()
        self.oracle.forget()


class PostgresRound(RoundRun):
    DIALECT = DIALECT

    def __init__(
        self, round_: Round, root: Path, sessions: Sessions, options: Options, oracle: Postgres
    ) -> None:
        super().__init__(round_, root, sessions, options, oracle)
        self.postgres = oracle

    def _begin(self, each: Query) -> None:
        super()._begin(each)
        if each.follower is not None:
            plan = self.lake.plan(self._table(each))
            if isinstance(plan, QueryPlan) and plan.text.notes:
                self.postgres.represented.add(each.name)

    def _look(self, each: Query, window: int, followed: Followed) -> None:
        """Types are not compared: those of PostgreSQL have other names."""
        without = dict.fromkeys(followed.columns, "")
        super()._look(each, window, replace(followed, columns=without))

    def _refused(self, each: Query, window: int, error: StreamTablesError) -> None:
        """When it is defined, or at a refresh, which PostgreSQL may fail, too."""
        detail = f"window {window}: {error}"
        if each.follower is None:
            each.end(Outcome.REFUSED, reason_of(error), detail)
        elif fails := self.oracle.fails(each.result.text):
            each.end(Outcome.EXACT, "both fail over some rows", detail, fails[:300])
        elif isinstance(error, RejectedQuery):  # the translation is no query of Spark
            each.end(Outcome.RAW, reason_of(error), detail)
        else:
            each.end(Outcome.REFUSED, f"at a refresh: {reason_of(error)}", detail)

    def _unanswered(self, query: Query, window: int, error: Exception) -> None:
        """PostgreSQL fails over rows for which the product has a result."""
        detail = f"window {window}: {error}"
        if isinstance(error, psycopg.errors.QueryCanceled):
            query.end(Outcome.SLOW, "PostgreSQL in a window", detail)
        else:
            query.end(Outcome.WRONG, f"rows where PostgreSQL fails: {reason(error)}", detail)


_CHANGED = re.compile(
    r"""(?ix) `(?P<name>[^`]*)`
    | \b (?P<type>smallint|int|bigint|boolean|float|double) \( (?P<text>'[^']*') \)
    | (?:'(?:[^']|'')*'|--[^\n]*)"""
)
_TYPES = {"double": "double precision"}


def as_in_postgres(text: str) -> str:
    """The words of PostgreSQL's tests that Spark's suite has changed: quotes, and typed constants.

    >>> as_in_postgres("SELECT '`' AS `Five or more`, a + int('2') -- `")
    'SELECT \\'`\\' AS "Five or more", a + int \\'2\\' -- `'
    """
    return _CHANGED.sub(_restored, text)


def _restored(found: re.Match[str]) -> str:
    if found["name"] is not None:
        return f'"{found["name"]}"'
    if found["type"]:
        return f"{_TYPES.get(found['type'].lower(), found['type'])} {found['text']}"
    return found[0]


def reason(error: Exception) -> str:
    """What PostgreSQL says, without names and numbers."""
    return without_names(str(error).splitlines()[0])
