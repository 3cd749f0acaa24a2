"""Intermediate tables on Delta: made when they are first needed, and never behind or ahead."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, Mode, OnFull
from dagster_streamtables.runtime.spark.settings import settings_for_now
from runtime.delta import on_spark, session, write
from runtime.refreshes import maintained, refreshed
from runtime.ways import no_orders
from traps.faults import kept_aside

pytestmark = [pytest.mark.long, no_orders]

ABOVE = maintained(
    "above",
    "SELECT o.id, o.amount FROM orders AS o WHERE o.amount > "
    "(SELECT AVG(i.amount) FROM orders AS i WHERE i.customer = o.customer)",
)


def orders(*rows: tuple[int, int, int]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(("id", "customer", "amount"), columns, strict=True)))


FIRST = orders((1, 1, 10), (2, 1, 20), (3, 2, 5), (4, 2, 7))


@pytest.fixture
def lake(lake: Lake) -> Lake:
    write(lake, "orders", FIRST)
    lake.refresh(ABOVE)
    return lake


def insert(lake: Lake, *rows: tuple[int, int, int]) -> None:
    write(lake, "orders", orders(*rows))


def folders(lake: Lake) -> list[Path]:
    return sorted(Path(lake.location(ABOVE.name), "_intermediate").glob("*"))


def test_they_are_made_by_the_first_differential_refresh(lake: Lake) -> None:
    assert folders(lake) == []

    insert(lake, (5, 1, 30))
    [first] = lake.refresh(ABOVE).intermediates.values()
    insert(lake, (6, 2, 1))
    done = refreshed(lake, ABOVE, Action.DIFFERENTIAL)

    assert first.action is Action.REINITIALIZE
    assert [each.action for each in done.intermediates.values()] == [Action.DIFFERENTIAL]
    assert len(folders(lake)) == 1


def test_a_full_refresh_leaves_them_and_the_next_one_brings_them_up(lake: Lake) -> None:
    insert(lake, (5, 1, 30))
    lake.refresh(ABOVE)
    [folder] = folders(lake)
    before = DeltaTable(folder).version()

    insert(lake, (6, 2, 90))
    assert lake.refresh(ABOVE, full=True).intermediates == {}
    assert DeltaTable(folder).version() == before

    insert(lake, (7, 2, 80))
    assert lake.refresh(ABOVE).action is Action.DIFFERENTIAL
    assert DeltaTable(folder).version() == before + 2
    assert lake.check(ABOVE).equal


def test_one_that_is_ahead_is_read_at_the_frontier(lake: Lake) -> None:
    """As after a kill between its commit and the table's."""
    insert(lake, (5, 1, 30))
    lake.refresh(ABOVE)
    place = Path(lake.location(ABOVE.name))
    with kept_aside(place):
        insert(lake, (6, 1, 25))
        lake.refresh(ABOVE)
        ahead = shutil.move(place / "_intermediate", place.parent / "ahead")
    shutil.rmtree(place / "_intermediate")
    shutil.move(ahead, place / "_intermediate")

    insert(lake, (7, 1, 1))
    refreshed(lake, ABOVE, Action.DIFFERENTIAL)


def test_one_that_is_gone_is_made_again(lake: Lake) -> None:
    insert(lake, (5, 1, 30))
    lake.refresh(ABOVE)
    shutil.rmtree(folders(lake)[0])

    insert(lake, (6, 1, 25))
    done = refreshed(lake, ABOVE, Action.DIFFERENTIAL)

    assert [each.action for each in done.intermediates.values()] == [Action.REINITIALIZE]


def test_a_vacuum_of_the_table_leaves_them(lake: Lake) -> None:
    insert(lake, (5, 1, 30))
    lake.refresh(ABOVE)
    files = sorted(folders(lake)[0].rglob("*.parquet"))
    table = DeltaTable(lake.location(ABOVE.name))
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    unchecked = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    on_spark(lake, "VACUUM {above} RETAIN 0 HOURS", unchecked)

    assert sorted(folders(lake)[0].rglob("*.parquet")) == files


