"""Where a day begins is part of a stream table's definition."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Action, InvalidDefinition, Lake
from dagster_streamtables.errors import EnvironmentProblem
from runtime.delta import stored, write
from runtime.refreshes import maintained, refreshed

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
