"""Translated queries mean on Spark what they mean where they come from.

What is expected was not computed here: each list is what Postgres or DuckDB gives; see
`test_postgres`. Compared with DuckDB itself are statistics of pairs, also of values that are all
alike, and timestamps in the zone of the session.
"""

from __future__ import annotations

from ast import literal_eval
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from compiler.casefile import tables
from dagster_streamtables.compiler.dialect import translate
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.spark.settings import settings_for_now
from named_rows import NamedRows
from zones import COLUMNS, ROWS as ZONED

ROWS = """
    (1, 7, 2, 70L, 0.5D, 1.25BD, 'abc', TRUE, TIMESTAMP_NTZ '2024-01-31 10:30:45.123456',
     DATE '2024-01-31', ARRAY(1, 2, 3)),
    (2, -7, 2, -70L, -2.5D, -2.50BD, 'Ab', FALSE, TIMESTAMP_NTZ '2023-12-31 23:59:59',
     DATE '2023-12-31', CAST(ARRAY() AS ARRAY<INT>)),
    (3, 0, 3, 0L, 3.5D, 0.10BD, '', NULL, TIMESTAMP_NTZ '2024-02-29 00:00:00', DATE '2024-02-29',
     ARRAY(5, NULL, 7)),
    (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""
TYPES = {
    "id": "int", "x": "int", "y": "int", "b": "bigint", "d": "double", "n": "decimal(3,2)",
    "s": "string", "f": "boolean", "ts": "timestamp_ntz", "dt": "date", "arr": "array<int>",
}  # fmt: skip
POSTGRES, DUCKDB, QUERIES = (
    [(sql, literal_eval(values)) for sql, values in rows]
    for rows in tables("dialects.txt", Path(__file__).parent).values()
)


@pytest.mark.smoke("other dialects")
def test_translated_queries_give_the_rows_of_the_database_they_are_from(
    spark: SparkSession,
) -> None:
    spark.sql(f"SELECT * FROM VALUES {ROWS} AS t({', '.join(TYPES)})").createOrReplaceTempView("t")
    for dialect, expressions in (("postgres", POSTGRES), ("duckdb", DUCKDB)):
        columns = ", ".join(f"{sql} AS c{place}" for place, (sql, _) in enumerate(expressions))
        sql = translate(f"SELECT id, {columns} FROM t ORDER BY id", dialect, {"t": TYPES})
        found = list(zip(*map(shown, spark.sql(sql).collect()), strict=True))[1:]
        for (expression, expected), values in zip(expressions, found, strict=True):
            assert list(values) == expected, (dialect, expression, sql)
    for query, rows in QUERIES:
        sql = translate(query, "postgres", {"t": TYPES})
        assert sorted(map(shown, spark.sql(sql).collect()), key=str) == sorted(rows, key=str), sql


def shown(row: Any) -> tuple[Any, ...]:
    """The values of a row as they are written above: the same number is the same in any type."""
    return tuple(map(_shown, row))


def _shown(value: Any) -> Any:
    if isinstance(value, date):
        return str(value)
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and value == int(value):
        return int(value)
    return round(value, 15) if isinstance(value, float) else value


PAIRED = """
    (1, 1, 2), (1, 1, 3), (2, 1, 5), (2, 2, 5), (3, 1, 1), (4, 1, NULL), (5, 0.1, 0.1),
    (5, 0.1, 0.1), (6, 1, 2), (6, 2, 3.5), (6, 4, 3), (7, NULL, NULL)
