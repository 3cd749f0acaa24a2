"""Statistics of pairs under DuckDB's dialect, against DuckDB: also of values that are all alike."""

from __future__ import annotations

import duckdb
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables.compiler.dialect import translate
from named_rows import NamedRows

ROWS = """
    (1, 1, 2), (1, 1, 3), (2, 1, 5), (2, 2, 5), (3, 1, 1), (4, 1, NULL), (5, 0.1, 0.1),
    (5, 0.1, 0.1), (6, 1, 2), (6, 2, 3.5), (6, 4, 3), (7, NULL, NULL)
"""
PAIRS = ["corr(x, y)", "corr(x, y) FILTER (WHERE x > 1)", "regr_slope(x, y)", "regr_r2(x, y)",
         "covar_pop(x, y)", "covar_samp(x, y)"]  # fmt: skip
QUERIES = [
    f"SELECT g, {', '.join(f'{sql} AS c{i}' for i, sql in enumerate(PAIRS))} FROM v GROUP BY g",
    "SELECT g, corr(x, y) OVER (PARTITION BY g) AS c FROM v",
]


@pytest.mark.parametrize("query", QUERIES)
def test_statistics_of_pairs_are_those_of_duckdb(spark: SparkSession, query: str) -> None:
    with duckdb.connect() as there:
        there.execute("CREATE TABLE v (g INT, x DOUBLE, y DOUBLE)")
        there.execute(f"INSERT INTO v VALUES {ROWS}")
        expected = NamedRows.of_cursor(there.execute(query), _shown)
    columns = {"v": {"g": "int", "x": "double", "y": "double"}}
    rows = spark.sql(f"SELECT * FROM VALUES {ROWS} AS v(g, x, y)")
    rows.selectExpr("g", "DOUBLE(x) AS x", "DOUBLE(y) AS y").createOrReplaceTempView("v")
    found = NamedRows.of_spark(spark.sql(translate(query, "duckdb", columns)), _shown)
    assert found == expected, found.difference(expected)


def _shown(value: float | None) -> str:
    """Twelve digits: the sums are made in another order."""
    return str(value) if value is None else f"{value:.12g}"
