"""Rewrites by Spark in an encoding that has not all times of the rows that they carry over."""

from __future__ import annotations

import pytest

from dagster_streamtables import Action, Lake, subscribe
from runtime.delta import create, on_spark
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import writers

_AS = "spark.sql.parquet.outputTimestampType"
INT96, MICROS, MILLIS = {_AS: "INT96"}, {_AS: "TIMESTAMP_MICROS"}, {_AS: "TIMESTAMP_MILLIS"}
LEGACY = {**MICROS, "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}
COLUMNS = "id INT, at TIMESTAMP, day DATE"
BAG = maintained("bag", "SELECT id, at, day FROM src")
LAST = maintained("last", "SELECT MAX(at) AS at FROM src")


def add(lake: Lake, first: int, settings: dict[str, str], day: str = "2024-05-06") -> None:
    """Two rows in one file, and one in another, by a writer with settings of its own."""
    insert = "INSERT INTO {src} SELECT /*+ COALESCE(1) */ * FROM VALUES"
    for ids in ((first, first + 1), (first + 2,)):
        rows = ", ".join(f"({n}, TIMESTAMP'{day} 07:08:09.{n:06}', DATE'{day}')" for n in ids)
        on_spark(lake, f"{insert} {rows}", settings)


@pytest.mark.long
@pytest.mark.parametrize("written", [MICROS, INT96], ids=["micros", "int96"])
def test_rows_that_a_rewrite_cuts_have_changed(written: dict[str, str], lake: Lake) -> None:
    create(lake, "src", COLUMNS)
    add(lake, 1, written)
    each_refreshed(lake, BAG, LAST)
    followed = subscribe(lake, "src")
    assert followed.fetch(None, timeout=0).num_rows == 3
    on_spark(lake, "OPTIMIZE {src}", MILLIS)
    for table in (BAG, LAST):
        refreshed(lake, table, Action.DIFFERENTIAL, capture="snapshots")
    changes = followed.fetch(None, timeout=0).to_pylist()
    assert sorted((r["id"], r["_diff"], r["at"].microsecond) for r in changes) == [
        (n, *change) for n in (1, 2, 3) for change in ((-1, n), (1, 0))
    ]


@pytest.mark.long
def test_rewrites_that_cut_nothing_are_none(lake: Lake) -> None:
    create(lake, "src", COLUMNS)
    add(lake, 1, MILLIS)
    refreshed(lake, BAG)
    for settings in (MILLIS, LEGACY, MICROS):  # of days near to ours, whatever the calendar
        on_spark(lake, "OPTIMIZE {src} ZORDER BY (id)", settings)
        refreshed(lake, BAG, Action.NO_DATA, capture="files")


@pytest.mark.long
def test_ten_days_are_not_in_the_old_calendar(lake: Lake) -> None:
    create(lake, "src", COLUMNS)
    add(lake, 1, MICROS, "1582-10-10")
    refreshed(lake, BAG)
    on_spark(lake, "OPTIMIZE {src}", LEGACY)
    assert refreshed(lake, BAG).action is Action.DIFFERENTIAL
    assert {str(row["day"]) for row in lake.read("bag").collect()} == {"1582-10-15"}


@pytest.mark.long
@pytest.mark.parametrize("vectors", [False, True], ids=["files", "vectors"])
@writers
def test_a_feed_that_was_cut_is_not_believed(vectors: bool, lake: Lake) -> None:
    create(lake, "src", COLUMNS, enableChangeDataFeed=True, enableDeletionVectors=vectors)
    add(lake, 1, MICROS)
    add(lake, 11, MICROS)
    tables = (BAG, LAST)
    each_refreshed(lake, *tables)
    for change in (
        "UPDATE {src} SET day = day + 1 WHERE id = 1",
        "DELETE FROM {src} WHERE id = 12",
    ):
        for settings in (MILLIS, MICROS):
            on_spark(lake, change, settings)
            each_refreshed(lake, *tables)
            change = change.replace("1 W", "2 W").replace("id = 1", "id > 1")


@pytest.mark.long
def test_a_feed_of_milliseconds_alone_is_believed(lake: Lake) -> None:
    create(lake, "src", COLUMNS, enableChangeDataFeed=True)
    add(lake, 1, MILLIS)
    refreshed(lake, BAG)
    on_spark(lake, "UPDATE {src} SET day = day + 1 WHERE id = 1", MILLIS)
    assert refreshed(lake, BAG).windows["src"].capture == "feed"


@pytest.mark.long
def test_a_rewrite_of_which_the_files_are_gone_may_have_cut(lake: Lake) -> None:
    create(lake, "src", COLUMNS)
    add(lake, 1, MICROS)
    refreshed(lake, BAG)
    on_spark(lake, "OPTIMIZE {src}", MILLIS)
    on_spark(lake, "OPTIMIZE {src} ZORDER BY (id)", MICROS)
    off = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    on_spark(lake, "VACUUM {src} RETAIN 0 HOURS", off)
    assert refreshed(lake, BAG).action is Action.REINITIALIZE


@pytest.mark.long
def test_a_stream_table_that_was_cut_is_repaired(lake: Lake) -> None:
    create(lake, "src", COLUMNS)
    add(lake, 1, MICROS)
    refreshed(lake, BAG)
    add(lake, 11, MICROS)
    refreshed(lake, BAG)
    on_spark(lake, "OPTIMIZE {bag}", MILLIS)
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
@pytest.mark.parametrize("feed", [False, pytest.param(True, marks=pytest.mark.long)])
def test_columns_that_changed_their_names_while_they_were_mapped(
    steps: tuple[str, ...], action: Action, feed: bool, lake: Lake
) -> None:
    """The schema is the one of before at the end, and the commit that rewrites the files says that
    no row changed."""
    create(lake, "src", "id INT, a INT, b INT", enableChangeDataFeed=feed)
    on_spark(lake, "INSERT INTO {src} VALUES (1, 10, 20), (2, 30, 30)")
    table = maintained("bag", "SELECT a, id FROM src")
    refreshed(lake, table)
    for step in steps:
        on_spark(lake, f"ALTER TABLE {{src}} {step}")
    assert refreshed(lake, table).action is action
