"""The columns of a stream table are called as Spark calls those of the query, as it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from compiler import casefile
from compiler.database import TABLES
from compiler.test_output_names import NAMES
from dagster_streamtables import Lake, StreamTable, subscribe
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.runtime.delta.quote import spark_name
from runtime.refreshes import refreshed

# Spark has no recursion by UNION, and no ANY and ALL of a subquery.
_BEYOND_SPARK = re.compile(r"RECURSIVE .* UNION (?!ALL)|[=<>] (ANY|ALL|SOME)\b", flags=re.S)
cases = [case for case in casefile.load() if not (case.error or _BEYOND_SPARK.search(case.query))]
FEW = [case for i, case in enumerate(cases) if i % 25 == 0 or case.file == "pipes"]

JOINED = "FROM orders AS o JOIN customers AS c ON o.customer = c.id |> EXTEND o.amount + 1 AS v "
QUERIES = (
    JOINED + "|> SELECT c.region, v",
    JOINED + "|> SELECT DISTINCT V, `v` + 0 AS w",
    JOINED + "|> EXTEND o.amount AS one |> SELECT one, v AS two, (v)AS three, 1 + v four",
    JOINED + "|> EXTEND v * 2 AS `Twice` |> WHERE v > 1 |> SELECT `twice`, v",
    JOINED + "|> AGGREGATE COUNT(*) AS n GROUP BY v",
    JOINED + "|> AGGREGATE SUM(v) AS s GROUP BY c.region, v AS k |> SELECT k, S",
    JOINED + "|> AGGREGATE COUNT(*) AS n GROUP BY v |> JOIN regions ON v = 6 |> SELECT v, name",
    "FROM orders |> AGGREGATE SUM(amount) AS Total GROUP BY Customer",
    "SELECT * FROM (SELECT ID, amount AS `Total` FROM orders)",
    "SELECT * FROM (SELECT id, amount FROM orders) AS t(Number, Paid)",
    "WITH w AS (SELECT CAST(id AS STRING), 7, amount AS _col_0 FROM orders) SELECT * FROM w",
)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    """The tables of the cases, without rows."""
    for name, columns in TABLES.items():
        ddl = ", ".join(f"{spark_name(column)} {type_}" for column, type_ in columns.items())
        spark.createDataFrame([], ddl).createOrReplaceTempView(name)
    yield spark
    for name in TABLES:
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("query", [*QUERIES, *(case.query for case in FEW)])
def test_names(query: str, tables: SparkSession) -> None:
    assert list(compile_query(query, TABLES).schema) == tables.sql(query).columns


@pytest.mark.long
@pytest.mark.parametrize("case", cases, ids=str)
def test_names_of_every_case(case: casefile.Case, tables: SparkSession) -> None:
    assert list(compile_query(case.query, TABLES).schema) == tables.sql(case.query).columns


@pytest.mark.long
@pytest.mark.parametrize("query", NAMES)
def test_spark_gives_these_names_to_columns_without_one(query: str, tables: SparkSession) -> None:
    assert tables.sql(query).columns == NAMES[query]


@pytest.mark.smoke("names of output columns")
def test_what_is_stored_and_told_has_these_names(tables: SparkSession, lake: Lake) -> None:
    query = JOINED.replace("amount + 1", "amount") + "|> SELECT o.id AS o, V"
    for name in ("orders", "customers"):
        tables.table(name).write.format("delta").mode("overwrite").option(
            "overwriteSchema", "true"
        ).save(lake.location(name))
    refreshed(lake, StreamTable("t", query))
    assert list(lake.columns("t") or {})[:2] == ["o", "V"]
    with subscribe(lake, query) as changes:
        assert changes.fetch(None, timeout=0).column_names[2:] == ["o", "V"]
