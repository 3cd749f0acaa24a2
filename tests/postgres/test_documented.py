"""Every documented function: the page says what becomes of it, and what is translated is right."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from pyspark.errors import AnalysisException, PySparkException

from dagster_streamtables.compiler.dialect.query_translation import translation
from postgres.cases import entries
from postgres.compared import of_spark, theirs
from postgres.coverage import PAGE, fate_of, page
from postgres.documented import query_of
from postgres.tables import COLUMNS, ROWS, TYPES, create, insert

_AS_SPARK_SHOWS_IT = ("now()", "current_timestamp", "transaction_timestamp()", "localtimestamp")
"""Another moment in each."""
_BY_THE_COMPILER = ("ALL (SELECT", "WITH RECURSIVE")
"""What is rewritten for Spark after it was translated; `test_cases` has it."""
_SORTED = ("array_agg(x) AS", "json_agg(x) AS", "string_agg(s, ',') AS", "ARRAY(SELECT")
"""Their order is left open."""


@pytest.mark.thorough
def test_the_page_says_what_becomes_of_every_documented_function() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.postgres.coverage`"


@pytest.mark.thorough
def test_every_refusal_of_a_documented_function_has_a_reason() -> None:
    vague = [
        entry for entry in entries("documented.txt") if "not known to mean" in fate_of(entry).reason
    ]
    assert len(vague) <= 3, vague


@pytest.mark.long
def test_what_is_translated_returns_the_rows_of_postgres(spark: Any, postgres: Any) -> None:
    create(postgres)
    insert(postgres, ROWS)
    schema = ", ".join(f"{name} {type_}" for name, (_, type_, _) in TYPES.items())
    spark.createDataFrame(ROWS, schema).createOrReplaceTempView("t")
    differing = [
        entry
        for entry in entries("documented.txt")
        if fate_of(entry).status != "refused"
        and not entry.startswith(_AS_SPARK_SHOWS_IT)
        and not any(part in entry for part in (*_BY_THE_COMPILER, *_SORTED))
        and not _is_equal(entry, spark, postgres)
    ]
    assert not differing


def _is_equal(entry: str, spark: Any, postgres: Any) -> bool:
    sql, notes = translation(query_of(entry), "postgres", COLUMNS)
    loosely = bool(notes) or "*" in entry  # a star returns JSON as text
    try:
        expected = theirs(postgres, query_of(entry), loosely=loosely)
    except psycopg.Error:  # of some rows: a root of what is negative
        with pytest.raises(PySparkException) as raised:
            spark.sql(sql).collect()
        return not isinstance(raised.value, AnalysisException)
    return of_spark(spark.sql(sql), loosely=loosely) == expected
