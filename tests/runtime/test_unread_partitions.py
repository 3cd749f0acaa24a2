"""Values of partitions that Spark reads, and delta-rs does not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.errors import DamagedTable
from runtime.refreshes import refreshed


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param("DATE", "2020"),
        pytest.param("DECIMAL(10,2)", "1.0", marks=pytest.mark.long),
        pytest.param("INT", " 8", marks=pytest.mark.long),
        pytest.param("BOOLEAN", "1", marks=pytest.mark.long),
    ],
)
def test_they_are_told_and_mended(spark: SparkSession, kind: str, text: str, lake: Lake) -> None:
    place = lake.location("src")
    (Path(place) / f"p={text}").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), f"{place}/p={text}/part-00000.parquet")
    spark.sql(f"CONVERT TO DELTA parquet.`{place}` PARTITIONED BY (p {kind})")
    table = StreamTable("bag", "SELECT id, p FROM src")
    with pytest.raises(DamagedTable, match="the value of a partition cannot be read") as told:
        lake.refresh(table)
    assert f"'{text}'" in str(told.value)
    spark.sql(f"UPDATE delta.`{place}` SET p = p")
    assert refreshed(lake, table).row_count == 2
