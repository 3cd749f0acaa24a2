"""Traps of windows: slow readers, chains, empty sources, huge changes, modes in turns."""

from __future__ import annotations

import random

import pytest

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.runtime.refresh.refresh_decisions import FEW_ROWS
from named_rows import rows_in_order
from runtime.delta import on_spark, run_on_delta, write, write_by_spark
from runtime.orders import LARGE, NOWHERE, TOTALS, merge_into, orders, source
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed
from runtime.ways import feeds, no_orders

pytestmark = pytest.mark.long


def test_p03_a_slow_reader_misses_nothing_that_a_fast_one_has_read(lake: Lake) -> None:
    slow = maintained("mart.slow", LARGE.query)
    each_refreshed(lake, LARGE, slow)
    for i in range(5):
        write(lake, "orders", orders(50 + i, 60 + i))
        lake.refresh(LARGE)
        source(lake).delete(f"id = {50 + i}")
        lake.refresh(LARGE)
    assert lake.check(LARGE).equal

    done = refreshed(lake, slow, Action.DIFFERENTIAL, inserted=5, deleted=0)

    assert (done.windows["orders"].before, done.windows["orders"].after) == (0, 10)


def test_p09_commits_that_change_no_row_are_no_data(lake: Lake) -> None:
    write(lake, "orders", orders(20, 21))
    first = [refreshed(lake, table) for table in (TOTALS, LARGE)]
    on_spark(lake, "OPTIMIZE {orders} ZORDER BY (customer)")
    on_spark(lake, "ALTER TABLE {orders} SET TBLPROPERTIES ('team' = 'us')")
    source(lake).vacuum(dry_run=False)

    for table, made in zip((TOTALS, LARGE), first, strict=True):
        done = Lake(lake.root, spark=NOWHERE).refresh(table)
        assert (done.action, done.version) == (Action.NO_DATA, made.version)
        assert done.reason == "no rows changed, files were rearranged only"
    for i in range(12):
        source(lake).alter.set_table_properties(
            {"delta.logRetentionDuration": f"interval {i} days"}
        )
    far = Lake(lake.root, spark=NOWHERE).refresh(TOTALS)
    assert (far.action, far.data_version) == (Action.NO_DATA, first[0].data_version)
    assert lake.frontier(TOTALS) == {"orders": source(lake).version()}, "it may not fall behind"
    source(lake).delete("id = 4")
    each_followed(lake, TOTALS, LARGE)


@pytest.mark.parametrize("feed", ["true", "false"], ids=["feed", "no feed"])
@no_orders
def test_p10_deletion_vectors_delete_a_row_once(feed: str, lake: Lake) -> None:
    vectors = {"enableDeletionVectors": "true", "enableChangeDataFeed": feed}
    write_by_spark(lake, "orders", orders(*range(20)), **vectors)
    refreshed(lake, LARGE)
    run_on_delta(lake, "DELETE FROM orders WHERE id = 3")
    refreshed(lake, LARGE, Action.DIFFERENTIAL, inserted=0, deleted=1)
    on_spark(lake, "REORG TABLE {orders} APPLY (PURGE)")
    purged = Lake(lake.root, spark=NOWHERE).refresh(LARGE)
    run_on_delta(lake, "DELETE FROM orders WHERE id IN (4, 5)")
    on_spark(lake, "REORG TABLE {orders} APPLY (PURGE)")
    refreshed(lake, LARGE, Action.DIFFERENTIAL, inserted=0, deleted=2)

    assert (purged.action, purged.windows["orders"].capture) == (Action.NO_DATA, "files")


def test_p21_modes_in_turns(lake: Lake) -> None:
    """What a fold keeps in hidden columns is there after every kind of refresh."""
    query = (
        "SELECT customer, AVG(amount) AS mean, MIN(id) AS least, COUNT(note) AS notes "
        "FROM orders GROUP BY customer"
    )
    table = maintained("mart.folded", query)
    always = StreamTable("mart.folded", query, mode=Mode.FULL)
    dice = random.Random(5)
    refreshed(lake, table)
    for step, full in enumerate([True, False, True, False]):
        write(lake, "orders", orders(100 + step, amount=dice.randint(1, 9)))
        source(lake).delete(f"id = {dice.randint(0, 19)} OR id = {step}")
        refreshed(lake, table, Action.FULL if full else Action.DIFFERENTIAL, full=full)

    for each in (always, table):
        assert refreshed(lake, each).reason == "the definition changed"
    source(lake).delete("id > 99")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


