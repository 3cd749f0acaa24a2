"""The columns of joins by USING and NATURAL are those that Spark gives to the same text."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables.compiler import compile_query
from dagster_streamtables.errors import InvalidDefinition

TABLES = {
    "a": {"x": "int", "K": "int", "Av": "int"},
    "b": {"y": "int", "k": "bigint", "Bv": "int"},
    "c": {"Cv": "int", "k": "int", "x": "int"},
}
KINDS = ("", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
SECOND = ("", "LEFT", "RIGHT", "FULL", "LEFT SEMI")
STARS = (
    "*",
    "a.*",
    "b.*",
    "c.*",
    "b.*, a.Av AS z",
    "A.* EXCEPT (a.k)",
    "* EXCEPT (K)",
    "* EXCEPT (x, a.x, c.x)",
    "a.* EXCEPT (x), c.* EXCEPT (K, x)",
    "K, a.K AS ak",
    "k, struct(b.*) AS s",
    "k AS Key, struct(*) AS s",
    "k, count(*) AS n",
)
AROUND = (
    "{0}",
    "SELECT * FROM ({0}) AS q",
    "SELECT Q.* FROM ({0}) AS q",
    "SELECT q.*, 1 AS one FROM ({0}) AS q SEMI JOIN c ON true",
    "SELECT q.* FROM ({0}) AS q LEFT JOIN (SELECT k AS other, k FROM c) AS d USING (k)",
    "WITH q AS ({0}) SELECT * FROM q NATURAL JOIN (SELECT K FROM a) AS d",
    "SELECT * FROM ({0}) AS q LATERAL VIEW explode(array(1)) e AS Item",
    "SELECT q.*, l.* FROM ({0}) AS q, LATERAL (SELECT 1 AS Last) AS l",
    "{0} UNION ALL {0}",
)


def _joined() -> Iterator[str]:
    for kind, second, how in itertools.product(KINDS, (None, *SECOND), ("USING (k)", "NATURAL")):
        if how == "NATURAL" and {kind, second} & {"SEMI", "ANTI", "LEFT SEMI"}:
            continue  # Spark has no such join
        on = how if how != "NATURAL" else ""
        word = f" {how}" if how == "NATURAL" else ""
        first = f"a{word} {kind} JOIN b {on}"
        if second is None:
            yield first
        else:
            yield f"{first}{word} {second} JOIN c {on}"
            yield f"c{word} {second} JOIN ({first}) {on}"
            yield f"{first} {second} JOIN c ON a.k = c.k"


QUERIES = [
    around.format(f"SELECT {star} FROM {joined}" + " GROUP BY k" * ("count" in star))
    for joined in _joined()
    for star in STARS
    for around in AROUND
]
FEW = random.Random(55).sample(QUERIES, 60)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    for name, columns in TABLES.items():
        ddl = ", ".join(f"`{column}` {type_}" for column, type_ in columns.items())
        spark.createDataFrame([], ddl).createOrReplaceTempView(name)
    yield spark
    for name in TABLES:
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize(
    "queries",
    [
        pytest.param(FEW, id="some"),
        pytest.param(QUERIES, id="all", marks=pytest.mark.long),
    ],
)
def test_columns(queries: list[str], tables: SparkSession) -> None:
    found = {query: _compiled(query) for query in queries}
    expected = {query: _analyzed(query, tables) for query in queries}
    assert sum(each is not None for each in expected.values()) > len(queries) // 3
    assert found == {
        query: each if each is not None else found[query] for query, each in expected.items()
    }


def _compiled(query: str) -> list[str] | None:
    try:
        return list(compile_query(query, TABLES).schema)
    except InvalidDefinition:
        return None


def _analyzed(query: str, spark: SparkSession) -> list[str] | None:
    """The columns in Spark; None if it refuses the query, or two columns have one name."""
    from pyspark.errors import AnalysisException

    try:
        names = spark.sql(query).columns
    except AnalysisException:
        return None
    return names if len({name.lower() for name in names}) == len(names) else None
