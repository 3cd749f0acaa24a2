"""What PostgreSQL's functions become, word by word.

That these words mean the same is shown by `tests/postgres`, on PostgreSQL and on Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dagster_streamtables.compiler.dialect import translate

COLUMNS = {
    "t": {
        "id": "int", "x": "int", "b": "bigint", "n": "decimal(10,2)", "s": "string",
        "f": "boolean", "ts": "timestamp_ntz", "tz": "timestamp", "dt": "date", "a": "array<int>",
        "d": "double", "j": "string",
    }
}  # fmt: skip

_FILE = Path(__file__).with_name("postgres_rules.txt")
RULES = [each.split("\n") for each in _FILE.read_text().strip().split("\n\n")]
"""A title, what PostgreSQL's users write, and what it becomes."""
QUOTIENTS = [
    ("n / 3", "- 3 - 1) / 10000) WHEN 1 THEN CAST(CAST(st_n AS DECIMAL(28, 2)) / st_d AS"),
    ("n / 3", "ELSE CAST(CAST(st_n AS DECIMAL(16, 2)) / st_d AS DECIMAL(38, 24)) END"),
    ("x / n", "DIV 4 - 1) * 10000 + CAST(LEFT("),
    ("avg(n)", "ARRAY(CAST(SUM(n) AS DECIMAL(38, 2))), ARRAY(CAST(COUNT(n) AS DECIMAL(38, 0)))"),
    ("avg(b)", "SUM(CAST(b AS DECIMAL(19, 0)))"),
    ("avg(n) FILTER (WHERE f)", "SUM(n) FILTER(WHERE f)"),
    ("avg(n) FILTER (WHERE f)", "COUNT(n) FILTER(WHERE f)"),
    ("avg(n) OVER (PARTITION BY f)", "COUNT(n) OVER (PARTITION BY f)"),
]


def _translated(expression: str) -> str:
    sql = " ".join(translate(f"SELECT {expression} AS c FROM t", "postgres", COLUMNS).split())
    return sql.replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize(
    ("expression", "spark"), [each[1:] for each in RULES], ids=[each[0] for each in RULES]
)
def test_a_function_of_postgres(expression: str, spark: str) -> None:
    assert _translated(expression) == f"SELECT {spark} AS c FROM t"


@pytest.mark.parametrize(("expression", "part"), QUOTIENTS)
def test_a_quotient_or_an_average(expression: str, part: str) -> None:
    assert part in _translated(expression)


def test_kinds_of_a_union_are_those_of_both_sides() -> None:
    sql = "SELECT q.v / 2 AS c FROM (SELECT x AS v FROM t UNION ALL SELECT n FROM t) AS q"
    assert "DIV 2 AS c" not in translate(sql, "postgres", COLUMNS)
