"""Every kind of stream table, refreshed by both engines at once, while both change the sources.

Of two refreshes at the same time, one may lose and say so. In the end nothing that was said to be
done is missing, and each table equals its query.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.errors.error_translation import may_pass
from qa.object_store.spark import session
from qa.object_store.store import AuditedStore

BUCKET = "competing"
QUERIES = {
    "filter": "SELECT id, customer, amount FROM orders WHERE amount > 10",
    "groups": "SELECT customer, COUNT(*) AS n, SUM(amount) AS total, MIN(amount) AS least "
    "FROM orders GROUP BY customer",
    "joined": "SELECT o.id, c.region, o.amount FROM orders AS o LEFT JOIN customers AS c "
    "ON o.customer = c.id",
    "below_a_join": "SELECT c.region, g.n FROM customers AS c JOIN (SELECT customer, COUNT(*) AS n "
    "FROM orders GROUP BY customer) AS g ON g.customer = c.id",
    "ranks": "SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount, id) AS n "
    "FROM orders",
    "largest": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 5",
    "kinds": "SELECT DISTINCT customer, amount > 50 AS large FROM orders",
    "idle": "SELECT id FROM customers EXCEPT SELECT customer FROM orders WHERE amount > 100",
    "tree": "WITH RECURSIVE t AS (SELECT id, 0 AS depth FROM customers WHERE boss IS NULL UNION "
    "ALL SELECT c.id, t.depth + 1 FROM customers AS c JOIN t ON c.boss = t.id) SELECT * FROM t",
    "above": "SELECT customer, total FROM groups WHERE n > 3",
    # delta-rs writes no nested types.
    "lists": "SELECT customer, sort_array(collect_list(id)) AS ids FROM orders GROUP BY customer",
}
TABLES = [StreamTable(n, q, differential_max_change_ratio=0) for n, q in QUERIES.items()]
_CUSTOMERS = 9


@dataclass
class Writers:
    """Threads that go on until they are told to end."""

    done: set[int] = field(default_factory=set[int])
    """The orders that were said to be stored."""
    doubtful: set[int] = field(default_factory=set[int])
    """Those of which nothing was said."""
    events: Counter[str] = field(default_factory=Counter[str])
    errors: list[BaseException] = field(default_factory=list[BaseException])
    ended: threading.Event = field(default_factory=threading.Event)

    def start(self, step: Callable[[], None]) -> threading.Thread:
        def go_on() -> None:
            while not self.ended.is_set():
                try:
                    step()
                except BaseException as error:
                    self.errors.append(error)
                    self.ended.set()
                time.sleep(random.random())

        thread = threading.Thread(target=go_on)
        thread.start()
        return thread

    def insert(self, engine: str, id: int, write: Callable[[], object]) -> None:
        try:
            write()
            self.done.add(id)
            self.events[f"{engine} inserted"] += 1
        except (CommitFailedError, PySparkException, OSError) as error:
            self.doubtful.add(id)
            self.events[f"{engine}: {type(error).__name__}"] += 1

    def refresh(self, engine: str, lake: Lake, table: StreamTable) -> None:
        try:
            done = lake.refresh(table)
            self.events[f"{engine}: {done.action} by {done.writer or 'nobody'}"] += 1
        except StreamTablesError as error:
            if not may_pass(error):
                raise
            self.events[f"{engine}: {type(error).__name__}"] += 1


def competing(store: AuditedStore, minutes: float) -> list[str]:
    """What is wrong in the end."""
    store.make(BUCKET)
    spark = session(store)
    try:
        return _compete(store, spark, minutes)
    finally:
        spark.stop()


def _compete(store: AuditedStore, spark: SparkSession, minutes: float) -> list[str]:
    root, options = f"s3a://{BUCKET}/lake", dict(store.options)
    by_delta_rs = Lake(root, spark=spark, storage_options=options)
    by_spark = Lake(root, spark=spark, storage_options=options, driver_rows=0)
    orders, customers = (by_spark.location(name) for name in ("orders", "customers"))
    people = range(_CUSTOMERS)
    regions = {"id": [*people], "region": [f"r{n % 3}" for n in people]}
    bosses = {"boss": pa.array([None if n < 2 else n // 2 for n in people], pa.int64())}
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(customers, pa.table({**regions, **bosses}), storage_options=options)
    write_deltalake(orders, _order(0), storage_options=options, configuration=feed)
    writers, ids = Writers(done={0}), iter(range(1, 1_000_000))

    def insert_by_delta_rs() -> None:
        id = next(ids)
        rows = _order(id)
        writers.insert("delta-rs", id, lambda: write_deltalake(
            orders, rows, mode="append", storage_options=options))  # fmt: skip

    def insert_by_spark() -> None:
        id = next(ids)
        [row] = _order(id).to_pylist()
        values = f"{row['id']}L, {row['customer']}L, {row['amount']}L"
        writers.insert("spark", id, lambda: spark.sql(
            f"INSERT INTO delta.`{orders}` VALUES ({values})").collect())  # fmt: skip

    def move_a_customer() -> None:
        n = random.choice(people)
        move = f"UPDATE delta.`{customers}` SET region = 'r{random.randrange(4)}' WHERE id = {n}"
        writers.insert("spark's update", 0, lambda: spark.sql(move).collect())

    def refresh(engine: str, lake: Lake) -> Callable[[], None]:
        return lambda: writers.refresh(engine, lake, random.choice(TABLES))

    steps = [
        insert_by_delta_rs,
        insert_by_spark,
        move_a_customer,
        refresh("delta-rs", by_delta_rs),
        refresh("spark", by_spark),
    ]
    for table in TABLES:
        by_spark.refresh(table)
    threads = [writers.start(step) for step in steps]
    writers.ended.wait(60 * minutes)
    writers.ended.set()
    for thread in threads:
        thread.join()
    if writers.errors:
        raise writers.errors[0]
    print(dict(sorted(writers.events.items())), flush=True)
    return _wrong(store, writers, by_delta_rs, orders)


def _wrong(store: AuditedStore, writers: Writers, lake: Lake, orders: str) -> list[str]:
    rows = DeltaTable(orders, storage_options=dict(store.options)).to_pyarrow_table()
    found = Counter(rows.column("id").to_pylist())
    wrong = [f"order {id} is lost" for id in sorted(writers.done - found.keys())]
    wrong += [f"order {id} is there {n} times" for id, n in found.items() if n > 1]
    unknown = found.keys() - writers.done - writers.doubtful
    wrong += [f"order {id} was never written" for id in sorted(unknown)]
    for line in store.audited(BUCKET):
        if line["status"] == 200 and line["existed"] and line["method"] != "DELETE":
            wrong.append(f"{line['key']} was overwritten by {line['agent']}")
    for table in TABLES:
        lake.refresh(table)
        compared = lake.check(table)
        if not compared.equal:
            wrong.append(f"{table.name} is not its query: {compared}")
    return wrong


def _order(id: int) -> pa.Table:
    amount = (37 * id) % 151
    return pa.table({"id": [id], "customer": [id % _CUSTOMERS], "amount": [amount]})
