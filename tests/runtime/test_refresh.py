"""What a refresh does, and says it did."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.errors import UnsupportedQuery
from dagster_streamtables.runtime.errors.table_errors import MissingSource
from runtime.delta import write
from runtime.orders import LARGE, NOWHERE, TOTALS, merge_into, orders, source
from runtime.refreshes import each_refreshed, maintained, refreshed


@pytest.mark.smoke("the first refresh, and one without changes")
def test_the_first_refresh_makes_the_table_and_the_second_finds_nothing(lake: Lake) -> None:
    first = refreshed(lake, TOTALS, Action.REINITIALIZE, reason="there is no table yet")
    assert (first.row_count, first.windows["orders"].after) == (3, 0)

    again = Lake(lake.root, spark=NOWHERE).refresh(TOTALS)

    assert (again.action, again.version, again.writer) == (Action.NO_DATA, first.version, "")
    assert again.data_version == first.data_version


def test_a_change_that_undoes_itself_changes_nothing_but_the_frontier(lake: Lake) -> None:
    first = refreshed(lake, LARGE)
    write(lake, "orders", orders(50))
    source(lake).delete("id = 50")

    refreshed(lake, LARGE, Action.NO_DATA, data_version=first.data_version)

    assert lake.frontier(LARGE) == {"orders": 2}


def test_a_column_that_the_query_does_not_use_changes_nothing(lake: Lake) -> None:
    first = refreshed(lake, TOTALS)
    merge_into(lake, {"note": "'other'"}, *range(20))
    before = DeltaTable(lake.location(TOTALS.name)).version()

    done = refreshed(lake, TOTALS, Action.NO_DATA, data_version=first.data_version)

    assert "none of them in a column that the query uses" in done.reason
    assert DeltaTable(lake.location(TOTALS.name)).version() == before + 1, "the frontier"


@pytest.mark.long
@pytest.mark.parametrize("table", [LARGE, TOTALS], ids=["bag", "groups"])
def test_spark_commits_what_is_too_large_for_the_driver(
    table: StreamTable, lake: Lake, spark: SparkSession
) -> None:
    lake = Lake(lake.root, spark=spark, driver_rows=1)
    refreshed(lake, table)
    write(lake, "orders", orders(*range(20, 40)))
    assert refreshed(lake, table).writer == "spark"
    source(lake).update(predicate="id < 9", updates={"amount": "id"})
    source(lake).delete("id > 35")

    refreshed(lake, table, Action.DIFFERENTIAL, writer="spark")


@pytest.mark.smoke("a full refresh instead of a large change")
def test_past_the_ratio_a_refresh_recomputes(lake: Lake) -> None:
    table = StreamTable("mart.t", TOTALS.query)
    refreshed(lake, table)
    write(lake, "orders", orders(*range(20, 5020)))
    assert refreshed(lake, table).action is Action.DIFFERENTIAL, "a few thousand rows are few"
    write(lake, "orders", orders(*range(5020, 10_021)))

    done = refreshed(lake, table, Action.FULL)

    assert done.reason == (
        '5,001 changed rows in "orders", which has 10,021: more than the ratio 0.15'
    )


@pytest.mark.smoke("FULL and AUTO")
def test_modes(lake: Lake) -> None:
    chance = "SELECT id, rand() * 0 AS zero FROM orders"
    with pytest.raises(UnsupportedQuery, match="rand"):
        lake.refresh(StreamTable("mart.m", chance))
    full = StreamTable("mart.full", chance, mode=Mode.FULL)
    auto = StreamTable("mart.auto", chance, mode=Mode.AUTO)
    each_refreshed(lake, full, auto)
    write(lake, "orders", orders(20))

    assert refreshed(lake, full).reason == "the mode is FULL"
    assert "the mode is AUTO, and rand() cannot be maintained" in refreshed(lake, auto).reason


@pytest.mark.smoke("rows of another definition")
def test_a_changed_query_starts_anew(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    other = StreamTable(TOTALS.name, TOTALS.query.replace("SUM", "MAX"))

    refreshed(lake, other, Action.REINITIALIZE, reason="the definition changed")


@pytest.mark.smoke("a source of the same name and version")
def test_a_source_that_was_dropped_and_created_again_is_another_one(lake: Lake) -> None:
    write(lake, "orders", orders(20))
    refreshed(lake, TOTALS)
    shutil.rmtree(lake.location("orders"))
    write(lake, "orders", orders(1, 2))
    write(lake, "orders", orders(3))

    refreshed(lake, TOTALS, Action.REINITIALIZE, reason='"orders" was dropped and created again')


def test_a_stream_table_that_was_dropped_by_hand_is_made_again(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    shutil.rmtree(lake.location(TOTALS.name))
    above = StreamTable("mart.above", "SELECT customer FROM mart.totals WHERE total > 3")
    with pytest.raises(MissingSource, match=r'there is no table "mart\.totals"'):
        lake.refresh(above)
    assert refreshed(lake, TOTALS).reason == "there is no table yet"
    write(lake, "orders", orders(20))
    each_refreshed(lake, TOTALS, above)


@pytest.mark.smoke("rows of another writer")
def test_rows_that_somebody_else_wrote_are_replaced(lake: Lake) -> None:
    refreshed(lake, TOTALS)
    DeltaTable(lake.location(TOTALS.name)).delete("customer = 1")

    refreshed(lake, TOTALS, Action.REINITIALIZE, because="somebody else changed rows")


@pytest.mark.smoke("stream tables over stream tables")
def test_stream_tables_read_stream_tables_and_never_their_hidden_columns(lake: Lake) -> None:
    every = maintained("mart.every", "SELECT * FROM mart.totals")
    each_refreshed(lake, TOTALS, every)
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


@pytest.mark.long
def test_a_table_is_mentioned_again_beside_a_natural_join(lake: Lake) -> None:
    write(lake, "orders", orders(1, 2, 3))
    write(lake, "customers", pa.table({"id": pa.array([1, 2], pa.int64()), "region": ["a", "b"]}))
    least = "SELECT (SELECT MIN(id) FROM orders) AS least"
    named = "SELECT c.region, o.id AS other FROM customers AS c NATURAL LEFT JOIN orders AS o"
    table = maintained(
        "mart.named",
        f"SELECT n.region, l.least FROM ({least}) AS l JOIN ({named}) AS n ON l.least = n.other",
    )

    refreshed(lake, table)
    write(lake, "orders", orders(0))
    write(lake, "customers", pa.table({"id": pa.array([0], pa.int64()), "region": ["c"]}))
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


@pytest.mark.long
def test_comments_and_spaces_are_no_other_definition(lake: Lake) -> None:
    first = refreshed(lake, LARGE)
    again = "-- those that matter\nselect id,\n  amount /* in cents */ from orders where amount > 3"

    done = Lake(lake.root, spark=NOWHERE).refresh(replace(LARGE, query=again))

    assert (done.action, done.version) == (Action.NO_DATA, first.version)
    for other in (
        "SELECT id, amount FROM orders WHERE amount > 4",
        "SELECT id, Amount FROM orders",
    ):
        done = refreshed(lake, replace(LARGE, query=other))
        assert (done.action, done.reason) == (Action.REINITIALIZE, "the definition changed")


def test_a_refresh_says_how_large_the_table_is_and_which_part_of_a_source_changed(
    lake: Lake,
) -> None:
    assert refreshed(lake, TOTALS).change_ratio is None, "the source was read as a whole"
    write(lake, "orders", orders(20, 21, 22, 23, 24))

    done = refreshed(lake, TOTALS, change_ratio=5 / 25)

    log = DeltaTable(lake.location(TOTALS.name))
    actions = pa.table(log.get_add_actions())
    assert (done.files, done.row_count) == (actions.num_rows, 3)
    assert done.size_bytes == sum(actions["size_bytes"].to_pylist())


@pytest.mark.long
def test_changed_rows_are_shown_where_that_is_asked_for(spark: SparkSession, lake: Lake) -> None:
    each_refreshed(lake, LARGE, TOTALS)
    source(lake).delete("id = 1")
    shown = Lake(lake.root, spark=spark, preview_rows=1)

    went = {"__change": "went", "__copies": 1, "id": 1, "amount": 6}
    assert list(shown.refresh(LARGE).preview) == [went]
    [group] = shown.refresh(TOTALS).preview
    assert group == {"__change": "came", "__copies": 1, "customer": 1, "total": 33}
    write(lake, "orders", orders(30))
    assert list(refreshed(lake, LARGE).preview) == [], "nobody asked"
