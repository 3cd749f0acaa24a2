"""Days and times that not every engine reads as Spark does: far ones, and those of old calendars.

Spark writes timestamps as INT96 unless it is told otherwise. delta-rs reads those in nanoseconds,
in which 9999 is 1816; neither it nor pyarrow knows the calendar in which Spark may write days
before 1582. What is seen must be what Spark sees, whoever wrote it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable
from dagster_streamtables.runtime.spark.settings import settings_for_now
from runtime.delta import append_by_spark, on_spark, session
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import feeds

pytestmark = pytest.mark.long

INT96 = {"spark.sql.parquet.outputTimestampType": "INT96"}
LEGACY = {
    **INT96,
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}
YEARS = ["0001", "1600", "1970", "2024", "2300", "9999"]
BAG = maintained("bag", "SELECT id, at, day FROM events")
DEEP = maintained("deep", "SELECT id, deep FROM events")
KEYED = maintained(
    "keyed", "SELECT at, day, COUNT(*) AS n, SUM(id) AS total FROM events GROUP BY at, day"
)


def add(lake: Lake, ids: range, settings: dict[str, str], *, feed: bool = False) -> None:
    """Rows by a writer with settings of its own, their times as far apart as can be."""
    times = ", ".join(f"TIMESTAMP '{year}-06-15 12:34:56.789123'" for year in YEARS)
    days = ", ".join(f"DATE '{year}-12-31'" for year in YEARS)
    query = (
        "SELECT *, ARRAY(NAMED_STRUCT('at', at)) AS deep FROM (SELECT id, "
        f"ARRAY({times})[id % 6] AS at, ARRAY({days})[id % 6] AS day "
        f"FROM range({ids.start}, {ids.stop}))"
    )
    with settings_for_now(session(lake), settings):
        append_by_spark(lake, "events", query, feed=feed)


@feeds
@pytest.mark.parametrize("settings", [INT96, LEGACY], ids=["int96", "old calendar"])
def test_the_change_is_what_spark_reads(feed: bool, settings: dict[str, str], lake: Lake) -> None:
    tables = (BAG, DEEP)
    add(lake, range(12), settings, feed=feed)
    each_refreshed(lake, *tables)
    add(lake, range(12, 24), settings)
    for table in tables:
        refreshed(lake, table, Action.DIFFERENTIAL, capture="appended")
    on_spark(lake, "UPDATE {events} SET id = id + 100 WHERE id IN (0, 1, 4, 5)", settings)
    on_spark(lake, "DELETE FROM {events} WHERE id IN (6, 11)", settings)
    for table in tables:
        refreshed(lake, table, Action.DIFFERENTIAL, capture="feed" if feed else "snapshots")


@pytest.mark.parametrize("table", [BAG, KEYED], ids=["bag", "keyed"])
@pytest.mark.parametrize(
    ("settings", "action"),
    [(INT96, Action.DIFFERENTIAL), (LEGACY, Action.REINITIALIZE)],
    ids=["int96", "old calendar"],
)
def test_stored_files_that_another_writer_wrote_anew(
    table: StreamTable, settings: dict[str, str], action: Action, spark: SparkSession, lake: Lake
) -> None:
    """Ten days of 1582 are lost in the old calendar, and there are days around them."""
    add(lake, range(12), {})
    refreshed(lake, table)
    place = lake.location(table.name)
    with settings_for_now(spark, settings):  # as an OPTIMIZE would
        kept = spark.read.format("delta").load(place)
        kept.write.format("delta").mode("overwrite").option("dataChange", "false").save(place)
    add(lake, range(12, 24), {})
    on_spark(lake, "DELETE FROM {events} WHERE id = 2")
    assert refreshed(lake, table).action is action
    refreshed(lake, table, Action.FULL, full=True)


def test_a_session_that_was_handed_in_writes_microseconds_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark, driver_rows=0)
    add(lake, range(12), LEGACY)
    with settings_for_now(spark, LEGACY):
        for change in ("{events} SET id = -1 WHERE id = 0", "{events} SET id = -2 WHERE id = 5"):
            for table in (BAG, KEYED):
                assert lake.refresh(table).writer == "spark"
                assert _kinds(lake, table) == {"INT64"}
            on_spark(lake, f"UPDATE {change}", LEGACY)
        assert {name: spark.conf.get(name) for name in LEGACY} == LEGACY, "they are its owner's"


def _kinds(lake: Lake, table: StreamTable) -> set[str]:
    """How the files of a table hold timestamps; and none of them in the old calendar."""
    found: set[str] = set()
    log = DeltaTable(lake.location(table.name))
    for path in pa.table(log.get_add_actions()).column("path").to_pylist():
        footer = pq.ParquetFile(f"{lake.location(table.name)}/{path}").metadata
        assert not any(b"legacy" in key for key in footer.metadata or {})
        columns = (footer.schema.column(number) for number in range(footer.num_columns))
        found |= {each.physical_type for each in columns if each.name == "at"}
    return found
