"""Queries that ask for the time: one that is run again, and those whose clock is set back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.runtime.refresh import context
from named_rows import NamedRows
from runtime.delta import stored
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import writers

REFUSED = "SELECT id, current_user() AS who, now() AS seen FROM orders"
DAY = "SELECT id FROM orders WHERE current_date() > DATE '1999-01-01'"


@pytest.mark.long
@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_time_alone_lets_a_query_run_again(mode: str, lake: Lake) -> None:
    """Each refresh has its own time, and the check compares the rows as of that."""
    table = StreamTable("mart.seen", REFUSED, mode)
    refreshed(lake, table)
    before = stored(lake, table.name, ["seen"])
    done = refreshed(lake, table)
    assert (done.action, done.reason.partition(";")[0]) == (Action.FULL, "time passed")
    after = stored(lake, table.name, ["seen"])
    assert not set(before) & set(after)


@pytest.mark.smoke("the current time in a query")
def test_nothing_is_committed_where_time_changed_nothing(lake: Lake) -> None:
    table = StreamTable("mart.day", DAY, "FULL")
    first = refreshed(lake, table)
    done = refreshed(lake, table)
    assert (done.action, done.version) == (Action.FULL, first.version)
    assert done.data_version == first.data_version
    assert "the result is the same" in done.reason


def test_a_check_of_another_definition_that_asks_for_the_time_is_answered(lake: Lake) -> None:
    table = StreamTable("mart.day", "SELECT id FROM orders", "FULL")
    refreshed(lake, table)
    assert lake.check(replace(table, query=DAY)).equal


RECENT = {
    "mart.recent": "SELECT id, at FROM visits WHERE at > now() - INTERVAL 1 HOUR",
    "mart.halves": "SELECT id % 2 AS half, COUNT(*) AS n, MAX(at) AS last FROM visits"
    " WHERE at > now() - INTERVAL 1 HOUR GROUP BY id % 2",
    "mart.followed": "SELECT v.id FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS w"
    " WHERE w.id = v.id + 1 AND w.at > now() - INTERVAL 1 HOUR)",
    "mart.today": "SELECT id FROM visits WHERE at >= current_date()",
}


@pytest.mark.long
@writers
def test_a_clock_that_is_set_back_brings_back_what_left(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver_rows: int | None
) -> None:
    noon = datetime(2024, 5, 5, 12, tzinfo=UTC)

    class Clock(datetime):
        time = noon

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return cls.time

    monkeypatch.setattr(context, "datetime", Clock)
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    place = lake.location("visits")
    visits = {"id": list(range(12)), "at": [noon - timedelta(minutes=20 * n) for n in range(12)]}
    write_deltalake(place, pa.table(visits))
    tables = [maintained(n, q) for n, q in RECENT.items()]
    for step, minutes in enumerate((0, 30, -60, -120, 15, -1440, 10)):
        Clock.time = noon + timedelta(minutes=minutes)
        if step % 3 == 0:
            came = pa.table({"id": [100 + step], "at": [Clock.time]})
            write_deltalake(place, came, mode="append")
        for table in tables:
            refreshed(lake, table)
            text = table.query.replace("now()", f"TIMESTAMP '{Clock.time.isoformat()}'")
            text = text.replace("current_date()", f"DATE '{Clock.time.date()}'")
            expected = spark.sql(text.replace("FROM visits", f"FROM delta.`{place}`"))
            found = NamedRows.of_spark(lake.read(table.name))
            assert found == NamedRows.of_spark(expected), (table.name, minutes)


LOADED = {
    "mart.loaded": "SELECT id, amount, now() AS loaded_at FROM orders",
    "mart.totals": "SELECT customer, COUNT(*) AS n, now() AS at FROM orders GROUP BY customer",
    "mart.nested": "SELECT id, array(amount) AS amounts, now() AS at FROM orders",
    "mart.days": "SELECT id, current_date() AS day FROM orders",
    "mart.recent": "SELECT id FROM orders WHERE year(now()) > 2000",
}


@writers
def test_the_reason_tells_how_many_rows_changed_by_the_time(
    spark: SparkSession, tmp_path: Path, driver_rows: int | None
) -> None:
    lake = Lake(tmp_path, spark=spark, driver_rows=driver_rows)
    place = lake.location("orders")
    orders = {"id": [1, 2, 2, 3], "customer": [1, 1, 1, None], "amount": [5, 6, 6, 7]}
    write_deltalake(place, pa.table(orders))
    tables = [maintained(n, q) for n, q in LOADED.items()]
    each_refreshed(lake, *tables)
    write_deltalake(place, pa.table({"id": [4], "customer": [2], "amount": [1]}), mode="append")
    reasons = {each.name: refreshed(lake, each).reason for each in tables}
    came = '1 changed row in "orders"'
    assert reasons == {
        "mart.loaded": f'{came}; the time in "loaded_at" changed '
        + ("4 rows more" if driver_rows is None else "up to 4 rows"),
        "mart.totals": f'{came}; the time in "at" changed '
        + ("2 rows more" if driver_rows is None else "up to 2 rows"),
        "mart.nested": f'{came}; the time in "at" changed up to 4 rows',
        "mart.days": f'{came}; the time in "day" changed '
        + ("0 rows more" if driver_rows is None else "up to 4 rows"),
        "mart.recent": came,
    }
