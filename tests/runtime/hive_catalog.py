"""`python hive_catalog.py FOLDER`: a table of Hive's embedded metastore, refreshed differentially.

A metastore of Derby belongs to one process, and so does a classic session: tests run this as one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable, delta_settings

SMALL = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
}
QUERY = "SELECT customer, SUM(amount) AS total FROM sales.orders GROUP BY customer"


def session(folder: Path) -> SparkSession:
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # of the tests that started this process
    builder = SparkSession.builder.master("local[1]").enableHiveSupport()
    for name, value in (delta_settings() | SMALL).items():
        builder = builder.config(name, value)
    derby = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", derby)
    return builder.config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate()


def main(folder: Path) -> None:
    spark = session(folder)
    spark.sql("CREATE SCHEMA sales")
    spark.sql("CREATE TABLE sales.orders (customer STRING, amount BIGINT) USING delta")
    spark.sql("INSERT INTO sales.orders VALUES ('a', 1), ('b', 2)")
    lake = Lake(
        folder / "lake", spark=spark, catalogs={"sales": "spark"}, register_in="spark_catalog"
    )
    table = StreamTable("mart.totals", QUERY)
    assert lake.refresh(table).action is Action.REINITIALIZE
    spark.sql("INSERT INTO sales.orders VALUES ('a', 10), ('c', 3)")
    spark.sql("DELETE FROM sales.orders WHERE customer = 'b'")
    assert lake.refresh(table).action is Action.DIFFERENTIAL
    found = sorted(map(tuple, spark.sql("SELECT customer, total FROM mart.totals").collect()))
    assert found == sorted(map(tuple, spark.sql(QUERY).collect())) == [("a", 11), ("c", 3)], found
    assert "sales.db/orders" in lake.location("sales.orders")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
