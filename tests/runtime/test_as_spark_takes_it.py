"""FULL and AUTO take what Spark takes, whatever the compiler thinks of it.

The oracle is plain Spark over views of the tables' names: nothing in the text is exchanged.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from compiler import casefile
from compiler.database import _shown
from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.declare.analysis import analyze_tables
from named_rows import NamedRows
from runtime.delta import held, run_on_delta, stored, write
from runtime.orders import orders
from runtime.refreshes import maintained

_TEXTS = casefile.tables("pipes.txt", Path(__file__).parent)
QUERIES, PIPES = ([query for [query] in rows] for rows in _TEXTS.values())
PIPES += QUERIES[3:5]
PIPES += [
    "SELECT /*+ REPARTITION(3) */ customer, COUNT(*) AS n FROM orders WHERE id !> 9 AND id !< 1 "
    'GROUP -- "by\nBY customer HAVING MIN(note) IS /* `x */ NOT /**/ NULL',
]


@pytest.fixture
def tables(spark: SparkSession, lake: Lake) -> Lake:
    tags = pa.array([[1, 2], [], None, [3]] * 5, pa.list_(pa.int64()))
    seen = pa.array([i * 60_000_000 for i in range(20)], pa.timestamp("us", "UTC"))
    rows = orders(*range(20)).append_column("tags", tags).append_column("seen", seen)
    write(lake, "orders", rows, mode="overwrite", schema_mode="overwrite")
    write(lake, "customers", pa.table({"id": [0, 1, 2], "name": ["a", "b", "c"]}))
    return lake


def answer(spark: SparkSession, lake: Lake, query: str) -> NamedRows:
    for name in ("orders", "customers"):
        spark.read.format("delta").load(lake.location(name)).createOrReplaceTempView(name)
    try:
        return NamedRows.of_arrow(spark.sql(query).toArrow(), _shown)
    finally:
        for name in ("orders", "customers"):
            spark.catalog.dropTempView(name)


def declared(lake: Lake, mode: str, queries: list[str]) -> list[StreamTable]:
    tables = [StreamTable(f"t{i}", query, mode=mode) for i, query in enumerate(queries)]
    assert [each.error for each in analyze_tables(tables, lake)] == [None] * len(tables)
    return tables


@pytest.mark.long
def test_a_full_refresh_gives_what_spark_answers(spark: SparkSession, tables: Lake) -> None:
    for table in declared(tables, "FULL", QUERIES):
        tables.refresh(table)
        assert held(tables, table.name) == answer(spark, tables, table.query), table.query


@pytest.mark.parametrize("step", [6, pytest.param(2, marks=pytest.mark.long)])
def test_what_the_compiler_cannot_read_is_followed_in_auto(
    step: int, spark: SparkSession, tables: Lake
) -> None:
    followed = declared(tables, "AUTO", QUERIES[:6:step])
    for table in followed:
        tables.refresh(table)
    run_on_delta(tables, "DELETE FROM orders WHERE id IN (1, 4, 5)")
    for table in followed:
        tables.refresh(table)
        assert held(tables, table.name) == answer(spark, tables, table.query), table.query
        assert tables.check(table).equal


def test_a_query_that_reads_no_table_is_made_once(lake: Lake) -> None:
    table = StreamTable("few", "VALUES (1, 'a'), (2, 'b')", mode="FULL")
    lake.refresh(table)
    assert stored(lake, "few", ["col1", "col2"]) == {("1", "a"): 1, ("2", "b"): 1}
    assert lake.refresh(table).action is Action.NO_DATA


@pytest.mark.long
@pytest.mark.parametrize("query", PIPES)
def test_a_pipe_is_maintained_as_what_spark_answers(
    query: str, spark: SparkSession, tables: Lake
) -> None:
    table = maintained("piped", query)
    assert tables.refresh(table).action is Action.REINITIALIZE
    assert held(tables, "piped") == answer(spark, tables, query)
    run_on_delta(tables, "DELETE FROM orders WHERE id IN (1, 4, 5)")
    run_on_delta(tables, "UPDATE customers SET name = 'z' WHERE id = 1")
    done = tables.refresh(table)
    assert done.action in (Action.DIFFERENTIAL, Action.NO_DATA), done
    assert held(tables, "piped") == answer(spark, tables, query)
    assert tables.check(table).equal


@pytest.mark.long
def test_a_key_by_number_follows_the_order_of_the_columns(
    spark: SparkSession, tables: Lake
) -> None:
    """It counts columns that the query does not read, too."""
    query = "FROM orders |> AGGREGATE COUNT(*) AS n GROUP BY 2 |> SELECT n"
    table = maintained("piped", query)
    tables.refresh(table)
    run_on_delta(tables, "DELETE FROM orders WHERE id = 1")
    assert tables.refresh(table).action is Action.DIFFERENTIAL
    assert tables.check(table).equal
    there = f"delta.`{tables.location('orders')}`"
    [*_, last] = tables.columns("orders") or {}
    spark.sql(f"ALTER TABLE {there} ALTER COLUMN {last} FIRST")
    run_on_delta(tables, "DELETE FROM orders WHERE id = 2")
    assert tables.refresh(table).action is Action.REINITIALIZE
    assert held(tables, "piped") == answer(spark, tables, query)
    assert tables.check(table).equal
