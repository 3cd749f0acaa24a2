"""Partitions of a TIMESTAMP: Spark writes them in UTC, delta-rs without a zone, in which Spark then
reads them in the zone of its session. So a rewrite by the other engine moves rows, in any zone but
UTC, and does not say so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.runtime.spark.settings import settings_for_now
from runtime.delta import write
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed

ZONE = "America/New_York"
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
QUERIES = {
    "bag": "SELECT id, at FROM src",
    "groups": "SELECT at, COUNT(*) AS n FROM src GROUP BY at",
}


def tables(zone: str) -> list[StreamTable]:
    return [maintained(name, query, session_timezone=zone) for name, query in QUERIES.items()]


def in_zone(spark: SparkSession, zone: str) -> AbstractContextManager[None]:
    return settings_for_now(spark, {"spark.sql.session.timeZone": zone})


def by_spark(spark: SparkSession, lake: Lake, *, feed: bool) -> str:
    place = lake.location("src")
    spark.sql(
        f"CREATE TABLE delta.`{place}` (id BIGINT, at TIMESTAMP) USING delta PARTITIONED BY (at) "
        f"TBLPROPERTIES ('delta.enableChangeDataFeed' = '{str(feed).lower()}')"
    )
    for n in range(4):
        rows = [(n, n % 2), (n + 4, 6), (n + 8, 6)]  # two of one file, one to carry over
        values = ", ".join(f"({id_}, TIMESTAMP'2020-01-01 0{hour}:00:00')" for id_, hour in rows)
        spark.sql(f"INSERT INTO delta.`{place}` SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    return place


def by_delta_rs(lake: Lake, at: datetime, first: int = 0) -> str:
    for n in range(first, first + 3):
        write(lake, "src", pa.table({"id": [n], "at": [at]}), feed=False, partition_by=["at"])
    return lake.location("src")


def compact(place: str) -> object:
    return DeltaTable(place).optimize.compact()


def update(place: str) -> object:
    return DeltaTable(place).update({"id": "7"}, predicate="id IN (1, 4)")


def delete(place: str) -> object:
    return DeltaTable(place).delete("id IN (3, 4)")


@pytest.mark.parametrize("feed", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "rewrite", [compact, *(pytest.param(each, marks=pytest.mark.long) for each in (update, delete))]
)
def test_delta_rs_takes_the_zone_away(
    spark: SparkSession, rewrite: Callable[[str], object], feed: bool, lake: Lake
) -> None:
    with in_zone(spark, ZONE):
        place = by_spark(spark, lake, feed=feed)
        each_refreshed(lake, *tables(ZONE))
        rewrite(place)
        each_followed(lake, *tables(ZONE))
        hours = [row["at"] for row in lake.read("bag").selectExpr("hour(at) AS at").collect()]
        assert max(hours) > 6, "delta-rs keeps the zone: trust its rewrites"


def test_spark_adds_its_own(spark: SparkSession, lake: Lake) -> None:
    """Its session has another zone than the stream table."""
    place = by_delta_rs(lake, NOON)
    each_refreshed(lake, *tables("UTC"))
    with in_zone(spark, ZONE):
        spark.sql(f"OPTIMIZE delta.`{place}`")
    each_followed(lake, *tables("UTC"))
    assert {row["at"].hour for row in lake.read("bag").collect()} == {17}


@pytest.mark.parametrize("feed", [pytest.param(False, marks=pytest.mark.long), True])
def test_all_rows_of_a_file_go(spark: SparkSession, feed: bool, lake: Lake) -> None:
    """Nothing is rewritten but, by delta-rs, in the feed: the row of 01:00 seems to be of 06:00."""
    with in_zone(spark, ZONE):
        place = by_spark(spark, lake, feed=feed)
        each_refreshed(lake, *tables(ZONE))
        DeltaTable(place).delete("id = 1")
        each_refreshed(lake, *tables(ZONE))


def test_rewrites_in_one_form_move_nothing(lake: Lake) -> None:
    place = by_delta_rs(lake, NOON)
    each_refreshed(lake, *tables("UTC"))
    DeltaTable(place).optimize.compact()
    for table in tables("UTC"):
        assert refreshed(lake, table).action == "NO_DATA"


@pytest.mark.long
def test_a_time_that_is_after_9999_in_utc(spark: SparkSession, lake: Lake) -> None:
    with in_zone(spark, ZONE):
        place = by_delta_rs(lake, LAST)
        each_refreshed(lake, *tables(ZONE))
        spark.sql(f"UPDATE delta.`{place}` SET id = id + 10 WHERE id < 2")
        each_refreshed(lake, *tables(ZONE))
        by_delta_rs(lake, NOON, 5)
        each_refreshed(lake, *tables(ZONE))
