"""Timestamps of DuckDB's dialect in the zone of the session, against DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables.compiler.dialect import translate
from dagster_streamtables.errors import InvalidDefinition
from named_rows import NamedRows
from zones import COLUMNS, ROWS

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
        shown = [(row[0], f"{row[1]}+00", f"{row[2]}+00", *row[3:]) for row in ROWS]
        there.executemany("INSERT INTO z VALUES (?, ?, ?, ?, ?, ?)", shown)
        expected = NamedRows.of_cursor(there.execute(query), _shown)
    values = ", ".join(
        f"({i}, TIMESTAMP '{a}Z', TIMESTAMP '{b}Z', TIMESTAMP_NTZ '{ts}', DATE '{d}', {n})"
        for i, a, b, ts, d, n in ROWS
    )
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    try:
        spark.sql(
            f"SELECT * FROM VALUES {values} AS q(id, a, b, ts, d, n)"
        ).createOrReplaceTempView("z")
        rows = spark.sql(translate(query, "duckdb", COLUMNS)).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.catalog.dropTempView("z")
    found = NamedRows.of_arrow(rows, _shown)
    assert found == expected, found.difference(expected)


def _shown(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


@pytest.mark.parametrize(
    "sql",
    ["coalesce(a, ts)", "greatest(a, '2024-10-27 02:30')", "CASE WHEN n > 0 THEN ts ELSE a END"],
)
def test_times_with_and_without_a_zone_are_not_mixed(sql: str) -> None:
    with pytest.raises(InvalidDefinition, match="the session's zone"):
        translate(f"SELECT {sql} AS x FROM z", "duckdb", COLUMNS)
