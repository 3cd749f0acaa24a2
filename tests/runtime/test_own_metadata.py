"""Sources with a column ``_metadata`` of their own, as ingestion from files often makes it.

Spark gives that name to what it knows of the file of each row. Taken for that, a struct of the
table's own would lose the rows that changed, without a word.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Lake
from runtime.delta import FEED
from runtime.refreshes import maintained, refreshed

FILE = pa.struct([("file_name", pa.string()), ("file_path", pa.string())])
QUERIES = {
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


@pytest.mark.parametrize(
    ("driver_rows", "feed"),
    [
        pytest.param(None, True, id="here, feed", marks=pytest.mark.long),
        pytest.param(None, False, id="here, no feed", marks=pytest.mark.long),
        pytest.param(0, True, id="spark, feed", marks=pytest.mark.long),
        pytest.param(0, False, id="spark, no feed", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("name", [pytest.param("bag", marks=pytest.mark.long), "own"])
@pytest.mark.parametrize(
    "more", [{}, pytest.param({"__METADATA": [0]}, marks=pytest.mark.long)], ids=["one", "two"]
)
def test_changes_are_those_of_the_files(
    feed: bool, more: dict[str, list[int]], name: str, lake: Lake
) -> None:
    place = lake.location("src")
    many = {name: values * 4 for name, values in more.items()}
    write_deltalake(place, rows([1, 2, 3, 4], **many), configuration=FEED if feed else {})
    table = maintained(name, QUERIES[name])
    refreshed(lake, table)
    write_deltalake(place, rows([5], **more), mode="append")
    refreshed(lake, table)
    DeltaTable(place).delete("id = 2")
    DeltaTable(place).update(predicate="id = 3", updates={"v": "7"})
    refreshed(lake, table)
