"""Translated queries mean on Spark what they mean where they come from.

What is expected was not computed here: each list is what Postgres or DuckDB gives; see
`test_postgres`. Compared with DuckDB itself are statistics of pairs, also of values that are all
alike, and timestamps in the zone of the session.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

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

Values = list[Any]
POSTGRES: list[tuple[str, Values]] = [
    ("x / y", [3, -3, 0, None]),
    ("x / 2 + b / 3", [26, -26, 0, None]),
    ("coalesce(x, 0) / 2", [3, -3, 0, 0]),
    ("x::double precision / y", [3.5, -3.5, 0, None]),
    ("round(d)", [0, -2, 4, None]),
    ("round(n, 1)", [1.3, -2.5, 0.1, None]),
    ("round(x) / 2", [3.5, -3.5, 0, None]),
    ("ceil(d) / 2", [0.5, -1, 2, None]),
    ("trunc(d)", [0, -2, 3, None]),
    ("log(100)", [2, 2, 2, 2]),
    ("log(2, 8)", [3, 3, 3, 3]),
    ("n::int", [1, -3, 0, None]),
    ("d::int", [0, -2, 4, None]),
    ("n::numeric", [1.25, -2.5, 0.1, None]),
    ("s::varchar(2)", ["ab", "Ab", "", None]),
    ("id::text || '-' || s", ["1-abc", "2-Ab", "3-", None]),
    ("concat(s, x, NULL)", ["abc7", "Ab-7", "0", ""]),
    ("left(s, 1)", ["a", "A", "", None]),
    ("substring(s from 2 for 2)", ["bc", "b", "", None]),
    ("regexp_replace(s, '[abc]', '<\\&>', 'g')", ["<a><b><c>", "A<b>", "", None]),
    ("s ~ '^a.*c$'", [True, False, False, None]),
    ("s ~* '^A'", [True, True, False, None]),
    ("s LIKE 'A%'", [False, True, False, None]),
    ("s ILIKE 'A%'", [True, True, False, None]),
    ("s SIMILAR TO '_*c|A%|.'", [True, True, False, None]),
    ("extract(dow from ts)", [3, 0, 4, None]),
    ("extract(isodow from dt)", [3, 7, 4, None]),
    ("extract(year from ts)", [2024, 2023, 2024, None]),
    ("dt - DATE '2024-01-01'", [30, -1, 59, None]),
    ("dt + 1", ["2024-02-01", "2024-01-01", "2024-03-01", None]),
    (
        "dt + INTERVAL '1 month'",
        ["2024-02-29 00:00:00", "2024-01-31 00:00:00", "2024-03-29 00:00:00", None],
    ),
    (
        "date_trunc('week', ts)",
        ["2024-01-29 00:00:00", "2023-12-25 00:00:00", "2024-02-26 00:00:00", None],
    ),
    (
        "to_char(ts, 'YYYY-MM-DD HH24:MI:SS')",
        ["2024-01-31 10:30:45", "2023-12-31 23:59:59", "2024-02-29 00:00:00", None],
    ),
    ("arr[1]", [1, None, 5, None]),
    ("arr[10]", [None, None, None, None]),
    ("array_length(arr, 1)", [3, None, 3, None]),
    ("cardinality(arr)", [3, 0, 3, None]),
    ("array_position(arr, 2)", [2, None, None, None]),
    ("x = ANY(arr)", [False, False, None, None]),
    ("x = ANY(ARRAY[7, 9])", [True, False, False, None]),
    ("x <> ALL(ARRAY[7, 9])", [False, True, True, None]),
    ("(x, y) = (7, 2)", [True, False, False, None]),
    ("(x, y) IN ((7, 2), (-7, NULL))", [True, None, False, None]),
    ("x IN (7, NULL)", [True, None, None, None]),
    ("greatest(x, y, NULL)", [7, 2, 3, None]),
    ("f IS NOT TRUE", [False, True, True, True]),
    ("row_number() OVER (ORDER BY x DESC)", [2, 4, 3, 1]),
    ("avg(x) OVER () / 2", [0, 0, 0, 0]),
    ("sum(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", [7, 0, -7, 0]),
]
DUCKDB: list[tuple[str, Values]] = [
    ("x / y", [3.5, -3.5, 0, None]),
    ("n / 3", [0.416666666666667, -0.833333333333333, 0.033333333333333, None]),
    ("x // 2", [3, -3, 0, None]),
    ("round(d)", [1, -3, 4, None]),
    ("n::int", [1, -3, 0, None]),
    ("d::int", [0, -2, 4, None]),
    ("log(100)", [2, 2, 2, 2]),
    ("s LIKE 'a\\b%'", [False, False, False, None]),
    ("s LIKE 'A%'", [False, True, False, None]),
    ("regexp_replace(s, '(a)|b', '<\\1>', 'g')", ["<a><>c", "A<>", "", None]),
    ("regexp_matches(s, 'c$')", [True, False, False, None]),
    ("regexp_extract(s, 'b.?')", ["bc", "b", "", None]),
    ("strftime(ts, '%d/%m/%Y')", ["31/01/2024", "31/12/2023", "29/02/2024", None]),
    ("dayofweek(ts)", [3, 0, 4, None]),
    ("isodow(dt)", [3, 7, 4, None]),
    ("week(ts)", [5, 52, 9, None]),
    ("date_diff('month', dt, DATE '2024-03-01')", [2, 3, 1, None]),
    ("date_diff('year', dt, DATE '2024-03-01')", [0, 1, 0, None]),
    ("date_diff('day', ts, TIMESTAMP '2024-03-01')", [30, 61, 1, None]),
    (
        "date_trunc('month', ts)",
        ["2024-01-01 00:00:00", "2023-12-01 00:00:00", "2024-02-01 00:00:00", None],
    ),
    ("arr[1]", [1, None, 5, None]),
    ("arr[10]", [None, None, None, None]),
    ("len(arr)", [3, 0, 3, None]),
    ("len(s)", [3, 2, 0, None]),
    ("array_position(arr, 2)", [2, None, None, None]),
    ("x IN [7, 9]", [True, False, False, None]),
    ("s || id", ["abc1", "Ab2", "3", None]),
    ("concat(s, x, NULL)", ["abc7", "Ab-7", "0", ""]),
    ("row_number() OVER (ORDER BY x)", [3, 1, 2, 4]),
]
QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT id, x FROM t ORDER BY x LIMIT 2", [(2, -7), (3, 0)]),
    ("SELECT id, x FROM t ORDER BY x DESC LIMIT 2", [(4, None), (1, 7)]),
    ("SELECT DISTINCT ON (y) y, id FROM t ORDER BY y, id DESC", [(2, 2), (3, 3), (None, 4)]),
    ("SELECT string_agg(s, ',' ORDER BY id DESC) AS a FROM t", [(",Ab,abc",)]),
    (
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS c,"
        " percentile_disc(0.5) WITHIN GROUP (ORDER BY d DESC) AS d FROM t",
        [(0, 0.5)],
    ),
    (
        "SELECT t.id, e.v, e.o FROM t LEFT JOIN LATERAL unnest(t.arr) WITH ORDINALITY AS e(v, o)"
        " ON TRUE",
        [(1, 1, 1), (1, 2, 2), (1, 3, 3), (2, None, None), (3, 5, 1), (3, None, 2), (3, 7, 3),
         (4, None, None)],
    ),
    (
        "SELECT t.id, g.i FROM t, generate_series(1, 2) AS g(i) WHERE id < 3",
        [(1, 1), (1, 2), (2, 1), (2, 2)],
    ),
    ("SELECT t.id FROM t JOIN (WITH t AS (SELECT 2 AS id) SELECT id FROM t) AS q USING (id)",
     [(2,)]),
    ("SELECT avg(n::float8) AS m, sum(x) / count(*) AS q FROM t", [(-0.383333333333333, 0)]),
]  # fmt: skip


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
