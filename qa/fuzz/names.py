"""The columns of stream tables, compared with those that Spark's analysis gives the same text.

No row is computed, so that thousands of queries take minutes.
"""

from __future__ import annotations

import uuid

from pyspark.errors import PySparkException

from compiler.database import Rows
from dagster_streamtables.compiler import read, respell_tables
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.spark.session import open_session
from qa.fuzz.duck import NotHere
from qa.fuzz.outcome import Outcome, Trial, Verdict, compiled
from qa.fuzz.schema import SOURCES
from qa.fuzz.shrink import same_failure, shrink


def as_stored(text: str) -> str:
    """A query with the tables as their folders are called."""
    return respell_tables(text, {name: name.lower() for name in read(text).sources})


class Analysis:
    """A session of Spark with an empty view for each source."""

    def __init__(self) -> None:
        self.session = open_session(session_id=str(uuid.uuid4()))
        for table, columns in SOURCES.items():
            nulls = ", ".join(f"CAST(NULL AS {type_}) AS `{n}`" for n, type_ in columns.items())
            self.session.sql(f"SELECT {nulls}").createOrReplaceTempView(table)

    def columns(self, text: str) -> list[str]:
        """
        Raises:
            NotHere: Spark does not take the text.
        """
        try:
            return self.session.sql(text).columns
        except PySparkException as error:
            raise NotHere(str(error).strip().splitlines()[0][:300]) from None


class NamesEngine:
    name = "Spark's analysis"
    batch = 1

    def __init__(self) -> None:
        self.analysis = Analysis()

    def run(self, trial: Trial) -> Outcome:
        try:
            plan = compiled(as_stored(trial.text))
        except InvalidDefinition as error:
            verdict = Verdict.REFUSED if "cannot be parsed" in error.what else Verdict.FAILED
            plan = Outcome(verdict, f"called invalid: {error.what}")
        if isinstance(plan, Outcome) and plan.verdict is Verdict.REFUSED:
            return plan
        try:
            expected = self.analysis.columns(trial.text)
        except NotHere as error:
            return Outcome(Verdict.NOT_HERE, str(error))
        if isinstance(plan, Outcome):
            return plan
        found = list(plan.schema)
        if found == expected:
            return Outcome(Verdict.COMPARED)
        return Outcome(Verdict.FAILED, f"columns {found}, expected {expected}")

    def run_many(self, trials: list[Trial]) -> list[Outcome]:
        return [self.run(trial) for trial in trials]

    def shrunk(self, trial: Trial, failure: Outcome) -> Trial:
        return shrink(trial, same_failure(self, failure), seconds=45)

    def expected(self, trial: Trial) -> list[Rows]:
        raise NotHere("there are no rows")
