"""Traps of a source's history: lost, rewound, rewritten, of another table, or told wrongly."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake
from runtime.delta import on_spark, run_on_delta, stored, write, write_by_spark
from runtime.orders import LARGE, TOTALS, orders, source
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import feeds, no_feed, no_orders, writers

pytestmark = pytest.mark.long

FEED = "delta.enableChangeDataFeed"
NO_FILES = '"orders" no longer has all files of the window'


def test_p04_commits_that_are_gone_from_the_log_start_the_table_anew(lake: Lake) -> None:
    each_refreshed(lake, TOTALS, LARGE)
    write(lake, "orders", orders(20))
    source(lake).delete("id = 3")
    source(lake).create_checkpoint()
    for version in (0, 1):
        (Path(lake.location("orders")) / f"_delta_log/{version:020d}.json").unlink()

    lost = 'the log of "orders" no longer has all commits'
    for table in (TOTALS, LARGE):
        refreshed(Lake(lake.root), table, Action.REINITIALIZE, because=lost)


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
    dropped = refreshed(lake, table, Action.REINITIALIZE, row_count=8)
    assert lake.frontier(table) == {"orders": 7, "names": 0}
    new = "USING delta AS SELECT 7L AS id, 1L AS customer"
    on_spark(lake, f"CREATE OR REPLACE TABLE {{orders}} {new}")
    replaced = refreshed(lake, table, row_count=1)

    assert dropped.reason == '"orders" was dropped and created again'
    assert replaced.action in (Action.REINITIALIZE, Action.DIFFERENTIAL)


@no_orders
def test_p06_restore_brings_a_row_back(lake: Lake) -> None:
    properties = {"enableDeletionVectors": "true", "enableChangeDataFeed": "true"}
    write_by_spark(lake, "orders", orders(1, 2, 3), **properties)
    refreshed(lake, LARGE)
    run_on_delta(lake, "DELETE FROM orders WHERE id = 3")
    assert refreshed(lake, LARGE).row_count == 2
    on_spark(lake, "RESTORE TABLE {orders} TO VERSION AS OF 0")

    refreshed(lake, LARGE, Action.DIFFERENTIAL, inserted=1, deleted=0)

    assert stored(lake, LARGE.name, ["id", "amount"])["3", "6"] == 1


@feeds
@no_orders
def test_p07_an_overwrite_with_almost_the_same_rows_is_a_small_change(
    feed: bool, lake: Lake
) -> None:
    write(lake, "orders", orders(*range(100)), feed=feed)
    refreshed(lake, LARGE)
    rows = pa.concat_tables([orders(*range(99)), orders(99, amount=30)])
    write(lake, "orders", rows, mode="overwrite", configuration=None)

    done = refreshed(lake, LARGE, Action.DIFFERENTIAL, inserted=1, deleted=1)

    table = DeltaTable(lake.location(LARGE.name))
    output = pa.table(table.load_cdf(starting_version=done.version))
    assert sorted(map(str, output.column("amount").to_pylist())) == ["31", "6"]

    on_spark(lake, "INSERT OVERWRITE {orders} SELECT * FROM {orders}")
    refreshed(lake, LARGE, Action.NO_DATA, data_version=done.data_version)


@feeds
@no_orders
def test_p08_overwriting_one_partition_changes_its_groups_only(
    feed: bool, spark: SparkSession, lake: Lake
) -> None:
    write(lake, "orders", orders(*range(12)), feed=feed, partition_by=["customer"])
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(0, 3, 60), feed=feed, mode="overwrite", predicate="customer = 0")
    refreshed(lake, TOTALS, Action.DIFFERENTIAL, inserted=1, deleted=1)
    dynamic = spark.createDataFrame(orders(1, 4, 61)).write.format("delta").mode("overwrite")
    dynamic.option("partitionOverwriteMode", "dynamic").save(lake.location("orders"))
    refreshed(lake, TOTALS, Action.DIFFERENTIAL, inserted=1, deleted=1)


@pytest.mark.parametrize("late", ["never on before", "off for a while"])
@no_orders
def test_p11_a_feed_with_a_gap_is_not_read(late: str, lake: Lake) -> None:
    write(lake, "orders", orders(*range(20)), feed=late != "never on before")
    refreshed(lake, LARGE)
    source(lake).alter.set_table_properties({FEED: "false"})
    source(lake).delete("id = 3")
    source(lake).alter.set_table_properties({FEED: "true"})
    source(lake).delete("id = 4")
    refreshed(lake, LARGE, Action.DIFFERENTIAL, capture="snapshots", deleted=2)
    source(lake).delete("id = 5")
    refreshed(lake, LARGE, Action.DIFFERENTIAL, capture="feed")


@feeds
def test_p04_files_that_were_vacuumed_start_the_table_anew(lake: Lake) -> None:
    each_refreshed(lake, TOTALS, LARGE)
    source(lake).update(predicate="id < 4", updates={"amount": "9"})
    source(lake).delete("id = 10")
    source(lake).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
    )

    for table in (TOTALS, LARGE):
        refreshed(lake, table, Action.REINITIALIZE, because="orders")


@writers
def test_p12_a_feed_without_preimages_is_not_believed(lake: Lake) -> None:
    each_refreshed(lake, LARGE, TOTALS)
    _update_without_preimages(lake)

    for table in (LARGE, TOTALS):
        assert refreshed(lake, table).windows["orders"].capture in ("snapshots", "all")


def _update_without_preimages(lake: Lake) -> None:
    """Another writer sets the amount of order 7 to 50 and tells only the new row."""
    folder = Path(lake.location("orders"))
    [old] = source(lake).file_uris()
    rows = pq.read_table(old)
    seven = pa.compute.equal(rows.column("id"), 7)
    amounts = pa.compute.if_else(seven, pa.scalar(50, pa.int32()), rows.column("amount"))
    after = rows.set_column(rows.column_names.index("amount"), "amount", amounts)
    image = after.filter(seven).append_column("_change_type", pa.array(["update_postimage"]))
    new, told = f"part-{uuid.uuid4()}.parquet", f"_change_data/cdc-{uuid.uuid4()}.parquet"
    (folder / "_change_data").mkdir(exist_ok=True)
    pq.write_table(after, folder / new)
    pq.write_table(image, folder / told)
    size, told_size = (folder / new).stat().st_size, (folder / told).stat().st_size
    common = {"partitionValues": {}, "dataChange": True}
    stats = json.dumps({"numRecords": rows.num_rows})
    actions = [
        {"commitInfo": {"timestamp": 1, "operation": "MERGE", "engineInfo": "another writer"}},
        {"remove": {"path": Path(old).name, "deletionTimestamp": 1, **common}},
        {"add": {"path": new, "size": size, "modificationTime": 1, "stats": stats, **common}},
        {"cdc": {"path": told, "size": told_size, **common, "dataChange": False}},
    ]
    log = folder / f"_delta_log/{source(lake).version() + 1:020d}.json"
    log.write_text("\n".join(map(json.dumps, actions)))


@writers
@no_feed
def test_p09_a_vacuum_after_a_refresh_without_data_starts_the_table_anew(lake: Lake) -> None:
    """Not as a change that cannot be computed, which would be told as a fallback."""
    write(lake, "orders", orders(20, 21), feed=False)
    refreshed(lake, LARGE)
    source(lake).optimize.compact()
    assert lake.refresh(LARGE).action is Action.NO_DATA
    source(lake).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    source(lake).delete("id = 4")
    refreshed(lake, LARGE, Action.REINITIALIZE, reason=NO_FILES, fallback="")


PAIRS = "SELECT a.id, b.id AS other FROM orders AS a JOIN orders AS b ON a.id < b.amount"
SIZES = (
    "SELECT n, COUNT(*) AS groups FROM (SELECT customer, COUNT(*) AS n FROM orders "
    "GROUP BY customer) AS g GROUP BY n"
)


@writers
@pytest.mark.parametrize("query", [PAIRS, SIZES], ids=["a join", "a first intermediate table"])
@no_feed
def test_p09_a_vacuum_of_what_a_change_needs_starts_the_table_anew(query: str, lake: Lake) -> None:
    """The first change makes an intermediate table as it would have been before."""
    table = maintained("needing", query)
    refreshed(lake, table)
    source(lake).delete("id = 4")
    source(lake).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    refreshed(lake, table, Action.REINITIALIZE, reason=NO_FILES)
    source(lake).delete("id = 5")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
