"""Texts of other engines as a query of Spark, and calls with a wrong number of arguments: what is
taken when the table is defined, Spark takes, too."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dagster_streamtables.compiler import at_time, compile_query, is_of_spark
from dagster_streamtables.compiler.text.current_time import with_clock
from dagster_streamtables.compiler.text.query_text import tokenize_query
from dagster_streamtables.compiler.text.spark_functions import COUNTED, takes
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from postgres.cases import EXPRESSIONS, QUERIES
from postgres.documented import chapters, query_of
from postgres.tables import COLUMNS

pytestmark = pytest.mark.spark
ENTRIES = [entry for entries in chapters().values() for entry in entries]
TEXTS = list(dict.fromkeys([*map(query_of, [*ENTRIES, *EXPRESSIONS]), *QUERIES]))
OPERANDS = re.compile(
    "DATATYPE_MISMATCH|CAST_INVALID_INPUT|INVALID_FORMAT|INVALID_TYPED_LITERAL|_LEGACY_ERROR_TEMP_0029"
    "|NAMED_PARAMETERS_NOT_SUPPORTED"
)
"""Types, values and names of operands, which Spark alone judges."""
OWN = re.compile("UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE")
"""What a refresh runs in rounds of its own."""
WORDS = {"binary", "curdate", "current_date", "current_timestamp", "div", "in", "localtimestamp"}
WORDS |= {"and", "between", "case", "not", "now", "or", "time", "when"}
"""Functions of Spark that are types, operators or spellings of the time here."""


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    for name, columns in COLUMNS.items():
        listed = (f"CAST(NULL AS {kind}) AS `{column}`" for column, kind in columns.items())
        spark.sql(f"SELECT {', '.join(listed)} WHERE false").createOrReplaceTempView(name)
    yield spark
    for name in COLUMNS:
        spark.catalog.dropTempView(name)


def test_what_is_taken_of_the_texts_of_postgres_spark_takes(tables: SparkSession) -> None:
    """But for operands of a wrong type, which only Spark finds."""
    taken, refused = 0, list[str]()
    for query in TEXTS:
        try:
            text = compile_query(query, COLUMNS).full_text
        except StreamTablesError:
            continue
        taken += 1
        now = text.with_edits(at_time(text, "2024-05-05T12:00:00+00:00")).sql
        try:
            tables.sql(now).schema  # noqa: B018
        except PySparkException as error:
            kind = error.getCondition() or ""
            # Spark's DATE_ADD has three arguments if the first is the word for a unit.
            is_date_add = kind.startswith("WRONG_NUM_ARGS") and "date_add(" in query
            if not (OPERANDS.match(kind) or OWN.match(kind) or is_date_add):
                refused.append(f"{query}: {str(error)[:200]}")
    assert taken > len(TEXTS) / 4
    assert not refused, "\n".join(refused)


def test_the_lists_have_all_functions_of_spark(spark: SparkSession) -> None:
    names = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    words = {name for name in names if re.fullmatch(r"\w+", name)}
    assert {name for name in words if not is_of_spark(name)} <= WORDS


@pytest.mark.long
@pytest.mark.parametrize("count", range(5))
def test_spark_takes_as_many_arguments_as_the_lists_say(spark: SparkSession, count: int) -> None:
    """A function that must stand elsewhere, or takes no NULL, fails for another reason."""
    assert len(COUNTED) > 400
    wrong = list[str]()
    for name in sorted(COUNTED):
        try:
            spark.sql(f"SELECT {name}({', '.join(['NULL'] * count)}) AS x").schema  # noqa: B018
        except PySparkException as error:
            counts = (error.getCondition() or "").startswith("WRONG_NUM_ARGS")
        else:
            counts = False
        if counts and takes(name, count):
            wrong.append(f"{name}({count}) is taken")
    assert not wrong


@pytest.mark.parametrize(
    ("query", "fix"),
    [
        ("SELECT id FROM t WHERE s ~ '^a'", "set dialect to postgres"),
        ("SELECT id, x::text AS c FROM t", "write STRING"),
        ("SELECT generate_series(1, id) AS c FROM t", "set dialect to postgres"),
        ("SELECT id FROM {{ source('raw', 'orders') }}", "FROM raw.orders;"),
        ("SELECT summ(x) AS c FROM t", "did you mean sum"),
    ],
)
def test_the_fix_names_what_to_write(query: str, fix: str) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        compile_query(with_clock(tokenize_query(query)), COLUMNS)
    assert fix in refusal.value.fix