def test_a_vacuum_of_ours_takes_what_no_frontier_needs(lake: Lake) -> None:
    for number in (5, 6, 7):
        insert(lake, (number, 1, number))
        lake.refresh(ABOVE)
    [folder] = folders(lake)
    before = len(list(folder.glob("*.parquet")))
    lake.retention.vacuum(ABOVE.name, keep=timedelta(0))

    assert len(list(folder.glob("*.parquet"))) < before
    insert(lake, (8, 2, 8))
    refreshed(lake, ABOVE, Action.DIFFERENTIAL)


def test_nothing_new_asks_nothing_of_them(lake: Lake) -> None:
    insert(lake, (5, 1, 30))
    lake.refresh(ABOVE)

    refreshed(lake, ABOVE, Action.NO_DATA, intermediates={})


@pytest.mark.falls_back
@pytest.mark.parametrize("on_full", [OnFull.ALLOW, OnFull.REFUSE])
@pytest.mark.parametrize("mode", [Mode.DIFFERENTIAL, Mode.AUTO])
def test_without_them_where_one_cannot_be_made(mode: Mode, on_full: OnFull, lake: Lake) -> None:
    """The group of customer 0 is one that the query never asks for."""
    write(lake, "customers", pa.table({"id": [1, 2]}))
    table = maintained(
        "guarded",
        "SELECT c.id, t.n FROM customers AS c JOIN (SELECT customer, "
        "SUM(amount DIV customer) AS n FROM orders GROUP BY customer) AS t ON t.customer = c.id "
        "WHERE t.customer > 0 ORDER BY c.id LIMIT 5",
        mode=mode,
        on_full=on_full,
    )
    insert(lake, (5, 0, 30))
    lake.refresh(table)
    insert(lake, (6, 1, 3))
    done = refreshed(lake, table, Action.REINITIALIZE)
    insert(lake, (7, 2, 4))
    refreshed(lake, table, Action.DIFFERENTIAL, intermediates={})

    assert done.reason.startswith("no intermediate tables from now on: ")


@pytest.mark.falls_back
def test_rows_that_are_too_many_to_be_sent_around(lake: Lake) -> None:
    many = pa.table({"id": list(range(20_000)), "customer": [1] * 20_000, "amount": [1] * 20_000})
    write(lake, "orders", many, mode="overwrite")
    write(lake, "customers", pa.table({"id": [2], "region": ["north"]}))
    write(lake, "regions", pa.table({"name": ["north"]}))
    query = "SELECT o.id, r.name FROM orders AS o JOIN customers AS c ON o.customer = c.id"
    table = maintained("paired", f"{query} JOIN regions AS r ON r.name = c.region")
    lake.refresh(table)
    write(lake, "customers", pa.table({"id": [1], "region": ["north"]}))
    limits = {
        "spark.sql.maxBroadcastTableSize": "10k",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    with settings_for_now(session(lake), limits):
        done = lake.refresh(table)

    assert done.action is Action.FULL
    assert "matches too many rows" in done.reason
    assert lake.check(table).equal


def test_a_recursion_that_is_defined_anew_has_a_table_of_its_own(lake: Lake) -> None:
    """Both recursions have one name, and what they make of the same rows is different."""
    rows = orders((1, 0, 1), (2, 1, 1), (3, 1, 9), (4, 2, 9))
    write(lake, "orders", rows, mode="overwrite")
    query = (
        "WITH RECURSIVE r(root, id) AS (SELECT id, id FROM orders UNION "
        "SELECT r.root, o.id FROM r JOIN orders AS o ON o.customer = r.id{}) "
        "SELECT root, n FROM (SELECT root, COUNT(*) AS n FROM r GROUP BY root) WHERE n > 1"
    )
    old = maintained("made", query.format(""))
    new = maintained("made", query.format(" AND o.amount < 5"))
    for table, row in ((old, 5), (new, 6), (new, 7)):
        refreshed(lake, table)
        insert(lake, (row, 4, 1))
        assert refreshed(lake, table).action is Action.DIFFERENTIAL
