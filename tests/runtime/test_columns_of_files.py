"""Columns whose names in files are spelled otherwise than the table's, or mean something to Spark.

CONVERT TO DELTA takes files with the former. Ingestion from files often makes a column
``_metadata``, and Spark gives that name to what it knows of the file of each row. Taken for that, a
struct of the table's own would lose the rows that changed, without a word.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Lake, subscribe
from runtime.delta import FEED, on_spark
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed
from runtime.ways import feeds, writers

SPELLED = {
    "bag": "SELECT id, s, st.a AS a FROM src",
    "groups": "SELECT s, COUNT(*) AS n, SUM(st.a) AS a FROM src GROUP BY s",
    "rows": "SELECT id, ROW_NUMBER() OVER (PARTITION BY s ORDER BY id) AS n FROM src",
}


def converted(lake: Lake, *files: dict[str, list[Any]]) -> None:
    """The table ``src``, made of files of another program."""
    folder = Path(lake.location("src"))
    folder.mkdir(parents=True)
    for number, rows in enumerate(files):
        pq.write_table(pa.table(rows), folder / f"{number}.parquet")
    on_spark(lake, f"CONVERT TO DELTA parquet.`{folder}`")


@pytest.mark.long
@feeds
@writers
def test_columns_are_found_in_any_case(feed: bool, lake: Lake) -> None:
    small = {"id": [1, 2], "s": ["a", "b"], "st": [{"a": 1}, {"a": 2}]}
    capital = {"ID": [3, 4], "S": ["a", "c"], "ST": [{"A": 3}, {"A": 4}]}
    converted(lake, small, capital)
    if feed:
        on_spark(lake, "ALTER TABLE {src} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    tables = [maintained(n, q) for n, q in SPELLED.items()]
    for change in (
        "DELETE FROM {src} WHERE id = 1",
        "UPDATE {src} SET s = 'a' WHERE id = 4",
        "INSERT INTO {src} SELECT * FROM {src} WHERE id = 3",
    ):
        each_refreshed(lake, *tables)
        on_spark(lake, change)
    each_followed(lake, *tables)


@pytest.mark.long
def test_who_follows_reads_them(lake: Lake) -> None:
    converted(lake, {"id": [1]}, {"ID": [2]})
    rows = subscribe(lake, "src").fetch(None, timeout=0).to_pylist()
    assert sorted(row[name] for row in rows for name in row if name.lower() == "id") == [1, 2]


FILE = pa.struct([("file_name", pa.string()), ("file_path", pa.string())])
BESIDE_OWN = {
    "bag": "SELECT id, v FROM src",
    "own": "SELECT _metadata.file_name AS file, SUM(v) AS v, COUNT(*) AS n FROM src GROUP BY ALL",
}


def rows(numbers: list[int], **more: list[Any]) -> pa.Table:
    files = [{"file_name": f"{n}.csv", "file_path": f"/in/{n}.csv"} for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "_metadata": pa.array(files, FILE),
            "v": pa.array([10 * n for n in numbers], pa.int64()),
            **more,
        }
    )


@pytest.mark.long
@feeds
@writers
@pytest.mark.parametrize("name", BESIDE_OWN)
@pytest.mark.parametrize("more", [{}, {"__METADATA": [0]}], ids=["one", "two"])
def test_changes_are_those_of_the_files(
    feed: bool, more: dict[str, list[int]], name: str, lake: Lake
) -> None:
    place = lake.location("src")
    many = {name: values * 4 for name, values in more.items()}
    write_deltalake(place, rows([1, 2, 3, 4], **many), configuration=FEED if feed else {})
    table = maintained(name, BESIDE_OWN[name])
    refreshed(lake, table)
    write_deltalake(place, rows([5], **more), mode="append")
    refreshed(lake, table)
    DeltaTable(place).delete("id = 2")
    DeltaTable(place).update(predicate="id = 3", updates={"v": "7"})
    refreshed(lake, table)
