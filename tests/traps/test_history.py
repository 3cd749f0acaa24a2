"""Traps of a source's history: lost, rewound, rewritten, or that of another table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake
from runtime.delta import on_spark, run_on_delta, stored, write
from runtime.orders import LARGE, TOTALS, orders, source
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import feeds

pytestmark = pytest.mark.long

FEED = "delta.enableChangeDataFeed"


def test_p04_commits_that_are_gone_from_the_log_start_the_table_anew(lake: Lake) -> None:
    each_refreshed(lake, TOTALS, LARGE)
    write(lake, "orders", orders(20))
    source(lake).delete("id = 3")
    source(lake).create_checkpoint()
    for version in (0, 1):
        (Path(lake.location("orders")) / f"_delta_log/{version:020d}.json").unlink()

    for table in (TOTALS, LARGE):
        done = refreshed(Lake(lake.root), table)
        assert done.action is Action.REINITIALIZE
        assert 'the log of "orders" no longer has all commits' in done.reason


def test_a_log_in_memory_outlives_its_commits(lake: Lake) -> None:
    """Those before the newest are gone, and the newest is the one that was read."""
    write(lake, "orders", orders(20))
    refreshed(lake, TOTALS)
    source(lake).create_checkpoint()
    (Path(lake.location("orders")) / f"_delta_log/{0:020d}.json").unlink()

    assert refreshed(lake, TOTALS).action is Action.NO_DATA


def test_p05_the_same_version_of_another_table_under_the_same_name(lake: Lake) -> None:
    write(lake, "names", pa.table({"customer": [0, 1, 2], "name": ["a", "b", "c"]}))
    query = "SELECT n.name, o.id FROM orders AS o JOIN names AS n ON n.customer = o.customer"
    table = maintained("mart.named", query)
    for i in range(7):
        write(lake, "orders", orders(20 + i))
    refreshed(lake, table)
    assert lake.frontier(table) == {"orders": 7, "names": 0}

    shutil.rmtree(lake.location("orders"))
    for i in range(8):
        write(lake, "orders", orders(50 + i))
    dropped = refreshed(lake, table)
    assert lake.frontier(table) == {"orders": 7, "names": 0}
    new = "USING delta AS SELECT 7L AS id, 1L AS customer"
    on_spark(lake, f"CREATE OR REPLACE TABLE {{orders}} {new}")
    replaced = refreshed(lake, table)

    assert (dropped.action, dropped.row_count) == (Action.REINITIALIZE, 8)
    assert dropped.reason == '"orders" was dropped and created again'
    assert (replaced.action, replaced.row_count) in (
        (Action.REINITIALIZE, 1),
        (Action.DIFFERENTIAL, 1),
    )


def test_p06_restore_brings_a_row_back(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    options = {"delta.enableDeletionVectors": "true", FEED: "true"}
    rows = spark.createDataFrame(orders(1, 2, 3)).coalesce(1)
    rows.write.format("delta").options(**options).save(lake.location("orders"))
    refreshed(lake, LARGE)
    run_on_delta(lake, "DELETE FROM orders WHERE id = 3")
    assert refreshed(lake, LARGE).row_count == 2
    on_spark(lake, "RESTORE TABLE {orders} TO VERSION AS OF 0")

    done = refreshed(lake, LARGE)

    assert (done.action, done.inserted, done.deleted) == (Action.DIFFERENTIAL, 1, 0)
    assert stored(lake, LARGE.name, ["id", "amount"])["3", "6"] == 1


@feeds
def test_p07_an_overwrite_with_almost_the_same_rows_is_a_small_change(
    feed: bool, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(100)), feed=feed)
    refreshed(lake, LARGE)
    rows = pa.concat_tables([orders(*range(99)), orders(99, amount=30)])
    write(lake, "orders", rows, mode="overwrite", configuration=None)

    done = refreshed(lake, LARGE)

    assert (done.action, done.inserted, done.deleted) == (Action.DIFFERENTIAL, 1, 1)
    output = pa.table(_stored(lake).load_cdf(starting_version=done.version))
    assert sorted(map(str, output.column("amount").to_pylist())) == ["31", "6"]

    place = lake.location("orders")
    spark.sql(f"INSERT OVERWRITE delta.`{place}` SELECT * FROM delta.`{place}`")
    same = refreshed(lake, LARGE)
    assert (same.action, same.data_version) == (Action.NO_DATA, done.data_version)


@feeds
def test_p08_overwriting_one_partition_changes_its_groups_only(
    feed: bool, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(12)), feed=feed, partition_by=["customer"])
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(0, 3, 60), feed=feed, mode="overwrite", predicate="customer = 0")
    by_predicate = refreshed(lake, TOTALS)
    dynamic = spark.createDataFrame(orders(1, 4, 61)).write.format("delta").mode("overwrite")
    dynamic.option("partitionOverwriteMode", "dynamic").save(lake.location("orders"))
    by_partition = refreshed(lake, TOTALS)

    for done in (by_predicate, by_partition):
        assert (done.action, done.inserted, done.deleted) == (Action.DIFFERENTIAL, 1, 1)


@pytest.mark.parametrize("late", ["never on before", "off for a while"])
def test_p11_a_feed_with_a_gap_is_not_read(late: str, spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(20)), feed=late != "never on before")
    refreshed(lake, LARGE)
    source(lake).alter.set_table_properties({FEED: "false"})
    source(lake).delete("id = 3")
    source(lake).alter.set_table_properties({FEED: "true"})
    source(lake).delete("id = 4")
    gap = refreshed(lake, LARGE)
    source(lake).delete("id = 5")
    covered = refreshed(lake, LARGE)

    assert (gap.action, gap.windows["orders"].capture) == (Action.DIFFERENTIAL, "snapshots")
    assert gap.deleted == 2
    assert (covered.action, covered.windows["orders"].capture) == (Action.DIFFERENTIAL, "feed")


def _stored(lake: Lake) -> DeltaTable:
    return DeltaTable(lake.location(LARGE.name))
