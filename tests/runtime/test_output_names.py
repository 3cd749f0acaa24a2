"""The columns of a stream table are called as Spark calls those of the query, as it is written.

So are those of joins by USING and NATURAL.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from compiler import casefile
from compiler.database import TABLES
from compiler.test_output_names import NAMES
from dagster_streamtables import Lake, StreamTable, subscribe
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.analyze import bind
from dagster_streamtables.compiler.scope.from_columns import POSTGRES
from dagster_streamtables.compiler.scope.scopes import Scopes
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery
from dagster_streamtables.runtime.delta.table_schema import spark_name
from dagster_streamtables.runtime.model import definition
from dagster_streamtables.runtime.model.stream_table import Mode
from runtime.delta import write
from runtime.refreshes import refreshed

# Spark has no recursion by UNION, and no ANY and ALL of a subquery.
_BEYOND_SPARK = re.compile(r"RECURSIVE .* UNION (?!ALL)|[=<>] (ANY|ALL|SOME)\b", flags=re.S)
cases = [case for case in casefile.load() if not (case.error or _BEYOND_SPARK.search(case.query))]
FEW = [case for i, case in enumerate(cases) if i % 25 == 0 or case.file == "pipes"]

JOINED = "FROM orders AS o JOIN customers AS c ON o.customer = c.id |> EXTEND o.amount + 1 AS v "
PIPES = (
    JOINED + "|> SELECT c.region, v",
    JOINED + "|> SELECT DISTINCT V, `v` + 0 AS w",
    JOINED + "|> EXTEND o.amount AS one |> SELECT one, v AS two, (v)AS three, 1 + v four",
    JOINED + "|> EXTEND v * 2 AS `Twice` |> WHERE v > 1 |> SELECT `twice`, v",
    JOINED + "|> AGGREGATE COUNT(*) AS n GROUP BY v",
    JOINED + "|> AGGREGATE SUM(v) AS s GROUP BY c.region, v AS k |> SELECT k, S",
    JOINED + "|> AGGREGATE COUNT(*) AS n GROUP BY v |> JOIN regions ON v = 6 |> SELECT v, name",
    "FROM orders |> AGGREGATE SUM(amount) AS Total GROUP BY Customer",
    "SELECT * FROM (SELECT ID, amount AS `Total` FROM orders)",
    "SELECT * FROM (SELECT id, amount FROM orders) AS t(Number, Paid)",
    "WITH w AS (SELECT CAST(id AS STRING), 7, amount AS _col_0 FROM orders) SELECT * FROM w",
)


@contextmanager
def without_rows(
    spark: SparkSession, tables: Mapping[str, Mapping[str, str]]
) -> Iterator[SparkSession]:
    """Tables by their columns, as views."""
    for name, columns in tables.items():
        ddl = ", ".join(f"{spark_name(column)} {type_}" for column, type_ in columns.items())
        spark.createDataFrame([], ddl).createOrReplaceTempView(name)
    yield spark
    for name in tables:
        spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    with without_rows(spark, TABLES):
        yield spark


@pytest.mark.parametrize("query", [*PIPES, *(case.query for case in FEW)])
def test_names(query: str, tables: SparkSession) -> None:
    assert list(compile_query(query, TABLES).schema) == tables.sql(query).columns


@pytest.mark.long
@pytest.mark.parametrize("case", cases, ids=str)
def test_names_of_every_case(case: casefile.Case, tables: SparkSession) -> None:
    assert list(compile_query(case.query, TABLES).schema) == tables.sql(case.query).columns


@pytest.mark.long
@pytest.mark.parametrize("query", NAMES)
def test_spark_gives_these_names_to_columns_without_one(query: str, tables: SparkSession) -> None:
    assert tables.sql(query).columns == NAMES[query]


@pytest.mark.smoke("names of output columns")
def test_what_is_stored_and_told_has_these_names(tables: SparkSession, lake: Lake) -> None:
    query = JOINED.replace("amount + 1", "amount") + "|> SELECT o.id AS o, V"
    for name in ("orders", "customers"):
        tables.table(name).write.format("delta").mode("overwrite").option(
            "overwriteSchema", "true"
        ).save(lake.location(name))
    refreshed(lake, StreamTable("t", query))
    assert list(lake.columns("t") or {})[:2] == ["o", "V"]
    with subscribe(lake, query) as changes:
        assert changes.fetch(None, timeout=0).column_names[2:] == ["o", "V"]


QUERY = "SELECT n.*, o.amount FROM named n LEFT JOIN orders o USING (id)"
BOTH = "Spark: id, name, amount; worked out: name, id, amount"


@pytest.fixture
def misread(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """A query whose columns are worked out otherwise than by Spark is refused, never stored. None
    is known, so one of Spark's rules is replaced by PostgreSQL's while a query is compiled."""
    write(lake, "named", pa.table({"name": ["a", "b"], "id": pa.array([1, 2], pa.int64())}))
    definition._plan.cache_clear()
    monkeypatch.setattr(bind, "Scopes", partial(Scopes, rules=POSTGRES))
    yield lake
    definition._plan.cache_clear()


def test_nothing_is_stored_under_other_names_than_those_of_spark(misread: Lake) -> None:
    with pytest.raises(UnsupportedQuery, match="not those that Spark returns") as refusal:
        misread.refresh(StreamTable("stored", QUERY))
    assert BOTH in str(refusal.value)
    assert misread.version("stored") is None


def test_a_query_in_mode_auto_is_run_in_full_under_the_names_of_spark(misread: Lake) -> None:
    done = misread.refresh(StreamTable("stored", QUERY, mode=Mode.AUTO))
    assert "not those that Spark returns" in done.reason
    assert misread.read("stored").columns == ["id", "name", "amount"]


def test_a_subscription_is_refused(misread: Lake) -> None:
    with pytest.raises(UnsupportedQuery) as refusal, subscribe(misread, QUERY) as changes:
        changes.fetch(None, timeout=0)
    assert BOTH in str(refusal.value)


JOINABLE = {
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


JOINS = [
    around.format(f"SELECT {star} FROM {joined}" + " GROUP BY k" * ("count" in star))
    for joined in _joined()
    for star in STARS
    for around in AROUND
]
FEW_JOINS = random.Random(55).sample(JOINS, 60)


@pytest.fixture(scope="module")
def joinable(spark: SparkSession) -> Iterator[SparkSession]:
    with without_rows(spark, JOINABLE):
        yield spark


@pytest.mark.parametrize(
    "queries",
    [pytest.param(FEW_JOINS, id="some"), pytest.param(JOINS, id="all", marks=pytest.mark.long)],
)
def test_columns(queries: list[str], joinable: SparkSession) -> None:
    found = {query: _compiled(query) for query in queries}
    expected = {query: _analyzed(query, joinable) for query in queries}
    assert sum(each is not None for each in expected.values()) > len(queries) // 3
    assert found == {
        query: each if each is not None else found[query] for query, each in expected.items()
    }


def _compiled(query: str) -> list[str] | None:
    try:
        return list(compile_query(query, JOINABLE).schema)
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
