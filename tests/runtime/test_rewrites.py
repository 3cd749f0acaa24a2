"""Rewrites by Spark in an encoding that has not all times of the rows that they carry over."""

from __future__ import annotations

import pytest

from dagster_streamtables import Action, Lake, subscribe
from dagster_streamtables.runtime.spark.settings import settings_for_now
from runtime.delta import on_spark, session
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import writers

_AS = "spark.sql.parquet.outputTimestampType"
INT96, MICROS, MILLIS = {_AS: "INT96"}, {_AS: "TIMESTAMP_MICROS"}, {_AS: "TIMESTAMP_MILLIS"}
LEGACY = {**MICROS, "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}
FEED, VECTORS = "'delta.enableChangeDataFeed' = 'true'", "'delta.enableDeletionVectors' = 'true'"
BAG = maintained("bag", "SELECT id, at, day FROM src")
LAST = maintained("last", "SELECT MAX(at) AS at FROM src")


class Source:
    """A table that Spark writes, each time with settings of its own."""

    def __init__(self, lake: Lake, properties: str = "'a' = 'b'") -> None:
        self.lake = lake
        self.do("CREATE TABLE {src} (id INT, at TIMESTAMP, day DATE) USING delta "
                f"TBLPROPERTIES ({properties})", {})  # fmt: skip

    def do(self, statement: str, settings: dict[str, str]) -> None:
        with settings_for_now(session(self.lake), settings):
            on_spark(self.lake, statement)

    def add(self, first: int, settings: dict[str, str], day: str = "2024-05-06") -> None:
        """Two rows in one file, and one in another."""
        for ids in ((first, first + 1), (first + 2,)):
            rows = ", ".join(f"({n}, TIMESTAMP'{day} 07:08:09.{n:06}', DATE'{day}')" for n in ids)
            self.do(f"INSERT INTO {{src}} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}", settings)


@pytest.mark.long
@pytest.mark.parametrize("written", [MICROS, INT96], ids=["micros", "int96"])
def test_rows_that_a_rewrite_cuts_have_changed(written: dict[str, str], lake: Lake) -> None:
    source = Source(lake)
    source.add(1, written)
    refreshed(lake, BAG)
    refreshed(lake, LAST)
    followed = subscribe(lake, "src")
    assert followed.fetch(None, timeout=0).num_rows == 3
    source.do("OPTIMIZE {src}", MILLIS)
    for table in (BAG, LAST):
        done = refreshed(lake, table)
        assert (done.action, done.windows["src"].capture) == (Action.DIFFERENTIAL, "snapshots")
    changes = followed.fetch(None, timeout=0).to_pylist()
    assert sorted((r["id"], r["_diff"], r["at"].microsecond) for r in changes) == [
        (n, *change) for n in (1, 2, 3) for change in ((-1, n), (1, 0))
    ]


@pytest.mark.long
def test_rewrites_that_cut_nothing_are_none(lake: Lake) -> None:
    source = Source(lake)
    source.add(1, MILLIS)
    refreshed(lake, BAG)
    for settings in (MILLIS, LEGACY, MICROS):  # of days near to ours, whatever the calendar
        source.do("OPTIMIZE {src} ZORDER BY (id)", settings)
        done = refreshed(lake, BAG)
        assert (done.action, done.windows["src"].capture) == (Action.NO_DATA, "files")


@pytest.mark.long
def test_ten_days_are_not_in_the_old_calendar(lake: Lake) -> None:
    source = Source(lake)
    source.add(1, MICROS, "1582-10-10")
    refreshed(lake, BAG)
    source.do("OPTIMIZE {src}", LEGACY)
    assert refreshed(lake, BAG).action is Action.DIFFERENTIAL
    assert {str(row["day"]) for row in lake.read("bag").collect()} == {"1582-10-15"}


@pytest.mark.long
@pytest.mark.parametrize("vectors", [False, True], ids=["files", "vectors"])
@writers
def test_a_feed_that_was_cut_is_not_believed(vectors: bool, lake: Lake) -> None:
    source = Source(lake, f"{FEED}, {VECTORS}" if vectors else FEED)
    source.add(1, MICROS)
    source.add(11, MICROS)
    tables = (BAG, LAST)
    each_refreshed(lake, *tables)
    for change in (
        "UPDATE {src} SET day = day + 1 WHERE id = 1",
        "DELETE FROM {src} WHERE id = 12",
    ):
        for settings in (MILLIS, MICROS):
            source.do(change, settings)
            each_refreshed(lake, *tables)
            change = change.replace("1 W", "2 W").replace("id = 1", "id > 1")


@pytest.mark.long
def test_a_feed_of_milliseconds_alone_is_believed(lake: Lake) -> None:
    source = Source(lake, FEED)
    source.add(1, MILLIS)
    refreshed(lake, BAG)
    source.do("UPDATE {src} SET day = day + 1 WHERE id = 1", MILLIS)
    assert refreshed(lake, BAG).windows["src"].capture == "feed"


@pytest.mark.long
def test_a_rewrite_of_which_the_files_are_gone_may_have_cut(lake: Lake) -> None:
    source = Source(lake)
    source.add(1, MICROS)
    refreshed(lake, BAG)
    source.do("OPTIMIZE {src}", MILLIS)
    source.do("OPTIMIZE {src} ZORDER BY (id)", MICROS)
    off = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    source.do("VACUUM {src} RETAIN 0 HOURS", off)
    assert refreshed(lake, BAG).action is Action.REINITIALIZE


@pytest.mark.long
def test_a_stream_table_that_was_cut_is_repaired(lake: Lake) -> None:
    source = Source(lake)
    source.add(1, MICROS)
    refreshed(lake, BAG)
    source.add(11, MICROS)
    refreshed(lake, BAG)
    with settings_for_now(session(lake), MILLIS):
        on_spark(lake, "OPTIMIZE {bag}")
    assert not lake.check(BAG).equal
    assert refreshed(lake, BAG).action is Action.REINITIALIZE


MAPPED = ("SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",)
UNMAPPED = ("SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",)
SWAPPED = ("RENAME COLUMN a TO c", "RENAME COLUMN b TO a", "RENAME COLUMN c TO b")


@pytest.mark.parametrize(
    ("steps", "action"),
    [
        pytest.param((*MAPPED, *SWAPPED, *UNMAPPED), Action.DIFFERENTIAL, id="swapped"),
        pytest.param(
            (*MAPPED, *SWAPPED, *UNMAPPED, *MAPPED, *SWAPPED, *UNMAPPED), Action.NO_DATA,
            id="and back, between two rewrites", marks=pytest.mark.long,
        ),
        pytest.param(
            (*MAPPED, "DROP COLUMN a", "ADD COLUMN a INT AFTER id", *UNMAPPED),
            Action.DIFFERENTIAL, id="dropped and added", marks=pytest.mark.long,
        ),
        pytest.param(
            (*MAPPED, *SWAPPED, *SWAPPED, *UNMAPPED), Action.NO_DATA, id="and back",
            marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("properties", ["'a' = 'b'", pytest.param(FEED, marks=pytest.mark.long)])
def test_columns_that_changed_their_names_while_they_were_mapped(
    steps: tuple[str, ...], action: Action, properties: str, lake: Lake
) -> None:
    """The schema is the one of before at the end, and the commit that rewrites the files says that
    no row changed."""
    on_spark(lake, "CREATE TABLE {src} (id INT, a INT, b INT) USING delta "
              f"TBLPROPERTIES ({properties})")  # fmt: skip
    on_spark(lake, "INSERT INTO {src} VALUES (1, 10, 20), (2, 30, 30)")
    table = maintained("bag", "SELECT a, id FROM src")
    refreshed(lake, table)
    for step in steps:
        on_spark(lake, f"ALTER TABLE {{src}} {step}")
    assert refreshed(lake, table).action is action
