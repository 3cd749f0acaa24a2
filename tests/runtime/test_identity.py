"""What a file, a column and a version are known by: not by a name or a number that two may have."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Barrier, Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.errors import ConflictingCommit, SourceProblem
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import change_between
from runtime.delta import create, on_spark, run_on_delta, stored, write, write_by_spark
from runtime.orders import LARGE, TOTALS, merge_into, orders
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import feeds, no_orders
from traps.faults import kept_aside


def _alter(lake: Lake, what: str) -> None:
    on_spark(lake, f"ALTER TABLE {{orders}} {what}")


@pytest.mark.long
@feeds
def test_files_that_are_added_again_are_no_new_files(lake: Lake) -> None:
    """Row tracking, when it is switched on, adds every file once more and removes none."""
    refreshed(lake, TOTALS)
    _alter(lake, "SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")

    refreshed(lake, TOTALS, Action.NO_DATA)
    run_on_delta(lake, "INSERT INTO orders SELECT 20L, 2L, 5, 'note 20'")
    refreshed(lake, TOTALS, Action.DIFFERENTIAL, rows_in=1)
    run_on_delta(lake, "DELETE FROM orders WHERE id = 3")
    refreshed(lake, TOTALS, Action.DIFFERENTIAL)


def test_a_file_that_is_added_again_as_new_data_is_still_the_same_file(lake: Lake) -> None:
    """No writer should say so; the rows of a table are what its files are, not what commits say."""
    refreshed(lake, TOTALS)
    log = Path(lake.location("orders")) / "_delta_log"
    [add] = [
        line
        for line in (log / f"{0:020d}.json").read_text().splitlines()
        if line.startswith('{"add"')
    ]
    (log / f"{1:020d}.json").write_text(add + "\n")

    assert refreshed(lake, TOTALS).row_count == 3


# What Spark matches by path is shown by the test after this one, too.
@pytest.mark.long
@pytest.mark.parametrize("driver_rows", [1000, 0], ids=["here", "in Spark"])
@no_orders
def test_files_of_one_name_in_several_partitions(lake: Lake) -> None:
    """After CONVERT TO DELTA each partition may have its part-00000.parquet."""
    place = Path(lake.location("orders"))
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "amount": pa.array([5, 6], pa.int32())})
    for partition in ("a", "b", "c d"):
        (place / f"p={partition}").mkdir(parents=True)
        pq.write_table(rows, place / f"p={partition}" / "part-00000.parquet")
    on_spark(lake, f"CONVERT TO DELTA parquet.`{place}` PARTITIONED BY (p STRING)")
    table = maintained(
        "mart.parts", "SELECT p, id, SUM(amount) AS total FROM orders GROUP BY p, id"
    )
    refreshed(lake, table)
    run_on_delta(lake, "UPDATE orders SET amount = 7 WHERE p = 'a' AND id = 1")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    run_on_delta(lake, "DELETE FROM orders WHERE p = 'b'")
    refreshed(lake, table, Action.DIFFERENTIAL, deleted=2)
    on_spark(lake, "RESTORE TABLE {orders} TO VERSION AS OF 0")
    refreshed(lake, table, Action.DIFFERENTIAL, row_count=6)


@pytest.mark.long
@pytest.mark.parametrize("driver_rows", [0])
@no_orders
def test_an_added_file_that_has_the_name_of_another(lake: Lake) -> None:
    place = Path(lake.location("orders"))
    for ids in ([1, 2], [3]):
        write(lake, "orders", orders(*ids), feed=False, partition_by=["customer"])
    refreshed(lake, TOTALS)
    log = place / "_delta_log"
    [old] = list((place / "customer=0").glob("*.parquet"))
    (place / "customer=9").mkdir()
    shutil.copy(old, place / "customer=9" / old.name)
    adds = [line for line in (log / f"{1:020d}.json").read_text().splitlines() if '"add"' in line]
    [add] = [line.replace("customer=0", "customer=9") for line in adds]
    (log / f"{2:020d}.json").write_text(add.replace('"customer":"0"', '"customer":"9"') + "\n")

    refreshed(lake, TOTALS, Action.DIFFERENTIAL, inserted=1)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        ("STRUCT<a: INT, b: INT>", "s.b"),
        pytest.param("ARRAY<STRUCT<a: INT, b: INT>>", "s.element.b", marks=pytest.mark.long),
        pytest.param("MAP<STRING, STRUCT<a: INT, b: INT>>", "s.value.b", marks=pytest.mark.long),
    ],
)
@no_orders
def test_a_field_inside_a_column_that_was_dropped_and_added_again(
    column: str, what: str, lake: Lake
) -> None:
    literal = "named_struct('a', 1, 'b', 2)"
    value = {"S": literal, "A": f"array({literal})", "M": f"map('k', {literal})"}[column[0]]
    mapped = {"columnMapping.mode": "name", "enableChangeDataFeed": True}
    create(lake, "orders", f"id BIGINT, s {column}", **mapped)
    run_on_delta(lake, f"INSERT INTO orders SELECT 1L, {value}")
    read = {"S": "s.b", "A": "s[0].b", "M": "s['k'].b"}[column[0]]
    table = StreamTable("mart.b", f"SELECT id, {read} AS b FROM orders")
    refreshed(lake, table)
    _alter(lake, f"DROP COLUMN {what}")
    _alter(lake, f"ADD COLUMN {what} INT")

    assert refreshed(lake, table).action is Action.REINITIALIZE
    assert stored(lake, table.name, ["id", "b"]) == {("1", "NULL"): 1}


@pytest.mark.parametrize(
    "feed",
    [pytest.param(True, id="feed", marks=pytest.mark.long), pytest.param(False, id="no feed")],
)
def test_a_source_that_was_put_back_and_overtaken(
    spark: SparkSession, tmp_path: Path, lake: Lake
) -> None:
    """Its id is the same, and the numbers of its versions go on from where the copy was made."""
    with kept_aside(Path(lake.location("orders"))):
        merge_into(lake, {"amount": "30"}, 1, 2)
        refreshed(lake, TOTALS)
    merge_into(lake, {"amount": "40"}, 3, 4)
    merge_into(lake, {"amount": "50"}, 5)

    for each in (lake, Lake(tmp_path, spark=spark)):
        with pytest.raises(SourceProblem, match="no longer has the version 1"):
            each.check(TOTALS)
    done = refreshed(lake, TOTALS, Action.REINITIALIZE)

    assert done.reason == '"orders" was restored: version 1 is not the one that was read last'


@pytest.mark.long
def test_a_source_that_was_put_back_under_a_table_that_had_read_less_of_it(lake: Lake) -> None:
    """Its frontier stands in both histories; what another table made Spark keep does not."""
    refreshed(lake, LARGE)
    with kept_aside(Path(lake.location("orders"))):
        merge_into(lake, {"amount": "30"}, 1, 2)
        refreshed(lake, TOTALS)
        lake.read("orders").collect()
    merge_into(lake, {"amount": "40"}, 3, 4)

    assert refreshed(lake, LARGE).action is Action.DIFFERENTIAL
    assert refreshed(lake, TOTALS).action is Action.REINITIALIZE


@feeds
def test_rows_that_delta_rs_deletes_are_counted(feed: bool, lake: Lake) -> None:
    write(lake, "others", orders(*range(20)), feed=feed)
    table = DeltaTable(lake.location("others"))
    table.delete("id < 7")
    log = TableLog(lake.location("others"), table)

    assert change_between(log, 0).rows == 7
    assert change_between(log, 0).without_feed.rows == 7


@pytest.mark.long
def test_rows_that_a_deletion_vector_takes_are_counted(lake: Lake) -> None:
    write_by_spark(lake, "vectors", orders(*range(100)), enableDeletionVectors="true")
    run_on_delta(lake, "DELETE FROM vectors WHERE id IN (3, 4)")
    run_on_delta(lake, "DELETE FROM vectors WHERE id = 5")

    place = lake.location("vectors")
    assert change_between(TableLog(place, DeltaTable(place)), 0).rows == 3
    assert change_between(TableLog(place, DeltaTable(place)), 1).rows == 1


@pytest.mark.long
@pytest.mark.parametrize("table", [TOTALS, LARGE], ids=["groups", "bag"])
def test_threads_that_refresh_one_table_apply_a_change_once(table: StreamTable, lake: Lake) -> None:
    """delta-rs moves a table object to the version that it commits, under whoever else holds it."""
    refreshed(lake, table)
    committed = 0
    for turn in range(3):
        write(lake, "orders", orders(100 + turn, 200 + turn))
        merge_into(lake, {"amount": f"{10 + turn}"}, turn)
        together = Barrier(4)
        lost: list[Exception] = []

        def refresh(together: Barrier = together, lost: list[Exception] = lost) -> None:
            together.wait()
            try:
                lake.refresh(table)
            except ConflictingCommit as error:
                lost.append(error)

        threads = [Thread(target=refresh) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(lost) < 4
        assert lake.check(table).equal
        committed += 1
    assert committed == 3


def test_a_log_that_is_held_stays_where_it_is(lake: Lake) -> None:
    refreshed(lake, LARGE)
    held = lake._catalog.newest(LARGE.name)
    assert held is not None
    version, files = held._table.version(), held.adds.column("path").to_pylist()
    write(lake, "orders", orders(50))
    refreshed(lake, LARGE)

    assert held._table.version() == held.version == version
    assert held._table.get_add_actions().column("path").to_pylist() == files


@pytest.mark.long
def test_a_table_put_back_is_another_history_to_its_readers(lake: Lake) -> None:
    """A stream table over a stream table, of which the lower one is put back and goes on."""
    upper = StreamTable("mart.sum", "SELECT SUM(total) AS total FROM mart.totals")
    refreshed(lake, TOTALS)
    with kept_aside(Path(lake.location(TOTALS.name))):
        merge_into(lake, {"amount": "30"}, 1)
        each_refreshed(lake, TOTALS, upper)
    merge_into(lake, {"amount": "40"}, 2)
    refreshed(lake, TOTALS)

    assert refreshed(lake, upper).action is Action.REINITIALIZE
