"""What is mended and what is refused on the way from another dialect to Spark SQL.

That the mended words mean the same is shown by `runtime/test_dialect.py`, on Spark.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from dagster_streamtables.compiler.dialect import (
    UnknownType,
    check_dialect,
    tables_of,
    translate,
)
from dagster_streamtables.compiler.dialect.experimental_dialects import EXAMINED
from dagster_streamtables.compiler.dialect.query_translation import TESTED
from dagster_streamtables.compiler.text.query_text import read
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.model.stream_table import StreamTable
from pages import DOCS, PROJECT, code, rows

COLUMNS = {
    "t": {
        "id": "int", "x": "int", "b": "bigint", "d": "double", "n": "decimal(10,2)", "r": "float",
        "s": "string", "f": "boolean", "ts": "timestamp", "loc": "timestamp_ntz", "dt": "date",
        "arr": "array<int>",
    }
}  # fmt: skip

MENDED = [
    ("postgres", "x / 2", "x DIV 2"),
    ("postgres", "d / 2", "d / 2"),
    ("postgres", "count(*) / 2", "COUNT(*) DIV 2"),
    ("postgres", "div(x, 2)", "x DIV 2"),
    ("postgres", "round(d)", "RINT(d)"),
    ("postgres", "round(n)", "ROUND(n)"),
    ("postgres", "avg(d)", "AVG(d)"),
    (
        "postgres",
        "log(d)",
        "CASE WHEN d <= 0 THEN CAST('cannot take logarithm of zero or less' AS DOUBLE)"
        " ELSE LOG10(d) END",
    ),
    ("postgres", "CAST(n AS int)", "CAST(ROUND(n) AS INT)"),
    ("postgres", "CAST(s AS varchar(3))", "LEFT(s, 3)"),
    ("postgres", "CAST(id AS text)", "CAST(id AS STRING)"),
    ("postgres", "CAST(s AS timestamp)", "CAST(s AS TIMESTAMP_NTZ)"),
    ("postgres", "CAST(s AS timestamptz)", "CAST(s AS TIMESTAMP)"),
    ("postgres", "dt - dt", "DATEDIFF(dt, dt)"),
    ("postgres", "dt + INTERVAL '1 day'", "CAST(dt AS TIMESTAMP_NTZ) + INTERVAL '1' DAY"),
    ("postgres", "extract(dow from dt)", "((DAYOFWEEK(dt) - 1))"),
    ("postgres", "date_trunc('day', loc)", "CAST(CAST(loc AS DATE) AS TIMESTAMP_NTZ)"),
    (
        "postgres",
        "date_trunc('month', loc)",
        "CAST(TRUNC(CAST(loc AS DATE), 'MONTH') AS TIMESTAMP_NTZ)",
    ),
    (
        "duckdb",
        "date_trunc('minute', loc)",
        "(loc - MAKE_DT_INTERVAL(0, 0, 0, EXTRACT(SECOND FROM loc)))",
    ),
    (
        "postgres",
        "to_char(loc, 'YYYY-MM-DD HH24:MI')",
        "CONCAT(DATE_FORMAT(CAST(loc AS DATE), 'yyyy-MM-dd '), "
        "DATE_FORMAT((CAST('2000-01-01 00:00:00' AS TIMESTAMP_NTZ) + "
        "MAKE_DT_INTERVAL(0, HOUR(loc), MINUTE(loc), EXTRACT(SECOND FROM loc))), 'HH:mm'))",
    ),
    ("postgres", "arr[2]", "GET(arr, 1)"),
    ("postgres", "x = ANY(ARRAY[1, 2])", "(x IN (1, 2))"),
    ("postgres", "(x, id) = (1, 2)", "(x = 1 AND id = 2)"),
    ("postgres", "s ~ 'a.$'", r"(s RLIKE '(?s)a.\\z')"),
    ("postgres", "s SIMILAR TO 'a.%|_'", r"(s RLIKE '(?s)^(?:a\\..*|.)\\z')"),
    ("postgres", "x > ALL (SELECT id FROM t)", "x > ALL (SELECT id FROM t)"),
    (
        "postgres",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x NULLS LAST)",
    ),
    ("duckdb", "x / 2", "CAST(x AS DOUBLE) / 2"),
    ("duckdb", "x // 2", "x DIV 2"),
    ("duckdb", "s LIKE 'a\\%'", r"s LIKE 'a\\\\%'"),
    ("duckdb", "dayofweek(dt)", "(DAYOFWEEK(dt) - 1)"),
    ("duckdb", "date_diff('year', dt, ts)", "(YEAR(ts) - YEAR(dt))"),
    ("duckdb", "quantile_cont(x, 0.5)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"),
    ("snowflake", "IFF(x > 1, 2, 3)", "IF(x > 1, 2, 3)"),
    ("trino", "x / 2", "x DIV 2"),
    ("bigquery", "x / 2", "x / 2"),
    ("bigquery", "x + 0.5", "x + CAST(0.5 AS DOUBLE)"),
    ("mysql", "s COLLATE utf8mb4_bin = 'a'", "s = 'a'"),
    ("tsql", "ISNULL(x, 0)", "COALESCE(x, 0)"),
]

REFUSED = [
    ("postgres", "CAST(d AS text)", '"CAST(d AS TEXT)"', "float", "d"),
    (
        "postgres",
        "regexp_replace(s, 'a|ab', '', 'g')",
        "regexp_replace()",
        "something else",
        "regexp",
    ),
    ("postgres", "s ~ '[[:punct:]]'", "\"s ~ '[[:punct:]]'\"", "Java", "s ~ "),
    ("postgres", "s SIMILAR TO s", '"s SIMILAR TO s"', "Java", "s SIMILAR"),
    ("postgres", "s SIMILAR TO 'a' ESCAPE 'b'", "\"s SIMILAR TO 'a'\"", "Java", "s SIMILAR"),
    ("postgres", "CAST(s AS time)", '"CAST(s AS TIME)"', "only timestamps", "s"),
    ("postgres", "md5(CAST(ts AS time))", "a time of day", "no times of day", "ts"),
    ("postgres", "CAST(ts AS time) + INTERVAL '1 hour'", "arithmetic", "only a date", "ts"),
    ("postgres", "age(ts, ts) = age(ts)", "age()", "cannot store", "age("),
    ("postgres", "json_value(s, 'strict $.a')", '"JSON_VALUE', "lax path", "s"),
    ("postgres", "jsonb_path_exists(s, '$.a.size()')", "jsonb_path_exists()", "lax path", "json"),
    ("postgres", "to_char(ts, 'TZ')", "to_char()", "words of a format", "to_char(ts"),
    (
        "postgres",
        "date_trunc('fortnight', ts)",
        "date_trunc()",
        "truncates differently",
        "date_trunc(",
    ),
    (
        "postgres",
        "extract(year from age(ts, loc))",
        "extract()",
        "in the session's zone",
        "age(ts, loc",
    ),
    ("postgres", "ts AT TIME ZONE 'CET'", "\"ts AT TIME ZONE 'CET'\"", "abbreviations", "ts AT"),
    ("postgres", "arr || '{1}'", "\"arr || '{1}'\"", "as an array", "arr || '{1}'"),
    ("postgres", "s || '{\"a\": 1}'", "", "merges JSON", "s || "),
    ("postgres", "format('%1$s', s)", "format()", "only %s, %L, %I", "format('%1$s'"),
    ("postgres", "to_char(x, '9PR')", "to_char()", "patterns of 9", "to_char(x"),
    ("postgres", "regexp_count(s, 'a*')", "regexp_count()", "empty matches", "regexp_count("),
    ("postgres", "date_bin('1 month', loc, loc)", "date_bin()", "one length", "date_bin("),
    ("postgres", "s -> 'a' ->> -1", "", "from the beginning", "s "),
    ("postgres", "random()", "random()", "another value", "random("),
    ("postgres", "jsonb_build_object(s, x)", "jsonb_build_object()", "constant keys", "jsonb_"),
    ("postgres", "sum(x) OVER (ROWS 1 PRECEDING EXCLUDE TIES)", "EXCLUDE", "no EXCLUDE", "sum(x"),
    ("duckdb", "r / 2", '"r / 2"', "32 bits", "r / 2"),
    ("duckdb", "n // 2", '"n // 2"', "keeps the fraction", "n // 2"),
    ("duckdb", "isnan(d)", "isnan()", "NULL", "isnan(d"),
    ("duckdb", "list_contains(arr, 1)", "array_contains()", "NULLs", "list_contains(arr, 1"),
    ("duckdb", "arr[-1]", "this index", "from 0", "arr"),
    ("snowflake", "x / 2", '"x / 2"', "other digits", "x / 2"),
    ("snowflake", "LAST_VALUE(f) OVER (ORDER BY x ROWS 2 PRECEDING) || s", "", "", ""),
    ("mysql", "s = 'a'", "\"s = 'a'\"", "ignores case", "s = 'a'"),
    ("mysql", "LENGTH(s)", "length()", "bytes", "LENGTH(s"),
    ("tsql", "s + s", '"s + s"', "numbers only", "s + s"),
    ("sqlite", "s LIKE 'a%'", "\"s LIKE 'a%'\"", "ignores the case", "s LIKE 'a%'"),
    ("oracle", "s || 'a'", "\"s || 'a'\"", "NULL for ''", "s || 'a'"),
]

WHOLE = [
    (
        "postgres",
        "SELECT DISTINCT ON (x) x, id FROM t ORDER BY x, ts DESC",
        "SELECT x, id FROM (SELECT x AS x, id AS id, ROW_NUMBER() OVER (PARTITION BY x ORDER BY x"
        " NULLS LAST, ts DESC NULLS FIRST) AS _row_number FROM t) AS _t WHERE _row_number = 1",
    ),
    (
        "postgres",
        "SELECT id, e.v, e.o FROM t"
        " LEFT JOIN LATERAL unnest(arr) WITH ORDINALITY AS e(v, o) ON TRUE",
        "SELECT id, e.v, e.o FROM t LEFT JOIN LATERAL INLINE(TRANSFORM(arr, (st_element, st_place)"
        " -> NAMED_STRUCT('element', st_element, 'place', CAST(st_place + 1 AS BIGINT))))"
        " AS e(v, o) ON TRUE",
    ),
    ("postgres", "SELECT v FROM t, unnest(arr) AS v",
     "SELECT v FROM t, LATERAL EXPLODE(arr) AS v(v)"),
    (
        "postgres",
        "SELECT g FROM t, generate_series(1, 3) AS g",
        "SELECT g FROM t, LATERAL EXPLODE(SEQUENCE(1, 3, 1)) AS g(g)",
    ),
    (
        "postgres",
        "SELECT q.x FROM (WITH t AS (SELECT 1 AS x) SELECT x FROM t) AS q JOIN t ON TRUE",
        "SELECT q.x FROM (WITH t AS (SELECT 1 AS x) SELECT x FROM t) AS q JOIN t ON TRUE",
    ),
    ("tsql", "SELECT TOP 3 [id] FROM t", "SELECT `id` FROM t LIMIT 3"),
    ("snowflake", "SELECT id FROM t QUALIFY RANK() OVER (ORDER BY x DESC) = 1",
     "SELECT id FROM t QUALIFY RANK() OVER (ORDER BY x DESC NULLS FIRST) = 1"),
    ("oracle", "SELECT id FROM t MINUS SELECT x FROM t", "SELECT id FROM t EXCEPT SELECT x FROM t"),
    ("duckdb", "SELECT DISTINCT ON (x) x, -id AS id FROM t ORDER BY 1, 2 DESC",
     "SELECT x, id FROM (SELECT x AS x, -id AS id, ROW_NUMBER() OVER (PARTITION BY x ORDER BY x"
     " NULLS LAST, -t.id DESC) AS _row_number FROM t) AS _t WHERE _row_number = 1"),
    ("duckdb", "SELECT -x AS x, id FROM t ORDER BY abs(x), x LIMIT 3",
     "SELECT -x AS x, id FROM t ORDER BY ABS(t.x) NULLS LAST, x NULLS LAST LIMIT 3"),
    ("duckdb", "SELECT id, ROW_NUMBER() OVER (PARTITION BY x) AS n FROM t",
     "SELECT id, ROW_NUMBER() OVER (PARTITION BY x ORDER BY NULL NULLS LAST) AS n FROM t"),
    ("postgres", "SELECT DISTINCT ON (2) * FROM t ORDER BY 2, id DESC LIMIT 1",
     "SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY `x` ORDER BY `x` NULLS LAST,"
     " id DESC NULLS FIRST) = 1 ORDER BY `x` NULLS LAST, id DESC NULLS FIRST LIMIT 1"),
    ("postgres", "SELECT -x AS x FROM t ORDER BY x FETCH FIRST 3 ROWS WITH TIES",
     "SELECT -x AS x FROM t QUALIFY RANK() OVER (ORDER BY -x NULLS LAST) <= 3"
     " ORDER BY x NULLS LAST"),
    ("postgres", "SELECT DISTINCT x % 2 FROM t ORDER BY x % 2 LIMIT 1",
     "SELECT DISTINCT x % 2 AS `?column?` FROM t ORDER BY 1 NULLS LAST LIMIT 1"),
    ("postgres", "SELECT DISTINCT ON (x) * FROM t ORDER BY x LIMIT 3",
     "SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY x ORDER BY x NULLS LAST) = 1"
     " ORDER BY x NULLS LAST LIMIT 3"),
    ("postgres", "SELECT id FROM t ORDER BY x FETCH FIRST 3 ROWS WITH TIES",
     "SELECT id FROM t QUALIFY RANK() OVER (ORDER BY x NULLS LAST) <= 3 ORDER BY x NULLS LAST"),
    ("postgres", "SELECT count(*), x + 1, x::text, 1 FROM t GROUP BY x",
     "SELECT COUNT(*) AS count, x + 1 AS `?column?`, CAST(x AS STRING) AS x, 1 AS `?column?` FROM t"
     " GROUP BY x"),
    ("postgres", "SELECT id AS größe FROM t", "SELECT id AS `größe` FROM t"),
]  # fmt: skip

REFUSED_WHOLE = [
    ("postgres", "SELECT id FROM t FOR UPDATE", "a locking clause"),
    ("postgres", "SELECT id FROM t TABLESAMPLE SYSTEM (10)", "TABLESAMPLE"),
    ("postgres", 'SELECT id AS "A", x AS "a" FROM t', '"a"'),
    ("postgres", "SELECT unnest(arr) AS a, unnest(arr) AS b FROM t", "unnest()"),
    ("postgres", "SELECT g FROM t, generate_series(1, 9, x) AS g", "generate_series()"),
    ("duckdb", "SELECT id FROM t ASOF JOIN u USING (id)", "ASOF JOIN"),
    ("duckdb", "SELECT id FROM t UNION BY NAME SELECT id FROM u", "BY NAME"),
    ("duckdb", "SELECT * REPLACE (x + 1 AS x) FROM t", '"* REPLACE (x + 1 AS x)"'),
    ("tsql", "SELECT TOP 3 WITH TIES id FROM t ORDER BY x", "WITH TIES"),
    ("oracle", "SELECT t.id FROM t, u WHERE t.id = u.id(+)", "(+)"),
    ("mysql", "SELECT s, COUNT(*) AS n FROM t GROUP BY s", '"GROUP BY s"'),
    ("snowflake", "SELECT id FROM t, LATERAL FLATTEN(arr) AS e", ""),
]


def translated(sql: str, dialect: str) -> str:
    printed = " ".join(translate(sql, dialect, COLUMNS).split())
    return printed.replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize(("dialect", "expression", "spark"), MENDED)
def test_a_word_with_another_meaning_is_mended(dialect: str, expression: str, spark: str) -> None:
    assert translated(f"SELECT {expression} AS c FROM t", dialect) == f"SELECT {spark} AS c FROM t"


@pytest.mark.parametrize(("dialect", "sql", "spark"), WHOLE)
def test_a_clause_with_another_meaning_is_mended(dialect: str, sql: str, spark: str) -> None:
    assert translated(sql, dialect) == spark
    read(translate(sql, dialect, COLUMNS))


@pytest.mark.parametrize(("dialect", "expression", "what", "why", "marked"), REFUSED)
def test_a_word_without_an_exact_translation_is_refused_in_its_place(
    dialect: str, expression: str, what: str, why: str, marked: str
) -> None:
    sql = f"SELECT id,\n  {expression} AS c\nFROM t"
    with pytest.raises(InvalidDefinition) as raised:
        translate(sql, dialect, COLUMNS)
    error = raised.value
    assert what in error.what
    assert why in error.why
    assert error.fix
    place, line, carets = error.where.splitlines()
    assert place.startswith("line 2")
    begin = carets.index("^")
    assert line[begin:].startswith(marked)


@pytest.mark.parametrize(("dialect", "sql", "what"), REFUSED_WHOLE)
def test_a_clause_without_an_exact_translation_is_refused(
    dialect: str, sql: str, what: str
) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        translate(sql, dialect, COLUMNS)
    assert raised.value.what.startswith(what)
    assert f"be translated from {dialect}" in raised.value.what
    assert raised.value.why
    assert raised.value.fix


@pytest.mark.parametrize(
    ("dialect", "ascending", "descending"),
    [
        *((name, "x NULLS LAST", "x DESC NULLS FIRST")
          for name in ("postgres", "snowflake", "oracle", "redshift")),
        *((name, "x NULLS LAST", "x DESC") for name in ("duckdb", "trino", "presto")),
        *((name, "x", "x DESC") for name in ("mysql", "bigquery", "tsql", "sqlite", "databricks")),
    ],
)  # fmt: skip
def test_where_nulls_are_sorted_is_said(dialect: str, ascending: str, descending: str) -> None:
    for order, printed in (("x", ascending), ("x DESC", descending)):
        assert translated(f"SELECT id FROM t ORDER BY {order}", dialect).endswith(f"BY {printed}")
        ranked = translated(f"SELECT RANK() OVER (ORDER BY {order}) AS r FROM t", dialect)
        assert f"OVER (ORDER BY {printed})" in ranked


def test_a_type_comes_from_the_text_where_no_column_tells_it() -> None:
    assert "COUNT(*) DIV 2" in translate("SELECT count(*) / 2 AS c FROM t", "postgres")
    assert "LENGTH(s) DIV 2" in translate("SELECT length(s) / 2 AS c FROM t", "postgres")
    with pytest.raises(UnknownType, match='"x / 2" cannot be translated from postgres'):
        translate("SELECT x / 2 AS c FROM t", "postgres")


def test_a_type_goes_through_subqueries_aliases_and_renamed_columns() -> None:
    sql = """
        WITH a AS (SELECT x AS k, sum(x) AS total, avg(d) AS m FROM t GROUP BY x)
        SELECT a.k / 2 AS c1, a.total / 2 AS c2, m / 2 AS c3, v / 2 AS c4, w / 2 AS c5,
          (SELECT max(b) FROM t) / 2 AS c6
        FROM a JOIN (SELECT d, id FROM t) AS q(v, w) ON TRUE
    """
    spark = translated(sql, "postgres")
    for part in ("a.k DIV 2", "a.total DIV 2", "m / 2", "v / 2", "w DIV 2", ") DIV 2 AS c6"):
        assert part in spark


@pytest.mark.parametrize("columns", [None, {"t": {"x": "int"}}])
def test_a_type_is_not_known_of_a_column_that_only_an_alias_names(columns: Any) -> None:
    with pytest.raises(UnknownType, match='"b / 2" cannot be translated from postgres'):
        translate("SELECT b / 2 AS c FROM t AS q (a, b)", "postgres", columns)


def test_a_type_goes_through_stars() -> None:
    sql = """
        WITH a AS (SELECT * FROM t), c AS (SELECT a.*, a.x AS k FROM a)
        SELECT k / 2 AS c1, c.x / 2 AS c2, q.x / 2 AS c3, l.w / 2 AS c4
        FROM c JOIN (SELECT * FROM t) AS q USING (id) CROSS JOIN LATERAL (SELECT c.x AS w) AS l
    """
    spark = translated(sql, "postgres")
    for part in ("k DIV 2", "c.x DIV 2", "q.x DIV 2", "l.w DIV 2"):
        assert part in spark
    assert "FORMAT_STRING" in translated("SELECT d::numeric(9, 2) AS c FROM (SELECT * FROM t) AS q",
                                         "postgres")  # fmt: skip


def test_spark_is_given_back_as_it_is() -> None:
    sql = "SELECT  x /* as it is */ FROM t -- all of it"
    assert translate(sql, "spark") == sql


def test_the_tables_of_a_query_are_found_without_translating_it() -> None:
    sql = "SELECT x / 2 AS c FROM sales.o, unnest(arr) AS e JOIN LATERAL (SELECT 1 FROM u) ON TRUE"
    assert tables_of(sql, "postgres") == ("sales.o", "u")
    joined = (
        "WITH d AS (SELECT 1) SELECT * FROM ((a CROSS JOIN b) CROSS JOIN d CROSS JOIN e) AS t (x)"
    )
    assert tables_of(joined, "postgres") == ("a", "b", "e")


def test_every_dialect_is_listed_with_what_it_promises_and_its_tests() -> None:
    promised = {
        dialect: (support.split(":")[0], code(tests))
        for dialects, support, tests in rows((DOCS / "sql.md").read_text(), "dialect")
        for dialect in code(dialects)
    }
    assert {each for each, (support, _) in promised.items() if support == "tested"} == set(TESTED)
    experimental = {each for each, (support, _) in promised.items() if support == "experimental"}
    assert experimental == EXAMINED, "correct the table of dialects in docs/sql.md"
    assert all((PROJECT / test).exists() for _, tests in promised.values() for test in tests)


@pytest.mark.process
def test_an_experimental_dialect_is_warned_of_once_when_the_code_location_loads() -> None:
    program = """