"""
PAIRS = ["corr(x, y)", "corr(x, y) FILTER (WHERE x > 1)", "regr_slope(x, y)", "regr_r2(x, y)",
         "covar_pop(x, y)", "covar_samp(x, y)"]  # fmt: skip
STATISTICS = [
    f"SELECT g, {', '.join(f'{sql} AS c{i}' for i, sql in enumerate(PAIRS))} FROM v GROUP BY g",
    "SELECT g, corr(x, y) OVER (PARTITION BY g) AS c FROM v",
]


@pytest.mark.parametrize("query", STATISTICS)
def test_statistics_of_pairs_are_those_of_duckdb(spark: SparkSession, query: str) -> None:
    with duckdb.connect() as there:
        there.execute("CREATE TABLE v (g INT, x DOUBLE, y DOUBLE)")
        there.execute(f"INSERT INTO v VALUES {PAIRED}")
        expected = NamedRows.of_cursor(there.execute(query), _twelve_digits)
    columns = {"v": {"g": "int", "x": "double", "y": "double"}}
    rows = spark.sql(f"SELECT * FROM VALUES {PAIRED} AS v(g, x, y)")
    rows.selectExpr("g", "DOUBLE(x) AS x", "DOUBLE(y) AS y").createOrReplaceTempView("v")
    found = NamedRows.of_spark(spark.sql(translate(query, "duckdb", columns)), _twelve_digits)
    assert found == expected, found.difference(expected)


def _twelve_digits(value: float | None) -> str:
    """Twelve digits: the sums are made in another order."""
    return str(value) if value is None else f"{value:.12g}"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v.x, w.* FROM v, (VALUES (1, 2), (3, 4)) AS w",
        "SELECT v.x, w.col0 FROM v JOIN (VALUES (1, 2)) AS w ON w.col1 = v.y",
        "SELECT v.x, w.k, w.col1 FROM v JOIN (VALUES (1, 2)) AS w(k) ON w.col1 = v.y",
        "VALUES (1, 2) UNION ALL SELECT x, y FROM v",
        "WITH w AS (VALUES (1, 2)) SELECT v.x, w.* FROM v, w",
        "SELECT x FROM v WHERE y IN (VALUES (2), (7))",
        "SELECT x FROM v WHERE y > (SELECT max(col0) FROM (VALUES (1), (2)))",
    ],
)
def test_columns_of_values_have_the_names_of_duckdb(spark: SparkSession, query: str) -> None:
    with duckdb.connect() as there:
        there.execute("CREATE TABLE v AS FROM (VALUES (1, 2), (3, 4), (5, 1)) AS v(x, y)")
        expected = NamedRows.of_cursor(there.execute(query), str)
    rows = spark.sql("SELECT * FROM VALUES (1, 2), (3, 4), (5, 1) AS v(x, y)")
    rows.createOrReplaceTempView("v")
    translated = spark.sql(translate(query, "duckdb", {"v": {"x": "int", "y": "int"}}))
    found = NamedRows.of_spark(translated, str)
    assert found == expected, found.difference(expected)


ZONE = "Europe/Berlin"
EXPRESSIONS = [
    "a + INTERVAL 24 HOUR", "a - INTERVAL '36' HOURS", "a + INTERVAL 5 HOUR",
    "a + n * INTERVAL 1 HOUR", "a + n * INTERVAL 1 DAY", "a + INTERVAL 1 MONTH",
    "a - b > INTERVAL 24 HOUR", "CAST(ts AS TIMESTAMPTZ)", "CAST(d AS TIMESTAMPTZ)", "a = ts",
    "a <> ts", "ts < a", "a >= ts", "a > d", "date_trunc('day', a)", "CAST(a AS DATE)",
    "TIMESTAMPTZ '2024-10-27 02:30'", "ts + INTERVAL 24 HOUR", "d + INTERVAL 36 HOUR",
    *(f"date_trunc('{unit}', {value})" for unit in ("second", "minute", "hour", "week", "quarter")
      for value in ("a", "ts")),
    "strftime(ts, '%Y-%m-%d %H:%M:%S')", "strftime(a, '%Y-%m-%d %H:%M:%S')", "a - b", "b - a",
    "a - ts", "a - b > INTERVAL 23 HOUR", "a > '2024-10-27 02:30:00'", "a BETWEEN ts AND b",
    "a IN (ts, b)", "a BETWEEN '2024-10-27 02:30' AND '2024-11-03 01:30'",
]  # fmt: skip


def test_expressions_are_those_of_duckdb(spark: SparkSession) -> None:
    query = "SELECT id, " + ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(EXPRESSIONS))
    query += " FROM z ORDER BY id"
    with duckdb.connect() as there:
        there.execute(f"SET TimeZone = '{ZONE}'")
        there.execute("CREATE TABLE z (id INT, a TIMESTAMPTZ, b TIMESTAMPTZ, ts TIMESTAMP,"
                      " d DATE, n INT)")  # fmt: skip
        shown = [(row[0], f"{row[1]}+00", f"{row[2]}+00", *row[3:]) for row in ZONED]
        there.executemany("INSERT INTO z VALUES (?, ?, ?, ?, ?, ?)", shown)
        expected = NamedRows.of_cursor(there.execute(query), _in_utc)
    values = ", ".join(
        f"({i}, TIMESTAMP '{a}Z', TIMESTAMP '{b}Z', TIMESTAMP_NTZ '{ts}', DATE '{d}', {n})"
        for i, a, b, ts, d, n in ZONED
    )
    with settings_for_now(spark, {"spark.sql.session.timeZone": ZONE}):
        zoned = spark.sql(f"SELECT * FROM VALUES {values} AS q(id, a, b, ts, d, n)")
        zoned.createOrReplaceTempView("z")
        rows = spark.sql(translate(query, "duckdb", COLUMNS)).toArrow()
    spark.catalog.dropTempView("z")
    found = NamedRows.of_arrow(rows, _in_utc)
    assert found == expected, found.difference(expected)


def _in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


@pytest.mark.parametrize(
    "sql",
    ["coalesce(a, ts)", "greatest(a, '2024-10-27 02:30')", "CASE WHEN n > 0 THEN ts ELSE a END"],
)
def test_times_with_and_without_a_zone_are_not_mixed(sql: str) -> None:
    with pytest.raises(InvalidDefinition, match="the session's zone"):
        translate(f"SELECT {sql} AS x FROM z", "duckdb", COLUMNS)
