"""What comes of queries: a planted wrong result is noticed, and each text has its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from dagster_streamtables.compiler import View
from postgres.server import connected
from qa.postgres_corpus.files import PostgresFile
from qa.postgres_corpus.oracle import Postgres
from qa.spark_corpus import round as rounds
from qa.spark_corpus.command import _sessions
from qa.spark_corpus.follow import Followed, Refreshed
from qa.spark_corpus.oracle import Held
from qa.spark_corpus.outcome import Outcome, Result
from qa.spark_corpus.relations import Base
from qa.spark_corpus.round import Options
from qa.spark_corpus.statements import read_file
from spark_corpus.test_outcomes import _Losing

FILE = """
CREATE TEMPORARY VIEW T AS SELECT * FROM VALUES (1, 'x', 7), (2, 'y', 8), (3, 'x', NULL)
  AS T(A, b, c);
CREATE TEMPORARY VIEW Small AS SELECT b, count(*) AS n FROM T GROUP BY b;
SELECT T.a / 2 AS `Half of it`, n FROM T JOIN small USING (b);
SELECT a, a::numeric FROM t;
SELECT a, random() AS r FROM t;
SELECT string(a) FROM t;
SELECT 1;
SELECT c / (a - 1) AS d FROM t WHERE a < 3;
"""
ROWS = pa.table({"a": pa.array(range(20), pa.int32()), "b": ["x", "y"] * 10})


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    with connected(tmp_path_factory.mktemp("postgres")) as made:
        yield made


@pytest.fixture
def postgres(connection: psycopg.Connection[Any]) -> Postgres:
    made = Postgres(connection, 20)
    schema = StructType([StructField("a", IntegerType()), StructField("b", StringType())])
    made.give([(Base("t", ROWS, schema), ROWS)])
    return made


def held(text: str, rows: pa.Table) -> Held:
    return Held("st_1", text, StructType(), rows)


def test_rows_are_compared_by_name_and_in_both_directions(postgres: Postgres) -> None:
    text = "SELECT b, sum(a) AS s FROM t GROUP BY b"

    def said(**columns: list[Any]) -> str:
        found = postgres.differences([held(text, pa.table(columns))])["st_1"]
        assert isinstance(found, list)
        return ", ".join(map(str, found))

    assert said(s=[90, 100], b=["x", "y"]) == ""
    assert said(b=["x", "y", "y"], s=[90, 100, 100]).startswith("unexpected 1 x {'b': 'y'")
    assert said(b=["x"], s=[90]).startswith("missing 1 x {'b': 'y'")
    assert "expected ['b', 's']" in said(b=["x", "y"], sum=[90, 100])


@pytest.mark.parametrize(
    ("text", "arbitrary"),
    [
        ("SELECT * FROM t LIMIT 2", True),
        ("SELECT a, row_number() OVER (ORDER BY b) AS n FROM t", True),
        ("SELECT a FROM t ORDER BY a LIMIT 2", False),
        ("SELECT b, sum(a) AS s FROM twice GROUP BY b", False),
    ],
)
def test_arbitrary_is_what_postgres_answers_otherwise_over_another_order(
    text: str, arbitrary: bool, postgres: Postgres
) -> None:
    postgres.define([View("twice", "SELECT * FROM t UNION ALL SELECT * FROM t")])

    assert postgres.is_arbitrary(held(text, ROWS), []) is arbitrary
    assert postgres.differences([held("SELECT * FROM t", ROWS)]) == {"st_1": []}


def test_floats_may_differ_in_their_last_digits_and_numbers_not(postgres: Postgres) -> None:
    def is_rounding(text: str, value: float) -> bool:
        return postgres.is_rounding(held(text, pa.table({"s": [value]})))

    assert is_rounding("SELECT 0.6::float8 AS s", 0.6000000000000001)
    assert not is_rounding("SELECT 0.6::float8 AS s", 0.61)
    assert not is_rounding("SELECT 0.6 AS s", 0.6000000000000001)
    postgres.represented.add("st_1")
    assert is_rounding("SELECT 0.6 AS s", 0.6000000000000001)


def run(tmp_path: Path, text: str, postgres: Postgres, **options: Any) -> list[Result]:
    (tmp_path / "small.sql").write_text(text)
    file = read_file(tmp_path, "small.sql")
    given = replace(Options(seconds=120), **options)
    root = tmp_path / "lakes"
    postgres.forget()
    made = PostgresFile(file, {}, _sessions(Options()), given, root, lambda _: True, postgres)
    return made.run().results


@pytest.mark.spark
def test_each_text_has_its_outcome(tmp_path: Path, postgres: Postgres) -> None:
    results = run(tmp_path, FILE, postgres, windows=2)

    found = {each.number: (each.outcome, each.reason) for each in results}
    assert found == {
        3: (Outcome.EXACT, ""),
        4: (Outcome.EXACT, ""),
        5: (Outcome.REFUSED, "InvalidDefinition: …() cannot be translated from postgres"),
        6: (Outcome.REFUSED_BY_POSTGRES, "function string(integer) does not exist"),
        8: (Outcome.EXACT, "both fail over some rows"),
    }, [each.detail for each in results]
    assert 'AS "Half of it"' in results[0].text
    assert results[1].text == 'SELECT a, a::numeric AS "c2" FROM t'


class _Renaming(Refreshed):
    def follow(self) -> Followed:
        followed = super().follow()
        return replace(followed, columns={"other": "int"})


class _Answering(Refreshed):
    def follow(self) -> Followed:
        return Followed(pa.table({"d": [1, 1]}), {"d": "int"})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("follower", "text", "reason"),
    [
        (_Losing, "SELECT a FROM t", "other rows"),
        (_Renaming, "SELECT a FROM t", "other columns"),
        (
            _Answering,
            "SELECT 1 / (a - 2) AS d FROM t",
            "rows where PostgreSQL fails: division by zero",
        ),
    ],
)
def test_a_planted_fault_is_wrong(
    follower: type[Refreshed], text: str, reason: str,
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(rounds.FOLLOWERS, "planted", follower)  # type: ignore[arg-type]
    file = f"CREATE TEMPORARY VIEW t AS VALUES (2, 'y'), (3, 'x') AS t(a, b); {text}"

    [result] = run(tmp_path, file, postgres, follower="planted", windows=0)

    assert (result.outcome, result.reason) == (Outcome.WRONG, reason), result.detail