def test_p22_a_choice_recovers_when_the_data_has_grown(lake: Lake) -> None:
    table = StreamTable("mart.totals", TOTALS.query)
    refreshed(lake, table)
    for first in (20, 20 + 2 * FEW_ROWS):
        write(lake, "orders", orders(*range(first, first + 2 * FEW_ROWS)))
        assert refreshed(lake, table).action is Action.FULL
    write(lake, "orders", orders(10**6))

    assert refreshed(lake, table).action is Action.DIFFERENTIAL


def test_p23_who_reads_a_table_computed_in_full_sees_what_differs(lake: Lake) -> None:
    upper = StreamTable("mart.upper", LARGE.query, mode=Mode.FULL)
    lower = StreamTable("mart.lower", 'SELECT COUNT(*) AS n FROM "mart.upper"', dialect="postgres")
    made = [refreshed(lake, table) for table in (upper, lower)]
    write(lake, "orders", orders(20, amount=1))

    same = refreshed(lake, upper, Action.FULL, inserted=0, deleted=0)
    below = Lake(lake.root, spark=NOWHERE).refresh(lower)

    assert same.reason == "the mode is FULL, the result is the same"
    assert same.data_version == made[0].data_version
    assert (below.action, below.version) == (Action.NO_DATA, made[1].version)

    merge_into(lake, {"amount": "9"}, 1)
    refreshed(lake, upper, inserted=1, deleted=1)
    refreshed(lake, lower, rows_in=2)


def test_p25_a_chain_stops_where_nothing_changes(lake: Lake) -> None:
    queries = [
        "SELECT id, customer, amount, note FROM orders",
        "SELECT id, customer, amount FROM level_1 WHERE amount > 3",
        "SELECT customer, SUM(amount) AS total FROM level_2 GROUP BY customer",
        "SELECT MAX(total) AS most FROM level_3",
    ]
    chain = [maintained(f"level_{i}", query) for i, query in enumerate(queries, 1)]
    made = [refreshed(lake, table) for table in chain]
    merge_into(lake, {"note": "'other'"}, 1, 2)
    assert refreshed(lake, chain[0]).action is Action.DIFFERENTIAL
    without = Lake(lake.root, spark=NOWHERE)
    for table, first in zip(chain[1:], made[1:], strict=True):
        done = without.refresh(table)
        assert (done.action, done.data_version) == (Action.NO_DATA, first.data_version)

    write(lake, "orders", orders(22, amount=-9))
    actions = [refreshed(lake, table).action for table in chain]
    assert actions == [Action.DIFFERENTIAL, *[Action.NO_DATA] * 3]


@pytest.mark.parametrize("driver_rows", [100])
@no_orders
def test_p30_a_change_of_every_row(lake: Lake) -> None:
    write(lake, "orders", orders(*range(3000)))
    chosen = StreamTable("mart.chosen", LARGE.query)
    each_refreshed(lake, chosen, LARGE)
    merge_into(lake, {"amount": "t.amount + 1"}, *range(3000))

    refreshed(lake, chosen, Action.FULL, because='6,000 changed rows in "orders", which has 3,000')
    refreshed(lake, LARGE, Action.DIFFERENTIAL, writer="spark", inserted=3000, deleted=3000)


@feeds
@no_orders
def test_p31_a_source_that_is_empty_filled_and_emptied(feed: bool, lake: Lake) -> None:
    write(lake, "orders", orders(1).slice(1), feed=feed)
    one = maintained(
        "mart.one", "SELECT COUNT(*) AS n, SUM(amount) AS total, MAX(id) AS last FROM orders"
    )
    tables = (one, LARGE)
    assert [refreshed(lake, table).row_count for table in tables] == [1, 0]
    write(lake, "orders", orders(1, 2, 3), feed=feed)
    filled = [refreshed(lake, table) for table in tables]
    source(lake).delete()
    emptied = [refreshed(lake, table) for table in tables]

    assert {done.action for done in (*filled, *emptied)} == {Action.DIFFERENTIAL}
    assert [done.row_count for done in (*filled, *emptied)] == [1, 3, 1, 0]
    assert rows_in_order(lake.read("mart.one"), "n, total, last") == [(0, None, None)]


def test_p35_an_update_leaves_the_path_of_appends(lake: Lake) -> None:
    numbers = maintained(
        "mart.numbers", "SELECT o.id, p.amount FROM orders AS o JOIN orders AS p ON p.id = o.id"
    )
    each_refreshed(lake, numbers, TOTALS)
    captures: list[str] = []
    for step in range(3):
        if step < 2:
            write(lake, "orders", orders(20 + step, 0))
        else:
            merge_into(lake, {"amount": "1"}, 20, 21)
        for table in (numbers, TOTALS):
            done = refreshed(lake, table, Action.DIFFERENTIAL)
        captures.append(done.windows["orders"].capture)

    assert captures == ["appended", "appended", "feed"]
