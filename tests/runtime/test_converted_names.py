"""Files whose columns are spelled otherwise than the table's, as CONVERT TO DELTA takes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, subscribe
from runtime.delta import FEED
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import feeds, writers

QUERIES = {
    "bag": "SELECT id, s, st.a AS a FROM src",
    "groups": "SELECT s, COUNT(*) AS n, SUM(st.a) AS a FROM src GROUP BY s",
    "rows": "SELECT id, ROW_NUMBER() OVER (PARTITION BY s ORDER BY id) AS n FROM src",
}


@pytest.mark.long
@feeds
@writers
def test_columns_are_found_in_any_case(spark: SparkSession, feed: bool, lake: Lake) -> None:
    folder = Path(lake.location("src"))
    folder.mkdir(parents=True)
    small = {"id": [1, 2], "s": ["a", "b"], "st": [{"a": 1}, {"a": 2}]}
    capital = {"ID": [3, 4], "S": ["a", "c"], "ST": [{"A": 3}, {"A": 4}]}
    for name, rows in {"a": small, "b": capital}.items():
        pq.write_table(pa.table(rows), folder / f"{name}.parquet")
    place = f"delta.`{folder}`"
    spark.sql(f"CONVERT TO DELTA parquet.`{folder}`")
    if feed:
        [(name, value)] = FEED.items()
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('{name}' = '{value}')")
    tables = [maintained(n, q) for n, q in QUERIES.items()]
    for change in (
        "DELETE FROM {} WHERE id = 1",
        "UPDATE {} SET s = 'a' WHERE id = 4",
        "INSERT INTO {} SELECT * FROM {} WHERE id = 3",
    ):
        each_refreshed(lake, *tables)
        spark.sql(change.format(place, place))
    done = [refreshed(lake, table) for table in tables]
    assert {each.action for each in done} == {"DIFFERENTIAL"}


@pytest.mark.long
def test_who_follows_reads_them(spark: SparkSession, lake: Lake) -> None:
    folder = Path(lake.location("src"))
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    pq.write_table(pa.table({"ID": [2]}), folder / "b.parquet")
    spark.sql(f"CONVERT TO DELTA parquet.`{folder}`")
    rows = subscribe(lake, "src").fetch(None, timeout=0).to_pylist()
    assert sorted(row[name] for row in rows for name in row if name.lower() == "id") == [1, 2]
