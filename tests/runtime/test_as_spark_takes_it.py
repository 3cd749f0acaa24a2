"""FULL and AUTO take what Spark takes, whatever the compiler thinks of it.

The oracle is plain Spark over views of the tables' names: nothing in the text is exchanged.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from compiler import casefile
from compiler.database import _shown
from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.declare.analysis import analyze_tables
from named_rows import NamedRows
from runtime.delta import held, on_spark, run_on_delta, stored, views, write
from runtime.orders import orders
from runtime.refreshes import each_refreshed, maintained, refreshed

_TEXTS = casefile.tables("pipes.txt", Path(__file__).parent)
QUERIES, PIPES = ([query for [query] in rows] for rows in _TEXTS.values())
PIPES += QUERIES[3:5]
PIPES += [
    "SELECT /*+ REPARTITION(3) */ customer, COUNT(*) AS n FROM orders WHERE id !> 9 AND id !< 1 "
    'GROUP -- "by\nBY customer HAVING MIN(note) IS /* `x */ NOT /**/ NULL'
]


@pytest.fixture
def tables(lake: Lake) -> Lake:
    tags = pa.array([[1, 2], [], None, [3]] * 5, pa.list_(pa.int64()))
    seen = pa.array([i * 60_000_000 for i in range(20)], pa.timestamp("us", "UTC"))
    rows = orders(*range(20)).append_column("tags", tags).append_column("seen", seen)
    write(lake, "orders", rows, mode="overwrite", schema_mode="overwrite")
    write(lake, "customers", pa.table({"id": [0, 1, 2], "name": ["a", "b", "c"]}))
    return lake


def is_what_spark_answers(lake: Lake, table: StreamTable) -> bool:
    names = ("orders", "customers")
    spark = views(lake, *names)
    try:
        expected = NamedRows.of_arrow(spark.sql(table.query).toArrow(), _shown)
    finally:
        for name in names:
            spark.catalog.dropTempView(name)
    return held(lake, table.name) == expected


def declared(lake: Lake, mode: str, queries: list[str]) -> list[StreamTable]:
    tables = [StreamTable(f"t{i}", query, mode=mode) for i, query in enumerate(queries)]
    assert [each.error for each in analyze_tables(tables, lake)] == [None] * len(tables)
    return tables


@pytest.mark.long
def test_a_full_refresh_gives_what_spark_answers(tables: Lake) -> None:
    for table in declared(tables, "FULL", QUERIES):
        tables.refresh(table)
        assert is_what_spark_answers(tables, table), table.query


@pytest.mark.parametrize("step", [6, pytest.param(2, marks=pytest.mark.long)])
def test_what_the_compiler_cannot_read_is_followed_in_auto(step: int, tables: Lake) -> None:
    followed = declared(tables, "AUTO", QUERIES[:6:step])
    each_refreshed(tables, *followed)
    run_on_delta(tables, "DELETE FROM orders WHERE id IN (1, 4, 5)")
    for table in followed:
        refreshed(tables, table)
        assert is_what_spark_answers(tables, table), table.query


def test_a_query_that_reads_no_table_is_made_once(lake: Lake) -> None:
    table = StreamTable("few", "VALUES (1, 'a'), (2, 'b')", mode="FULL")
    lake.refresh(table)
    assert stored(lake, "few", ["col1", "col2"]) == {("1", "a"): 1, ("2", "b"): 1}
    assert lake.refresh(table).action is Action.NO_DATA


@pytest.mark.long
@pytest.mark.parametrize("query", PIPES)
def test_a_pipe_is_maintained_as_what_spark_answers(query: str, tables: Lake) -> None:
    table = maintained("piped", query)
    assert tables.refresh(table).action is Action.REINITIALIZE
    assert is_what_spark_answers(tables, table)
    run_on_delta(tables, "DELETE FROM orders WHERE id IN (1, 4, 5)")
    run_on_delta(tables, "UPDATE customers SET name = 'z' WHERE id = 1")
    done = refreshed(tables, table)
    assert done.action in (Action.DIFFERENTIAL, Action.NO_DATA), done
    assert is_what_spark_answers(tables, table)


@pytest.mark.long
def test_a_key_by_number_follows_the_order_of_the_columns(tables: Lake) -> None:
    """It counts columns that the query does not read, too."""
    query = "FROM orders |> AGGREGATE COUNT(*) AS n GROUP BY 2 |> SELECT n"
    table = maintained("piped", query)
    tables.refresh(table)
    run_on_delta(tables, "DELETE FROM orders WHERE id = 1")
    refreshed(tables, table, Action.DIFFERENTIAL)
    [*_, last] = tables.columns("orders") or {}
    on_spark(tables, f"ALTER TABLE {{orders}} ALTER COLUMN {last} FIRST")
    run_on_delta(tables, "DELETE FROM orders WHERE id = 2")
    refreshed(tables, table, Action.REINITIALIZE)
    assert is_what_spark_answers(tables, table)
