"""What a refresh does, and says it did, for everything that can come to a source."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Action, Lake, Mode, StreamTable, UnsupportedQuery
from dagster_streamtables.runtime.lake import MissingSource
from runtime.delta import FEED, refreshed, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOWHERE = "sc://127.0.0.1:1"
"""An address where no Spark answers: what works there starts no Spark job."""

TOTALS = StreamTable(
    "mart.totals",
    "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer",
    differential_max_change_ratio=0,
)
LARGE = StreamTable(
    "mart.large",
    "SELECT id, amount FROM orders WHERE amount > 3",
    differential_max_change_ratio=0,
)


def orders(*ids: int, amount: int = 5) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "customer": pa.array([i % 3 for i in ids], pa.int64()),
            "amount": pa.array([amount + i % 2 for i in ids], pa.int32()),
            "note": pa.array([f"note {i}" for i in ids]),
        }
    )


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(20)))
    return lake


def source(lake: Lake) -> DeltaTable:
    return DeltaTable(lake.location("orders"))


def merge_into(lake: Lake, updates: dict[str, str], *ids: int) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64())})
    merge = source(lake).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update(updates).execute()


def test_the_first_refresh_makes_the_table_and_the_second_finds_nothing(lake: Lake) -> None:
    first = refreshed(lake, TOTALS)
    assert (first.action, first.reason) == (Action.REINITIALIZE, "there is no table yet")
    assert (first.row_count, first.windows["orders"].after) == (3, 0)

    again = Lake(lake.root, spark=NOWHERE).refresh(TOTALS)

    assert (again.action, again.version, again.writer) == (Action.NO_DATA, first.version, "")
    assert again.data_version == first.data_version


def test_inserts_alone_are_read_from_the_added_files_and_appended(lake: Lake) -> None:
    refreshed(lake, LARGE)
    write(lake, "orders", orders(20, 21))

    done = refreshed(lake, LARGE)

    window = done.windows["orders"]
    assert (window.before, window.after, window.capture, window.rows) == (0, 1, "appended", 2)
    assert (done.action, done.inserted, done.deleted) == (Action.DIFFERENTIAL, 2, 0)
    assert DeltaTable(lake.location(LARGE.name)).history(1)[0]["operation"] == "WRITE"


def test_updates_and_deletes_are_read_from_the_feed(lake: Lake) -> None:
    refreshed(lake, LARGE)
    merge_into(lake, {"amount": "1"}, 0, 1, 2, 3)
    source(lake).delete("id = 10")

    done = refreshed(lake, LARGE)

    assert (done.windows["orders"].capture, done.windows["orders"].rows) == ("feed", 9)
    assert (done.action, done.inserted, done.deleted) == (Action.DIFFERENTIAL, 0, 5)


def test_a_feed_that_leaves_rows_out_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    bag = StreamTable("b", "SELECT amount FROM orders", differential_max_change_ratio=0)
    write(lake, "orders", pa.table({"amount": [1, 1, 1, 2]}))
    refreshed(lake, bag)
    # Three rows become 2 and one ceases to be; UPDATE in delta-rs writes no entry for either.
    source(lake).update(updates={"amount": "amount + 1"})

    done = refreshed(lake, bag)

    assert (done.action, done.windows["orders"].capture) == (Action.DIFFERENTIAL, "snapshots")


@pytest.mark.parametrize("table", [TOTALS, LARGE], ids=["groups", "bag"])
def test_without_a_feed_the_change_comes_from_the_two_ends(
    table: StreamTable, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(20)), feed=False)
    refreshed(lake, table)
    source(lake).update(predicate="id < 4", updates={"amount": "1"})
    source(lake).delete("id = 10")
    write(lake, "orders", orders(30, 31), feed=False)

    done = refreshed(lake, table)

    assert done.windows["orders"].capture == "snapshots"
    assert done.action is Action.DIFFERENTIAL


def test_many_changes_of_one_row_count_once(lake: Lake) -> None:
    refreshed(lake, LARGE)
    for amount in (1, 9, 4):
        source(lake).update(predicate="id = 7", updates={"amount": str(amount)})
    write(lake, "orders", orders(50))
    source(lake).delete("id = 50")

    done = refreshed(lake, LARGE)

    assert (done.inserted, done.deleted) == (1, 1)


def test_a_change_that_undoes_itself_changes_nothing_but_the_frontier(lake: Lake) -> None:
    first = refreshed(lake, LARGE)
    write(lake, "orders", orders(50))
    source(lake).delete("id = 50")

    done = refreshed(lake, LARGE)

    assert (done.action, done.data_version) == (Action.NO_DATA, first.data_version)
    assert lake.frontier(LARGE) == {"orders": 2}


def test_a_column_that_the_query_does_not_use_changes_nothing(lake: Lake) -> None:
    first = refreshed(lake, TOTALS)
    merge_into(lake, {"note": "'other'"}, *range(20))
    before = DeltaTable(lake.location(TOTALS.name)).version()

    done = refreshed(lake, TOTALS)

    assert (done.action, done.data_version) == (Action.NO_DATA, first.data_version)
    assert "none of them in a column that the query uses" in done.reason
    assert DeltaTable(lake.location(TOTALS.name)).version() == before + 1, "the frontier"


@pytest.mark.parametrize("feed", [True, False], ids=["feed", "snapshots"])
@pytest.mark.parametrize("driver_rows", [0, 1000], ids=["spark", "delta-rs"])
def test_a_query_that_uses_no_column_counts_all_the_same(
    driver_rows: int, feed: bool, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    count = StreamTable("n", "SELECT COUNT(*) AS n FROM orders", differential_max_change_ratio=0)
    write(lake, "orders", orders(*range(20)), feed=feed)
    refreshed(lake, count)
    write(lake, "orders", orders(20, 21))
    assert refreshed(lake, count).action is Action.DIFFERENTIAL
    source(lake).delete("id < 4")
    assert refreshed(lake, count).action is Action.DIFFERENTIAL
    assert lake.read("n").collect()[0]["n"] == 18


def test_compaction_and_vacuum_are_no_change(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(20))
    refreshed(lake, TOTALS)
    source(lake).optimize.compact()
    source(lake).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    done = Lake(lake.root, spark=NOWHERE).refresh(TOTALS)

    assert done.action is Action.NO_DATA
    assert done.windows["orders"].capture == "files"


def test_rows_that_came_and_were_compacted_in_one_window_are_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(20)), feed=False)
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(20, 21), feed=False)
    source(lake).optimize.compact()

    assert refreshed(lake, TOTALS).action is Action.DIFFERENTIAL


@pytest.mark.parametrize("table", [TOTALS, LARGE], ids=["groups", "bag"])
@pytest.mark.parametrize("feed", [True, False], ids=["feed", "snapshots"])
def test_overwrite_delete_restore_and_truncate(
    feed: bool, table: StreamTable, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark)
    write(lake, "orders", orders(*range(20)), feed=feed)
    refreshed(lake, table)
    write(lake, "orders", orders(*range(1, 22)), mode="overwrite")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    source(lake).restore(0)
    refreshed(lake, table)
    source(lake).delete()
    assert refreshed(lake, table).row_count == 0
    write(lake, "orders", orders(*range(3)))
    refreshed(lake, table)


def test_spark_with_deletion_vectors_and_merge(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    place = lake.location("orders")
    spark.createDataFrame(orders(*range(20))).write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(place)
    refreshed(lake, LARGE)
    spark.sql(f"DELETE FROM delta.`{place}` WHERE id IN (3, 4)")
    spark.sql(
        f"MERGE INTO delta.`{place}` t USING (SELECT 5L AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = 40"
    )

    done = refreshed(lake, LARGE)

    assert (done.action, done.windows["orders"].capture) == (Action.DIFFERENTIAL, "snapshots")
    assert (done.inserted, done.deleted) == (1, 3)


def test_copies_of_a_row_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    copies = StreamTable("c", "SELECT note FROM orders", differential_max_change_ratio=0)
    rows = pa.table({"note": ["a"] * 5 + ["b", None, None]})
    write(lake, "orders", rows)
    refreshed(lake, copies)
    # Two of five go: a MERGE would take all five.
    write(lake, "orders", pa.table({"note": ["a"] * 3 + ["b", None, "c"]}), mode="overwrite")

    done = refreshed(lake, copies)

    assert (done.action, done.row_count) == (Action.DIFFERENTIAL, 6)


@pytest.mark.parametrize("table", [TOTALS, LARGE], ids=["groups", "bag"])
def test_spark_commits_what_is_too_large_for_the_driver(
    table: StreamTable, lake: Lake, spark: SparkSession
) -> None:
    lake = Lake(lake.root, spark=spark, driver_rows=1)
    refreshed(lake, table)
    write(lake, "orders", orders(*range(20, 40)))
    assert refreshed(lake, table).writer == "spark"
    source(lake).update(predicate="id < 9", updates={"amount": "id"})
    source(lake).delete("id > 35")

    done = refreshed(lake, table)

    assert (done.action, done.writer) == (Action.DIFFERENTIAL, "spark")


def test_past_the_ratio_a_refresh_recomputes(lake: Lake) -> None:
    table = StreamTable("mart.t", TOTALS.query)
    refreshed(lake, table)
    write(lake, "orders", orders(20))
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    write(lake, "orders", orders(*range(21, 30)))

    done = refreshed(lake, table)

    assert done.action is Action.FULL
    assert done.reason == '9 of 30 rows of "orders" changed (30%), more than the ratio 0.15'


def test_modes(lake: Lake) -> None:
    with_map = "SELECT map(id, amount) AS amounts FROM orders"
    with pytest.raises(UnsupportedQuery, match="MAP"):
        lake.refresh(StreamTable("mart.m", with_map))
    full = StreamTable("mart.full", with_map, mode=Mode.FULL)
    auto = StreamTable("mart.auto", with_map, mode=Mode.AUTO)
    for table in (full, auto):
        refreshed(lake, table)
    write(lake, "orders", orders(20))

    assert refreshed(lake, full).reason == "the mode is FULL"
    assert 'the mode is AUTO, and "amounts" holds a MAP' in refreshed(lake, auto).reason


def test_a_changed_query_starts_anew(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    other = StreamTable(TOTALS.name, TOTALS.query.replace("SUM", "MAX"))

    done = refreshed(lake, other)

    assert (done.action, done.reason) == (Action.REINITIALIZE, "the definition changed")


def test_a_source_that_was_dropped_and_created_again_is_another_one(lake: Lake) -> None:
    write(lake, "orders", orders(20))
    refreshed(lake, TOTALS)
    shutil.rmtree(lake.location("orders"))
    write(lake, "orders", orders(1, 2))
    write(lake, "orders", orders(3))

    done = refreshed(lake, TOTALS)

    assert (done.action, done.reason) == (
        Action.REINITIALIZE,
        '"orders" was dropped and created again',
    )


def test_a_stream_table_that_was_dropped_by_hand_is_made_again(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    shutil.rmtree(lake.location(TOTALS.name))
    above = StreamTable("mart.above", "SELECT customer FROM mart.totals WHERE total > 3")
    with pytest.raises(MissingSource, match=r'there is no table "mart\.totals"'):
        lake.refresh(above)
    assert refreshed(lake, TOTALS).reason == "there is no table yet"
    write(lake, "orders", orders(20))
    refreshed(lake, TOTALS)
    refreshed(lake, above)


def test_rows_that_somebody_else_wrote_are_replaced(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    DeltaTable(lake.location(TOTALS.name)).delete("customer = 1")

    done = refreshed(lake, TOTALS)

    assert done.action is Action.REINITIALIZE
    assert "somebody else changed rows" in done.reason


def test_stream_tables_read_stream_tables_and_never_their_hidden_columns(lake: Lake) -> None:
    every = StreamTable("mart.every", "SELECT * FROM mart.totals", differential_max_change_ratio=0)
    refreshed(lake, TOTALS)
    refreshed(lake, every)
    assert (
        lake.read(TOTALS.name).columns == lake.read("mart.every").columns == ["customer", "total"]
    )
    write(lake, "orders", orders(20, 21))
    refreshed(lake, TOTALS)

    assert refreshed(lake, every).action is Action.DIFFERENTIAL


def test_a_source_that_is_no_delta_table(lake: Lake) -> None:
    Path(lake.location("plain")).mkdir(parents=True)
    with pytest.raises(MissingSource, match='source "plain" is not a Delta table'):
        lake.refresh(StreamTable("x", "SELECT a FROM plain"))
    with pytest.raises(MissingSource, match='there is no table "nowhere"'):
        lake.refresh(StreamTable("x", "SELECT a FROM nowhere"))
    assert lake.version("x") is None, "nothing was written"


def test_names_that_need_quotes(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    odd = {"two words": ["x", "y"], "Order": [1, 2], "a.b": [1, None], "tick`s": ["p", "q"]}
    write(lake, "odd", pa.table(odd))
    table = StreamTable(
        "t",
        "SELECT `two words` AS words, `Order`, SUM(`a.b`) AS `select` FROM odd GROUP BY 1, 2",
        differential_max_change_ratio=0,
    )
    bag = StreamTable("b", "SELECT * FROM odd WHERE `Order` > 1", differential_max_change_ratio=0)
    for each in (table,):
        refreshed(lake, each)
    DeltaTable(lake.location("odd")).delete("\"two words\" = 'x'")
    write(lake, "odd", pa.table({name: values[1:] for name, values in odd.items()}))
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    del bag


def test_types_keep_their_values_through_both_writers(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    place = lake.location("kinds")
    select = (
        "SELECT CAST(id AS TINYINT) AS tiny, CAST(id AS SMALLINT) AS small, "
        "CAST(id AS DECIMAL(38, 10)) AS wide, CAST(id AS FLOAT) / 3 AS f, "
        "CASE WHEN id % 3 = 0 THEN CAST('NaN' AS DOUBLE) WHEN id % 3 = 1 THEN -0.0D ELSE id END d, "
        "TIMESTAMP '2024-03-31 01:30:00' + MAKE_INTERVAL(0, 0, 0, 0, CAST(id AS INT)) AS at, "
        "CAST(TIMESTAMP_NTZ '2024-03-31 01:30:00' AS TIMESTAMP_NTZ) AS local, "
        "DATE '2024-02-29' AS day, CAST('ab' AS BINARY) AS bytes, id % 2 = 0 AS even, "
        "NAMED_STRUCT('x', id, 'y', IF(id > 3, NULL, 'z')) AS pair, ARRAY(id, NULL) AS list "
        "FROM range({start}, {stop})"
    )

    def add(start: int, stop: int) -> None:
        rows = spark.sql(select.format(start=start, stop=stop))
        rows.write.format("delta").mode("append").options(**FEED).save(place)

    add(0, 6)
    bag = StreamTable("bag", "SELECT * FROM kinds", differential_max_change_ratio=0)
    flat = StreamTable(
        "flat",
        "SELECT tiny, small, wide, f, d, at, local, day, bytes, even FROM kinds",
        differential_max_change_ratio=0,
    )
    keyed = StreamTable(
        "keyed",
        "SELECT d, pair.y AS y, SUM(wide) AS wide, AVG(f) AS f, MAX(at) AS at, MIN(list) AS list "
        "FROM kinds GROUP BY d, pair.y",
        differential_max_change_ratio=0,
    )
    for table in (bag, flat, keyed):
        refreshed(lake, table)
    add(6, 9)
    spark.sql(f"DELETE FROM delta.`{place}` WHERE tiny IN (1, 3, 7)")
    for table in (bag, flat, keyed):
        assert refreshed(lake, table).action is Action.DIFFERENTIAL


def test_a_partitioned_source(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    rows = orders(*range(12))
    write_deltalake(lake.location("orders"), rows, partition_by=["customer"])
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(40, 41, 42), feed=False)
    assert refreshed(lake, TOTALS).windows["orders"].capture == "appended"
    source(lake).update(predicate="id = 5", updates={"customer": "NULL"})
    assert refreshed(lake, TOTALS).windows["orders"].capture == "snapshots"
