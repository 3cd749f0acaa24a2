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
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.errors import EnvironmentProblem, InvalidDefinition
from dagster_streamtables.runtime.refresh import refresh_job
from named_rows import NamedRows
from runtime.delta import on_spark, stored, write
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
    done = refreshed(lake, table, Action.FULL, version=first.version)
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
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon = datetime(2024, 5, 5, 12, tzinfo=UTC)

    class Clock(datetime):
        time = noon

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return cls.time

    monkeypatch.setattr(refresh_job, "datetime", Clock)
    visits = {"id": list(range(12)), "at": [noon - timedelta(minutes=20 * n) for n in range(12)]}
    write(lake, "visits", pa.table(visits), feed=False)
    tables = [maintained(n, q) for n, q in RECENT.items()]
    for step, minutes in enumerate((0, 30, -60, -120, 15, -1440, 10)):
        Clock.time = noon + timedelta(minutes=minutes)
        if step % 3 == 0:
            write(lake, "visits", pa.table({"id": [100 + step], "at": [Clock.time]}), feed=False)
        for table in tables:
            refreshed(lake, table)
            text = table.query.replace("now()", f"TIMESTAMP '{Clock.time.isoformat()}'")
            text = text.replace("current_date()", f"DATE '{Clock.time.date()}'")
            expected = on_spark(lake, text.replace("FROM visits", "FROM {visits}"))
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
    orders = {"id": [1, 2, 2, 3], "customer": [1, 1, 1, None], "amount": [5, 6, 6, 7]}
    write(lake, "orders", pa.table(orders), feed=False)
    tables = [maintained(n, q) for n, q in LOADED.items()]
    each_refreshed(lake, *tables)
    row = pa.table({"id": [4], "customer": [2], "amount": [1]})
    write(lake, "orders", row, feed=False)
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
    refreshed(lake, DAYS, Action.REINITIALIZE)
    write(lake, "events", events(3))
    refreshed(lake, DAYS, Action.DIFFERENTIAL)
    shown = set(stored(lake, "days", ["day", "first_hour", "n"]))
    assert shown == {("2023-12-31", "21", "2"), ("2024-01-01", "7", "1")}

    elsewhere = replace(DAYS, session_timezone="UTC")
    refreshed(lake, elsewhere, Action.REINITIALIZE, reason="the definition changed", row_count=1)


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
    refreshed(lake, CLOCKS, Action.DIFFERENTIAL, inserted=3 * rows)

    assert set(stored(lake, "clocks", ["local", "later", "type"])) == {
        (str(at), str(at + dt.timedelta(hours=1)), "timestamp_ntz") for at in night
    }


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
