"""Where the change of a source is read from, for everything that can come to one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.runtime.compute import differential
from runtime.delta import on_spark, run_on_delta, write, write_by_spark
from runtime.orders import LARGE, NOWHERE, TOTALS, merge_into, orders, source
from runtime.refreshes import maintained, refreshed
from runtime.ways import feeds, no_feed, no_orders, writers


@pytest.mark.smoke("a change read from added files")
def test_inserts_alone_are_read_from_the_added_files_and_appended(lake: Lake) -> None:
    refreshed(lake, LARGE)
    write(lake, "orders", orders(20, 21))

    done = refreshed(lake, LARGE, Action.DIFFERENTIAL, inserted=2, deleted=0)

    window = done.windows["orders"]
    assert (window.before, window.after, window.capture, window.rows) == (0, 1, "appended", 2)
    assert DeltaTable(lake.location(LARGE.name)).history(1)[0]["operation"] == "WRITE"


@pytest.mark.smoke("a change read from the change data feed")
def test_updates_and_deletes_are_read_from_the_feed(lake: Lake) -> None:
    refreshed(lake, LARGE)
    merge_into(lake, {"amount": "1"}, 0, 1, 2, 3)
    source(lake).delete("id = 10")

    refreshed(lake, LARGE, Action.DIFFERENTIAL, capture="feed", rows_in=9, inserted=0, deleted=5)


@pytest.mark.long
def test_a_feed_that_leaves_rows_out_is_not_read(lake: Lake) -> None:
    bag = maintained("b", "SELECT amount FROM few")
    write(lake, "few", pa.table({"amount": [1, 1, 1, 2]}))
    refreshed(lake, bag)
    # Three rows become 2 and one ceases to be; UPDATE in delta-rs writes no entry for either.
    DeltaTable(lake.location("few")).update(updates={"amount": "amount + 1"})

    refreshed(lake, bag, Action.DIFFERENTIAL, capture="snapshots")


@no_feed
@pytest.mark.parametrize(
    ("table", "driver_rows"),
    [
        pytest.param(TOTALS, 1000, id="groups, here"),
        pytest.param(TOTALS, 0, id="groups, spark", marks=pytest.mark.long),
        pytest.param(LARGE, 1000, id="bag, here", marks=pytest.mark.long),
        pytest.param(LARGE, 0, id="bag, spark", marks=pytest.mark.long),
    ],
)
def test_without_a_feed_the_change_comes_from_the_two_ends(table: StreamTable, lake: Lake) -> None:
    refreshed(lake, table)
    source(lake).update(predicate="id < 4", updates={"amount": "1"})
    source(lake).delete("id = 10")
    write(lake, "orders", orders(30, 31), feed=False)

    refreshed(lake, table, Action.DIFFERENTIAL, capture="snapshots")


ODD = pa.table(
    {
        "id": [1, 1, 2, 3, 4, 5],
        "part": ["a", "a", "b / b", None, "b / b", "a"],
        "value": [0.5, 0.5, float("nan"), -0.0, 0.0, None],
    }
)
EVERYTHING = maintained("e", "SELECT * FROM odd")


@pytest.mark.long
@pytest.mark.parametrize("partition", [None, ["part"]], ids=["whole", "partitioned"])
def test_without_a_feed_small_files_are_read_here(
    partition: list[str] | None, monkeypatch: pytest.MonkeyPatch, lake: Lake
) -> None:
    write(lake, "odd", ODD, feed=False, partition_by=partition)
    refreshed(lake, EVERYTHING)
    monkeypatch.setattr(differential, "large_change", lambda *_: pytest.fail("it asks Spark"))

    for change in ("value = 7.5 WHERE id = 3", "value = 0.0 WHERE id = 2", "id = 9 WHERE id = 1"):
        assignment, _, predicate = change.partition(" WHERE ")
        name, _, value = assignment.partition(" = ")
        DeltaTable(lake.location("odd")).update(updates={name: value}, predicate=predicate)
        write(lake, "odd", ODD.slice(1, 1), feed=False)
        refreshed(lake, EVERYTHING, Action.DIFFERENTIAL, capture="snapshots")
    DeltaTable(lake.location("odd")).delete("part = 'a'")
    refreshed(lake, EVERYTHING, Action.DIFFERENTIAL, row_count=3)


@pytest.mark.long
@no_orders
def test_files_of_which_a_deletion_vector_went_are_left_to_spark(lake: Lake) -> None:
    write_by_spark(lake, "orders", orders(*range(20)), enableDeletionVectors="true")
    run_on_delta(lake, "DELETE FROM orders WHERE id = 3")
    refreshed(lake, LARGE)
    # The file goes whole, with a row that was gone before.
    on_spark(lake, "INSERT OVERWRITE {orders} SELECT * FROM {orders} WHERE id > 9")

    refreshed(lake, LARGE, Action.DIFFERENTIAL, deleted=9)


@pytest.mark.long
def test_nested_columns_of_two_ends_are_compared_by_spark(lake: Lake) -> None:
    lists = pa.table({"id": [1, 2, 3], "marks": [[1, 2], [], None]})
    table = maintained("m", "SELECT id, marks FROM lists")
    write(lake, "lists", lists, feed=False)
    refreshed(lake, table)
    DeltaTable(lake.location("lists")).update(updates={"id": "9"}, predicate="id = 2")

    refreshed(lake, table, Action.DIFFERENTIAL, inserted=1, deleted=1)


def test_many_changes_of_one_row_count_once(lake: Lake) -> None:
    refreshed(lake, LARGE)
    for amount in (1, 9, 4):
        source(lake).update(predicate="id = 7", updates={"amount": str(amount)})
    write(lake, "orders", orders(50))
    source(lake).delete("id = 50")

    refreshed(lake, LARGE, inserted=1, deleted=1)


@pytest.mark.long
@feeds
@writers
def test_a_query_that_uses_no_column_counts_all_the_same(lake: Lake) -> None:
    count = maintained("n", "SELECT COUNT(*) AS n FROM orders")
    refreshed(lake, count)
    write(lake, "orders", orders(20, 21))
    assert refreshed(lake, count).action is Action.DIFFERENTIAL
    source(lake).delete("id < 4")
    assert refreshed(lake, count).action is Action.DIFFERENTIAL
    assert lake.read("n").collect()[0]["n"] == 18


@pytest.mark.smoke("commits that change no rows")
def test_compaction_and_vacuum_are_no_change(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(20))
    refreshed(lake, TOTALS)
    source(lake).optimize.compact()
    source(lake).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    done = Lake(lake.root, spark=NOWHERE).refresh(TOTALS)

    assert done.action is Action.NO_DATA
    assert done.windows["orders"].capture == "files"


@no_feed
def test_rows_that_came_and_were_compacted_in_one_window_are_found(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    write(lake, "orders", orders(20, 21), feed=False)
    source(lake).optimize.compact()

    assert refreshed(lake, TOTALS).action is Action.DIFFERENTIAL


@pytest.mark.long
@feeds
@pytest.mark.parametrize("table", [TOTALS, LARGE], ids=["groups", "bag"])
def test_overwrite_delete_restore_and_truncate(table: StreamTable, lake: Lake) -> None:
    refreshed(lake, table)
    write(lake, "orders", orders(*range(1, 22)), mode="overwrite")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    source(lake).restore(0)
    refreshed(lake, table)
    source(lake).delete()
    assert refreshed(lake, table).row_count == 0
    write(lake, "orders", orders(*range(3)))
    refreshed(lake, table)


@pytest.mark.long
@no_orders
def test_spark_with_deletion_vectors_and_merge(lake: Lake) -> None:
    write_by_spark(lake, "orders", orders(*range(20)), enableDeletionVectors="true")
    refreshed(lake, LARGE)
    run_on_delta(lake, "DELETE FROM orders WHERE id IN (3, 4)")
    on_spark(
        lake,
        "MERGE INTO {orders} t USING (SELECT 5L AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = 40",
    )

    refreshed(lake, LARGE, Action.DIFFERENTIAL, capture="snapshots", inserted=1, deleted=3)


def test_copies_of_a_row_are_counted(lake: Lake) -> None:
    copies = maintained("c", "SELECT note FROM notes")
    write(lake, "notes", pa.table({"note": ["a"] * 5 + ["b", None, None]}))
    refreshed(lake, copies)
    # Two of five go: a MERGE would take all five.
    write(lake, "notes", pa.table({"note": ["a"] * 3 + ["b", None, "c"]}), mode="overwrite")

    refreshed(lake, copies, Action.DIFFERENTIAL, row_count=6)
