"""Queries that ask for the time: run again, with a clock that is set back, and in a zone.

Where a day begins is part of a stream table's definition.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.errors import EnvironmentProblem, InvalidDefinition
from dagster_streamtables.runtime.refresh import refresh_job
from named_rows import NamedRows
from runtime.delta import stored, write
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import no_orders, writers

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
    assert not set(before) & set(stored(lake, table.name, ["seen"]))


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

    monkeypatch.setattr(refresh_job, "datetime", Clock)
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
@no_orders
def test_the_reason_tells_how_many_rows_changed_by_the_time(
    driver_rows: int | None, lake: Lake
) -> None:
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


DAYS = maintained(
    "days",
    "SELECT CAST(at AS DATE) AS day, MIN(HOUR(at)) AS first_hour, MAX(local) AS newest, "
    "COUNT(*) AS n FROM events GROUP BY 1",
    session_timezone="America/New_York",
)


def events(*hours: int) -> pa.Table:
    """Events of the first of January, at hours of UTC, which New York is five behind."""
    times = [dt.datetime(2024, 1, 1, hour, tzinfo=dt.UTC) for hour in hours]
    return pa.table(
        {
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "local": pa.array([t.replace(tzinfo=None) for t in times], pa.timestamp("us")),
        }
    )


@pytest.mark.smoke("time zones")
@pytest.mark.spark
def test_days_and_hours_are_those_of_the_zone_in_every_refresh_and_check(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write(lake, "events", events(2, 12))
    first = refreshed(lake, DAYS)
    write(lake, "events", events(3))
    second = refreshed(lake, DAYS)
    shown = set(stored(lake, "days", ["day", "first_hour", "n"]))
    assert (first.action, second.action) == (Action.REINITIALIZE, Action.DIFFERENTIAL)
    assert shown == {("2023-12-31", "21", "2"), ("2024-01-01", "7", "1")}

    elsewhere = refreshed(lake, replace(DAYS, session_timezone="UTC"))

    assert (elsewhere.action, elsewhere.reason) == (Action.REINITIALIZE, "the definition changed")
    assert elsewhere.row_count == 1


CLOCKS = maintained(
    "clocks",
    "SELECT id, local, local + INTERVAL '1' HOUR AS later, TYPEOF(local) AS type FROM clocks_of",
    session_timezone="Europe/Berlin",
)


@pytest.mark.spark
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(1, id="in a statement"),
        pytest.param(2000, id="in a file", marks=pytest.mark.long),
    ],
)
def test_a_time_without_a_zone_is_none_of_the_session(tmp_path: Path, rows: int) -> None:
    """On that night the clock of Berlin goes from 02:00 to 03:00, and 02:30 is no instant."""
    lake = Lake(tmp_path)
    night = [dt.datetime(2024, 3, 31, hour, 30) for hour in (1, 2, 3)]

    def add(copies: int) -> None:
        times = pa.array(night * copies, pa.timestamp("us"))
        ids = pa.array(range(3 * copies), pa.int32())
        write(lake, "clocks_of", pa.table({"id": ids, "local": times}))

    add(1)
    lake.refresh(CLOCKS)
    add(rows)
    changed = lake.refresh(CLOCKS)

    assert (changed.action, changed.inserted) == (Action.DIFFERENTIAL, 3 * rows)
    assert set(stored(lake, "clocks", ["local", "later", "type"])) == {
        (str(at), str(at + dt.timedelta(hours=1)), "timestamp_ntz") for at in night
    }
    assert lake.check(CLOCKS).equal


def test_a_session_that_was_handed_in_keeps_its_zone(spark: SparkSession, lake: Lake) -> None:
    write(lake, "events", events(2))
    with pytest.raises(EnvironmentProblem, match="time zone UTC, and the query needs America/New"):
        lake.refresh(DAYS)
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_zone_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidDefinition) as raised:
        replace(DAYS, session_timezone="Europe/Berln")
    assert raised.value.what == 'stream table "days": there is no time zone "Europe/Berln"'
    assert "Europe/Berlin" in raised.value.fix
