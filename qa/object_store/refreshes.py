"""Stream tables over the store: refreshed after each change, and compared with plain Spark.

Spark reads and commits through ``s3a``, delta-rs beside it.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, Refresh, StreamTable
from qa.object_store.spark import session
from qa.object_store.store import BUCKET, AuditedStore, Store

QUERIES = {
    "mart.large": "SELECT id, customer, amount FROM sales.orders WHERE amount > 10",
    "mart.regions": "SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total FROM sales.orders AS o "
    "JOIN sales.customers AS c ON o.customer = c.id GROUP BY c.region",
    "mart.top": "SELECT region, n FROM mart.regions ORDER BY n DESC, region LIMIT 2",
    "mart.ranks": "SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount, id) AS n "
    "FROM sales.orders",
}
TABLES = [StreamTable(n, q, differential_max_change_ratio=0) for n, q in QUERIES.items()]


def refreshes(store: AuditedStore, windows: int) -> None:
    """In each window the sources change twice: a little, and much."""
    store.make(BUCKET)
    memory = os.environ.get("STREAMTABLES_SPARK_MEMORY", "2g")
    spark = session(store, more={"spark.driver.memory": memory})
    try:
        for most in (None, 0):
            _history(spark, store, most, windows)
    finally:
        spark.stop()


def _history(spark: SparkSession, store: Store, most: int | None, windows: int) -> None:
    lake = Lake(store.root(f"lake_{most}"), spark=spark, storage_options=store.options,
                driver_rows=most)  # fmt: skip
    for name, rows in _first().items():
        _write(store, lake, name, rows)
    _refresh(lake, {"REINITIALIZE"})
    for window, change in zip(range(windows), itertools.cycle(_CHANGES), strict=False):
        change(spark, store, lake, window)
        _refresh(lake, {"DIFFERENTIAL", "NO_DATA"})
    _refresh(lake, {"NO_DATA"})


def _refresh(lake: Lake, expected: set[str]) -> None:
    for table in TABLES:
        done: Refresh = lake.refresh(table)
        found = lake.check(table)
        assert found.equal, (done, found)
        assert done.action in expected, done
        print(f"{done}; {done.seconds:.1f} s", flush=True)


def _first() -> dict[str, list[dict[str, Any]]]:
    orders = [{"id": n, "customer": n % 7, "amount": 1.5 * n} for n in range(100)]
    return {
        "sales.orders": orders,
        "sales.customers": [{"id": n, "region": "abcabca"[n]} for n in range(7)],
    }


def _write(store: Store, lake: Lake, name: str, rows: list[dict[str, Any]]) -> None:
    feed = {"delta.enableChangeDataFeed": "true"} if name == "sales.orders" else None
    write_deltalake(
        lake.location(name),
        pa.Table.from_pylist(rows),
        mode="append",
        configuration=feed,
        storage_options=dict(store.options),
    )


def _append(spark: SparkSession, store: Store, lake: Lake, window: int) -> None:
    rows = [{"id": 1000 + 2 * window + n, "customer": n, "amount": 500.0 * n} for n in range(2)]
    _write(store, lake, "sales.orders", rows)


def _by_both(spark: SparkSession, store: Store, lake: Lake, window: int) -> None:
    options = dict(store.options)
    DeltaTable(lake.location("sales.orders"), storage_options=options).delete(f"id = {50 + window}")
    place = lake.location("sales.customers")
    spark.sql(f"UPDATE delta.`{place}` SET region = 'z{window}' WHERE id = {window % 7}")


def _by_spark(spark: SparkSession, store: Store, lake: Lake, window: int) -> None:
    place = lake.location("sales.orders")
    spark.sql(f"UPDATE delta.`{place}` SET amount = amount + 1 WHERE id % 10 = {window % 10}")


_CHANGES = (_append, _by_both, _by_spark)
