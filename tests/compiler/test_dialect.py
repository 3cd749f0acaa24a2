"""What is mended and what is refused on the way from another dialect to Spark SQL.

That the mended words mean the same is shown by `runtime/test_dialect.py`, on Spark.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from compiler import casefile
from dagster_streamtables.compiler.dialect import UnknownType, check_dialect, tables_of, translate
from dagster_streamtables.compiler.dialect.experimental_dialects import EXAMINED
from dagster_streamtables.compiler.dialect.query_translation import TESTED
from dagster_streamtables.compiler.dialect.rules.patterns import (
    groups,
    has_letters,
    java_format,
    java_pattern,
    java_replacement,
    matches_nothing,
    one_way,
)
from dagster_streamtables.compiler.text.query_text import read
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.model.stream_table import StreamTable
from own_process import python
from pages import DOCS, PROJECT, code, rows

COLUMNS = {
    "t": {
        "id": "int", "x": "int", "b": "bigint", "d": "double", "n": "decimal(10,2)", "r": "float",
        "s": "string", "f": "boolean", "ts": "timestamp", "loc": "timestamp_ntz", "dt": "date",
        "arr": "array<int>",
    }
}  # fmt: skip

MENDED, WHOLE, REFUSED, REFUSED_WHOLE = casefile.tables("dialects.txt").values()


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
    said = python("-c", program)
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
        ("SELECT 1; SELECT 2", "the text contains 2 statements"),
        ("DELETE FROM t", "DELETE does not begin a query"),
    ],
)
def test_a_text_that_is_no_query_is_refused(sql: str, what: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        translate(sql, "postgres")
    assert raised.value.what == what
    assert raised.value.where.startswith("line 1")


@pytest.mark.parametrize(
    ("pattern", "posix", "java"),
    [
        ("abc", True, "abc"),
        ("^a.c$", True, r"(?s)^a.c\z"),
        ("^a.c$", False, r"(?d)^a.c\z"),
        (r"\d{2,3}-\s", True, r"[0-9]{2,3}-[\t\n\x0B\f\r ]"),
        (r"\w", True, None),
        (r"\w+", False, "[A-Za-z0-9_]+"),
        ("[^a-z]", True, "[^a-z]"),
        ("[[:alpha:]]", True, None),
        ("[[:digit:]x]", True, "[0-9x]"),
        ("[[:punct:]]", True, None),
        (r"[\\d]", True, r"[\\d]"),
        (r"[\\\d]", True, r"[\\0-9]"),
        ("a(?=b)", True, "a(?=b)"),
        ("(?<=a)b", True, None),
        ("a++", True, None),
        ("*a", True, None),
        ("(?i)a", True, None),
        (r"\yword", True, None),
        ("a{", True, None),
    ],
)
def test_a_pattern_is_javas_or_none(pattern: str, posix: bool, java: str | None) -> None:
    assert java_pattern(pattern, posix=posix) == java


def test_letters_are_those_of_unicode_where_they_are_known() -> None:
    known = {
        r"\w": r"[\p{IsAlphabetic}0-9_]", r"\W": r"[^\p{IsAlphabetic}0-9_]",
        "[^[:upper:]-]": r"[^\p{IsUppercase}-]", r"\Aa\Z": r"\Aa\z",
    }  # fmt: skip
    assert {each: java_pattern(each, posix=True, letters=True) for each in known} == known
    assert [has_letters(each) for each in (r"\y", "[[:lower:]]", r"\d[[:digit:]]")] == [
        True,
        True,
        False,
    ]
    assert java_pattern(r"\y*", posix=True, letters=True) is None


def test_groups_that_capture() -> None:
    assert [groups(each) for each in ("a", "(a)(?:b)", "[(](a)", "(a)?", "(a|b)", "(a)(?=b)")] == [
        0, 1, 1, None, None, 1,
    ]  # fmt: skip
    assert matches_nothing("[[:alpha:]]*")
    assert not matches_nothing("[[:alpha:]]+")


def test_patterns_with_one_longest_match() -> None:
    assert [one_way(each) for each in ("a+", "[a|b]*", "a|b", "a?b?")] == [True, True, False, False]
    assert java_replacement("$1", whole="&") == r"\$1"
    assert java_replacement(r"\x", whole="&") is None
    assert java_format("%d.%m.%Y, %H:%M") == "dd.MM.yyyy, HH:mm"
    assert java_format("%j") is None
