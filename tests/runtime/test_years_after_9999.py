"""Days and times that Spark has and Python has not, such as a year with a digit too many."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, subscribe
from runtime.delta import create, on_spark
from runtime.refreshes import maintained, refreshed

QUERIES = {
    "bag": "SELECT id, d, ts, nt FROM src",
    "days": "SELECT d, COUNT(*) AS n FROM src GROUP BY d",
    "both": "SELECT d, g, COUNT(*) AS n, MAX(nt) AS last FROM src GROUP BY d, g",
    "ends": "SELECT g, MIN(d) AS d, MAX(ts) AS ts, COUNT(*) AS n FROM src GROUP BY g",
    "again": "SELECT g, COUNT(DISTINCT d) AS n, sort_array(collect_list(ts)) AS all FROM src"
    " GROUP BY g",
    "pairs": "SELECT a.id, b.id AS other FROM src AS a JOIN src AS b ON a.d = b.d",
    "ranked": "SELECT id, RANK() OVER (PARTITION BY d ORDER BY id) AS place FROM src",
    "first": "SELECT id, d FROM src ORDER BY d DESC, id LIMIT 2",
    "distinct": "SELECT DISTINCT d, nt FROM src",
    "exists": "SELECT id FROM src AS a WHERE EXISTS"
    " (SELECT 1 FROM src AS b WHERE b.d = a.d AND b.id <> a.id)",
    "new": "SELECT id, ts FROM src WHERE ts > now() - INTERVAL 1 DAY",
}
COLUMNS = "id INT, g INT, d DATE, ts TIMESTAMP, nt TIMESTAMP_NTZ"
FAR, NEAR = 10_000, 0


def insert(lake: Lake, *rows: tuple[int, int]) -> None:
    """Rows of an id and the years that are added to 2020."""
    for id_, years in rows:
        on_spark(
            lake,
            f"INSERT INTO {{src}} SELECT {id_}, 0, CAST(t AS DATE), t, CAST(t AS TIMESTAMP_NTZ) "
            f"FROM (SELECT TIMESTAMP'2020-01-02 03:04:05.000006' + INTERVAL '{years}' YEAR AS t)",
        )


@pytest.mark.parametrize("feed", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("by", ["", pytest.param("d", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("days", "both") else pytest.mark.long)
        for name in QUERIES
    ],
)
def test_they_are_followed(name: str, by: str, feed: bool, lake: Lake) -> None:
    create(lake, "src", COLUMNS, partitioned_by=by, enableChangeDataFeed=feed)
    table = maintained(name, QUERIES[name])
    insert(lake, (1, FAR), (2, NEAR))
    refreshed(lake, table)
    insert(lake, (3, FAR), (4, NEAR), (5, FAR + 1))
    refreshed(lake, table)
    on_spark(lake, "DELETE FROM {src} WHERE id IN (1, 2)")
    refreshed(lake, table)
    on_spark(lake, "UPDATE {src} SET g = g + 1 WHERE id IN (3, 4)")
    refreshed(lake, table)


def test_they_are_shown(spark: SparkSession, tmp_path: Path) -> None:
    """As texts in the column that has one; other rows, and other columns, are as ever."""
    lake = Lake(tmp_path, spark=spark, preview_rows=10)
    create(lake, "src", COLUMNS)
    table = maintained("days", QUERIES["days"])
    insert(lake, (1, NEAR), (2, FAR))
    refreshed(lake, table)
    insert(lake, (3, FAR), (4, NEAR + 1))
    assert {row["d"] for row in lake.refresh(table).preview} == {"12020-01-02", "2021-01-02"}

    on_spark(lake, "DELETE FROM {days}")
    assert {row["d"] for row in lake.check(table).sample} == {
        "2020-01-02", "2021-01-02", "12020-01-02",
    }  # fmt: skip
    on_spark(lake, "DELETE FROM {src} WHERE id = 2 OR id = 3")
    lake.refresh(table)
    on_spark(lake, "DELETE FROM {days}")
    assert {row["d"] for row in lake.check(table).sample} == {date(2020, 1, 2), date(2021, 1, 2)}


def test_they_are_subscribed_to(lake: Lake) -> None:
    create(lake, "src", COLUMNS, enableChangeDataFeed=True)
    insert(lake, (1, FAR))
    with subscribe(lake, "src") as changes:
        first = changes.fetch(None, timeout=0)
        insert(lake, (2, FAR))
        then = changes.fetch(None, timeout=0)
    for rows, id_ in ((first, 1), (then, 2)):
        assert rows["id"].to_pylist() == [id_]
        assert rows["d"].cast("string").to_pylist() == ["12020-01-02"]
