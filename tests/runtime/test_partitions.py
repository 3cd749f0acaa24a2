"""Partitions whose values one engine writes in a form that another reads otherwise, or not at all.

What rewrites the files of the empty text makes NULL of it, and does not say so. Spark writes a
TIMESTAMP in UTC, delta-rs without a zone, in which Spark then reads it in the zone of its session:
so a rewrite by the other engine moves rows, in any zone but UTC, and does not say so.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, StreamTable, subscribe
from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime.spark.settings import settings_for_now
from runtime.delta import create, on_spark, session, write
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed
from runtime.ways import feeds, writers


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("DATE", "2020"),
        pytest.param("DECIMAL(10,2)", "1.0", marks=pytest.mark.long),
        pytest.param("INT", " 8", marks=pytest.mark.long),
        pytest.param("BOOLEAN", "1", marks=pytest.mark.long),
    ],
)
def test_they_are_told_and_mended(kind: str, text: str, lake: Lake) -> None:
    place = lake.location("src")
    (Path(place) / f"p={text}").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), f"{place}/p={text}/part-00000.parquet")
    on_spark(lake, f"CONVERT TO DELTA parquet.`{place}` PARTITIONED BY (p {kind})")
    table = StreamTable("bag", "SELECT id, p FROM src")
    with pytest.raises(DamagedTable, match="the value of a partition cannot be read") as told:
        lake.refresh(table)
    assert f"'{text}'" in str(told.value)
    on_spark(lake, "UPDATE {src} SET p = p")
    assert refreshed(lake, table).row_count == 2


BAG = maintained("bag", "SELECT id, c FROM src")
GROUPS = maintained("groups", "SELECT c, COUNT(*) AS n FROM src GROUP BY c")


def append(lake: Lake, feed: bool) -> None:
    for first in (0, 10):
        rows = {"id": [first, first + 1, first + 2, first + 3], "c": ["", "", None, "x"]}
        write(lake, "src", pa.table(rows), feed=feed, partition_by=["c"])


@pytest.mark.long
@feeds
@writers
def test_a_rewrite_that_makes_null_of_it_is_a_change(feed: bool, lake: Lake) -> None:
    append(lake, feed)
    refreshed(lake, BAG)
    followed = subscribe(lake, "src")
    net = {row["id"]: row["c"] for row in followed.fetch(None, timeout=0).to_pylist()}
    assert net[0] == net[1] == "" and net[2] is None
    DeltaTable(lake.location("src")).optimize.compact()
    assert refreshed(lake, BAG).action == "DIFFERENTIAL"
    changes = [(r["id"], r["c"], r["_diff"]) for r in followed.fetch(None, timeout=0).to_pylist()]
    gone = [(n, "", -1) for n in (0, 1, 10, 11)]
    assert sorted(changes, key=str) == sorted(gone + [(n, None, 1) for n, _, _ in gone], key=str)


@pytest.mark.long
@feeds
@writers
@pytest.mark.parametrize("change", ["OPTIMIZE {src}", "UPDATE {src} SET id = 7 WHERE id = 0"])
def test_its_group_follows(feed: bool, change: str, lake: Lake) -> None:
    append(lake, feed)
    refreshed(lake, GROUPS)
    on_spark(lake, change)
    assert refreshed(lake, GROUPS).action == "DIFFERENTIAL"


ZONE = "America/New_York"
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
BY_TIME = {
    "bag": "SELECT id, at FROM src",
    "groups": "SELECT at, COUNT(*) AS n FROM src GROUP BY at",
}


def tables(zone: str) -> list[StreamTable]:
    return [maintained(name, query, session_timezone=zone) for name, query in BY_TIME.items()]


def in_zone(lake: Lake, zone: str) -> AbstractContextManager[None]:
    return settings_for_now(session(lake), {"spark.sql.session.timeZone": zone})


def by_spark(lake: Lake, *, feed: bool) -> str:
    columns = "id BIGINT, at TIMESTAMP"
    create(lake, "src", columns, partitioned_by="at", enableChangeDataFeed=feed)
    for n in range(4):
        rows = [(n, n % 2), (n + 4, 6), (n + 8, 6)]  # two of one file, one to carry over
        values = ", ".join(f"({id_}, TIMESTAMP'2020-01-01 0{hour}:00:00')" for id_, hour in rows)
        on_spark(lake, f"INSERT INTO {{src}} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    return lake.location("src")


def by_delta_rs(lake: Lake, at: datetime, first: int = 0) -> str:
    for n in range(first, first + 3):
        write(lake, "src", pa.table({"id": [n], "at": [at]}), feed=False, partition_by=["at"])
    return lake.location("src")


def compact(place: str) -> object:
    return DeltaTable(place).optimize.compact()


def update(place: str) -> object:
    return DeltaTable(place).update({"id": "7"}, predicate="id IN (1, 4)")


def delete(place: str) -> object:
    return DeltaTable(place).delete("id IN (3, 4)")


@pytest.mark.parametrize("feed", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "rewrite", [compact, *(pytest.param(each, marks=pytest.mark.long) for each in (update, delete))]
)
def test_delta_rs_takes_the_zone_away(
    rewrite: Callable[[str], object], feed: bool, lake: Lake
) -> None:
    with in_zone(lake, ZONE):
        place = by_spark(lake, feed=feed)
        each_refreshed(lake, *tables(ZONE))
        rewrite(place)
        each_followed(lake, *tables(ZONE))
        hours = [row["at"] for row in lake.read("bag").selectExpr("hour(at) AS at").collect()]
        assert max(hours) > 6, "delta-rs keeps the zone: trust its rewrites"


def test_spark_adds_its_own(lake: Lake) -> None:
    """Its session has another zone than the stream table."""
    by_delta_rs(lake, NOON)
    each_refreshed(lake, *tables("UTC"))
    on_spark(lake, "OPTIMIZE {src}", {"spark.sql.session.timeZone": ZONE})
    each_followed(lake, *tables("UTC"))
    assert {row["at"].hour for row in lake.read("bag").collect()} == {17}


@pytest.mark.parametrize("feed", [pytest.param(False, marks=pytest.mark.long), True])
def test_all_rows_of_a_file_go(feed: bool, lake: Lake) -> None:
    """Nothing is rewritten but, by delta-rs, in the feed: the row of 01:00 seems to be of 06:00."""
    with in_zone(lake, ZONE):
        place = by_spark(lake, feed=feed)
        each_refreshed(lake, *tables(ZONE))
        DeltaTable(place).delete("id = 1")
        each_refreshed(lake, *tables(ZONE))


def test_rewrites_in_one_form_move_nothing(lake: Lake) -> None:
    place = by_delta_rs(lake, NOON)
    each_refreshed(lake, *tables("UTC"))
    DeltaTable(place).optimize.compact()
    for table in tables("UTC"):
        refreshed(lake, table, Action.NO_DATA)


@pytest.mark.long
def test_a_time_that_is_after_9999_in_utc(lake: Lake) -> None:
    with in_zone(lake, ZONE):
        by_delta_rs(lake, LAST)
        each_refreshed(lake, *tables(ZONE))
        on_spark(lake, "UPDATE {src} SET id = id + 10 WHERE id < 2")
        each_refreshed(lake, *tables(ZONE))
        by_delta_rs(lake, NOON, 5)
        each_refreshed(lake, *tables(ZONE))
