"""The sources of TPC-H as Spark writes and changes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pyspark.sql import SparkSession

from dagster_streamtables import Lake
from qa.tpc.generated import tables
from qa.tpc.sources import Sources


class SparkSources(Sources):
    """Tables in the order of their keys, as the generator makes them.

    A DELETE of delta-rs takes that order from all rows of a file, one of Spark leaves it.
    """

    def __init__(self, lake: Lake, generated: Path, spark: SparkSession) -> None:
        self._lake, self._spark = lake, spark
        for table in tables(generated):
            rows = spark.read.parquet(str(generated / f"{table}.parquet"))
            feed = rows.write.format("delta").option("delta.enableChangeDataFeed", "true")
            feed.save(lake.location(table))

    def delete(self, table: str, key: str, values: Collection[int]) -> None:
        among = ", ".join(map(str, values))
        self._spark.sql(
            f"DELETE FROM delta.`{self._lake.location(table)}` "
            f"WHERE {key} BETWEEN {min(values)} AND {max(values)} AND {key} IN ({among})"
        )
