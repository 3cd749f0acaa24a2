"""Partitions of the empty text: what rewrites their files makes NULL of it, and does not say so."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, subscribe
from runtime.delta import write
from runtime.refreshes import maintained, refreshed

BAG = maintained("bag", "SELECT id, c FROM src")
GROUPS = maintained("groups", "SELECT c, COUNT(*) AS n FROM src GROUP BY c")


def append(lake: Lake, first: int, feed: bool) -> None:
    rows = {"id": [first, first + 1, first + 2, first + 3], "c": ["", "", None, "x"]}
    write(lake, "src", pa.table(rows), feed=feed, partition_by=["c"])


ways = pytest.mark.parametrize(
    ("driver_rows", "feed"),
    [
        pytest.param(None, True, id="here, feed", marks=pytest.mark.long),
        pytest.param(None, False, id="here, no feed"),
        pytest.param(0, False, id="spark, no feed", marks=pytest.mark.long),
        pytest.param(0, True, id="spark, feed", marks=pytest.mark.long),
    ],
)


@pytest.mark.long
@ways
def test_a_rewrite_that_makes_null_of_it_is_a_change(feed: bool, lake: Lake) -> None:
    append(lake, 0, feed)
    append(lake, 10, feed)
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
@ways
@pytest.mark.parametrize(
    "change",
    ["OPTIMIZE {}", "UPDATE {} SET id = 7 WHERE id = 0"],
)
def test_its_group_follows(spark: SparkSession, feed: bool, change: str, lake: Lake) -> None:
    append(lake, 0, feed)
    append(lake, 10, feed)
    refreshed(lake, GROUPS)
    spark.sql(change.format(f"delta.`{lake.location('src')}`"))
    assert refreshed(lake, GROUPS).action == "DIFFERENTIAL"