from dagster_streamtables import StreamTable, StreamTablesResource, View, build_definitions
build_definitions(
    resource=StreamTablesResource(root="lake"),
    views=[View("v", "SELECT 1 AS a", dialect="mysql")],
    tables=[
        *(StreamTable(n, "SELECT 1 AS a", dialect="snowflake") for n in ("a", "b")),
        *(StreamTable(n, "SELECT 1 AS a", dialect=n) for n in ("spark", "postgres", "duckdb")),
    ],
)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    warned = re.findall(r"ExperimentalDialect: the dialect (\w+) is experimental", said.stderr)
    assert sorted(warned) == ["mysql", "snowflake"]


def test_a_dialect_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidDefinition) as raised:
        check_dialect("postgresql")
    assert raised.value.fix == "did you mean postgres?"
    with pytest.raises(InvalidDefinition) as raised:
        StreamTable("mart.t", "SELECT 1 AS a", dialect="duck")
    assert raised.value.what == 'stream table "mart.t": there is no SQL dialect "duck"'


def test_a_dialect_that_nobody_examined_is_refused_when_the_table_is_defined() -> None:
    with pytest.raises(InvalidDefinition) as raised:
        StreamTable("mart.t", "SELECT 1 AS a", dialect="clickhouse")
    what = 'queries in the SQL dialect "clickhouse" cannot be translated'
    assert raised.value.what == f'stream table "mart.t": {what}'
    assert "the dialects are athena, bigquery, databricks, doris" in raised.value.why


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT x FROM", "the query cannot be parsed"),
        ("SELECT 'a", "the query cannot be parsed"),
        ("SELECT 1; SELECT 2", "the text holds 2 statements"),
        ("DELETE FROM t", "DELETE does not begin a query"),
    ],
)
def test_a_text_that_is_no_query_is_refused(sql: str, what: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        translate(sql, "postgres")
    assert raised.value.what == what
    assert raised.value.where.startswith("line 1")
