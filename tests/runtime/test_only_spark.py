"""Values that only Spark reads as they are: texts that are no UTF-8, and days of October 1582.

`CAST(value AS STRING)` makes such texts of binary values, and Spark keeps their bytes. Arrow and
delta-rs cannot read them, Delta's reader of the feed replaces them, and the minimum and maximum in
the log are not theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dagster_streamtables import Lake, StreamTable, subscribe
from dagster_streamtables.errors import SourceProblem
from named_rows import rows_in_order
from runtime.delta import FEED, refreshed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


QUERIES = {
    "bag": "SELECT id, s FROM src",
    "groups": "SELECT s, COUNT(*) AS n, MAX(id) AS most FROM src GROUP BY s",
    "most": "SELECT id % 2 AS odd, MAX(s) AS s, COUNT(*) AS n FROM src GROUP BY id % 2",
    "rows": "SELECT id, ROW_NUMBER() OVER (PARTITION BY s ORDER BY id) AS n FROM src",
}


def a_source(
    spark: SparkSession, lake: Lake, feed: bool, columns: str = "id BIGINT, s STRING"
) -> str:
    place = f"delta.`{lake.location('src')}`"
    told = ", ".join(f"'{k}' = '{v}'" for k, v in FEED.items()) if feed else "'a' = 'b'"
    spark.sql(f"CREATE TABLE {place} ({columns}) USING delta TBLPROPERTIES ({told})")
    return place


def stored_bytes(lake: Lake, name: str, columns: str) -> list[tuple[object, ...]]:
    """The rows, and their texts in hexadecimal digits."""
    rows = lake.read(name)
    shown = (f"hex(CAST({n} AS BINARY)) AS {n}" if t == "string" else n for n, t in rows.dtypes)
    return rows_in_order(rows.selectExpr(*shown), columns)


@pytest.mark.long
@pytest.mark.parametrize("feed", [True, False], ids=["feed", "no feed"])
@pytest.mark.parametrize("most", [None, 0], ids=["here", "spark"])
def test_bytes_stay_as_they_are(
    spark: SparkSession, tmp_path: Path, feed: bool, most: int | None
) -> None:
    lake = Lake(tmp_path, spark=spark, driver_rows=most)
    place = a_source(spark, lake, feed)
    spark.sql(f"INSERT INTO {place} VALUES (1, 'a'), (2, 'é')")
    tables = [StreamTable(n, QUERIES[n], differential_max_change_ratio=0) for n in QUERIES]
    for table in tables:
        refreshed(lake, table)
    spark.sql(
        f"INSERT INTO {place} VALUES (3, CAST(X'FF61' AS STRING)), (4, CAST(X'FE61' AS STRING)), "
        "(5, CAST(X'FF61' AS STRING))"
    )
    for table in tables:
        refreshed(lake, table)
    spark.sql(f"DELETE FROM {place} WHERE id = 3")
    spark.sql(f"UPDATE {place} SET s = 'a' WHERE id = 4")
    spark.sql(f"INSERT INTO {place} VALUES (6, 'é')")
    done = [refreshed(lake, table) for table in tables]
    assert {each.action for each in done} == {"DIFFERENTIAL"}
    assert stored_bytes(lake, "bag", "id, s") == [
        (1, "61"), (2, "C3A9"), (4, "61"), (5, "FF61"), (6, "C3A9")
    ]  # fmt: skip
    groups = [("61", 2, 4), ("C3A9", 2, 6), ("FF61", 1, 5)]
    assert stored_bytes(lake, "groups", "s, n, most") == groups


@pytest.mark.long
@pytest.mark.parametrize("most", [None, 0], ids=["here", "spark"])
def test_a_group_is_found_whatever_the_log_says_of_its_file(
    spark: SparkSession, tmp_path: Path, most: int | None
) -> None:
    """The least text of the file is the byte 93, and U+FFFD in the log, which is more than "é"."""
    lake = Lake(tmp_path, spark=spark, driver_rows=most)
    place = a_source(spark, lake, feed=True)
    spark.sql(f"INSERT INTO {place} SELECT 1, CAST(X'93' AS STRING) UNION ALL SELECT 2, 'é'")
    groups = StreamTable("groups", QUERIES["groups"], differential_max_change_ratio=0)
    joined = StreamTable(
        "joined",
        "SELECT a.id, b.id AS other FROM src AS a JOIN src AS b ON a.s = b.s",
        differential_max_change_ratio=0,
    )
    for table in (groups, joined):
        refreshed(lake, table)
    spark.sql(f"INSERT INTO {place} VALUES (3, 'é')")
    for table in (groups, joined):
        refreshed(lake, table)
    assert stored_bytes(lake, "groups", "s, n, most") == [("93", 1, 1), ("C3A9", 2, 3)]
    assert len(stored_bytes(lake, "joined", "id, other")) == 5


DAYS = {
    "rows": "SELECT id, d, unix_micros(t) AS t, unix_date(l[0]) AS l FROM src",
    "most": "SELECT id > 1 AS high, MAX(d) AS d, MAX(unix_micros(t)) AS t, "
    "MAX(unix_date(l[0])) AS l FROM src GROUP BY id > 1",
}


@pytest.mark.long
@pytest.mark.parametrize("name", [*DAYS])
@pytest.mark.parametrize("most", [None, 0], ids=["here", "spark"])
def test_days_that_the_old_calendar_skips(
    spark: SparkSession, tmp_path: Path, most: int | None, name: str
) -> None:
    """They are values, and the reader of the feed moves them: as the greatest of a group, too."""
    lake = Lake(tmp_path, spark=spark, driver_rows=most)
    place = a_source(spark, lake, True, "id BIGINT, d DATE, t TIMESTAMP, l ARRAY<DATE>")
    row = "{}, DATE '{}', TIMESTAMP '{} 12:00:00', array(DATE '{}')"
    days = ["1582-10-04", "1582-10-05", "1582-10-14", "1582-10-15"]
    spark.sql(
        f"INSERT INTO {place} VALUES "
        + ", ".join(f"({row.format(n, day, day, day)})" for n, day in enumerate(days))
    )
    table = StreamTable(name, DAYS[name], differential_max_change_ratio=0)
    for change in (
        "UPDATE {} SET d = DATE '1582-10-10', t = TIMESTAMP '1582-10-10 01:00:00', "
        "l = array(DATE '1582-10-06') WHERE id < 2",
        "DELETE FROM {} WHERE id = 2",
    ):
        refreshed(lake, table)
        spark.sql(change.format(place))
    assert refreshed(lake, table).action == "DIFFERENTIAL"


@pytest.mark.long
def test_such_a_day_is_found_in_a_file_that_has_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark looks for the 15th in its place, and skips the file."""
    lake = Lake(tmp_path, spark=spark)
    place = a_source(spark, lake, False, "id BIGINT, g INT, d DATE")
    spark.sql(f"INSERT INTO {place} VALUES (1, 3, DATE '1582-10-10'), (2, 3, DATE '1582-10-10')")
    spark.sql(f"INSERT INTO {place} VALUES (3, 1, DATE '1582-10-15'), (4, 2, DATE '1970-01-01')")
    table = StreamTable(
        "latest",
        "SELECT a.id FROM src AS a JOIN (SELECT g, MAX(d) AS d FROM src GROUP BY g "
        "HAVING COUNT(*) > 1) AS b ON a.g = b.g AND a.d = b.d",
        differential_max_change_ratio=0,
    )
    refreshed(lake, table)
    spark.sql(f"DELETE FROM {place} WHERE id > 1")
    assert refreshed(lake, table).action == "DIFFERENTIAL"


@pytest.mark.smoke("a table that only Spark writes")
def test_who_follows_is_told(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path, spark=spark)
    place = a_source(spark, lake, True)
    spark.sql(f"INSERT INTO {place} VALUES (1, 'a')")
    changes = subscribe(lake, "src")
    mended = subscribe(lake, "SELECT make_valid_utf8(s) AS s FROM src")
    for each in (changes, mended):
        assert each.fetch(None, timeout=0).num_rows == 1
    spark.sql(f"INSERT INTO {place} VALUES (2, CAST(X'FF61' AS STRING))")
    assert mended.fetch(None, timeout=0).column("s").to_pylist() == ["\ufffda"]
    for each in (changes, subscribe(lake, "src")):
        with pytest.raises(SourceProblem, match="a text is not UTF-8"):
            each.fetch(None, timeout=0)
