"""A column that is declared with a collation: its log says STRING, and the rest in metadata.

Delta creates such a table where its check of types is off, and reads it in any session.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.errors import UnsupportedQuery
from runtime.delta import on_spark, stored
from runtime.refreshes import maintained, refreshed

_CHECK = "spark.databricks.delta.schema.typeCheck.enabled"
USES = [
    "SELECT id, name FROM {t}",
    "SELECT name, COUNT(*) AS n FROM {t} GROUP BY name",
    "SELECT DISTINCT s.n AS n FROM {t}",
    "SELECT MAX(name) AS m FROM {t}",
    "SELECT id FROM {t} WHERE name = 'A'",
    "SELECT a.id FROM {t} AS a JOIN {t} AS b USING (name)",
    "SELECT id, tags FROM {t}",
]


@pytest.fixture
def collated(lake: Lake, spark: SparkSession) -> str:
    """The name of a table with collations in a column, a list and a struct."""
    spark.conf.set(_CHECK, "false")
    try:
        on_spark(
            lake,
            "CREATE TABLE {collated} (id INT, name STRING COLLATE UTF8_LCASE, plain STRING, "
            "tags ARRAY<STRING COLLATE UNICODE_CI>, s STRUCT<n: STRING COLLATE UTF8_LCASE>) "
            "USING delta",
        )
    finally:
        spark.conf.unset(_CHECK)
    add(lake, spark, 1, "A")
    return "collated"


def add(lake: Lake, spark: SparkSession, number: int, name: str) -> None:
    row = f"({number}, '{name}', '{name}', array('{name}'), struct('{name}'))"
    on_spark(lake, f"INSERT INTO {{collated}} VALUES {row}")


@pytest.mark.parametrize("query", USES)
def test_a_query_that_uses_such_a_column_is_refused(query: str, collated: str, lake: Lake) -> None:
    with pytest.raises(UnsupportedQuery, match="collate U") as refusal:
        lake.refresh(StreamTable("uses", query.format(t=collated)))
    assert "has the type" in refusal.value.what
    assert "CAST" in refusal.value.fix or "cast" in refusal.value.fix


def test_a_query_over_its_other_columns_follows_it(
    collated: str, lake: Lake, spark: SparkSession
) -> None:
    table = maintained("others", "SELECT plain, COUNT(*) AS n FROM collated GROUP BY plain")
    refreshed(lake, table)
    add(lake, spark, 2, "a")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    assert set(stored(lake, "others", ["plain", "n"])) == {("A", "1"), ("a", "1")}


@pytest.mark.long
def test_mode_full_compares_as_spark_does(collated: str, lake: Lake, spark: SparkSession) -> None:
    table = StreamTable("full", "SELECT COUNT(*) AS n FROM collated GROUP BY name", mode=Mode.FULL)
    refreshed(lake, table)
    add(lake, spark, 2, "a")
    refreshed(lake, table)
    assert set(stored(lake, "full", ["n"])) == {("2",)}
