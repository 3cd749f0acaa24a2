"""Seconds of a refresh against the number of changed rows: differential, full, written by hand.

    python -m benchmarks.refresh [--rows 1000000] [--changes 10,1000,100000] [--runs 3]

All three do the same work in the same run on the same Spark server: the same window of `orders`,
one third inserts, one third updates, one third deletes of recent orders. Every figure is the median
of the runs after one to warm up; every stream table is compared with its query at the end.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import typer
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from rich.table import Table

from benchmarks.shapes import SHAPES, Shape
from dagster_streamtables import Lake, StreamTable
from dagster_streamtables.runtime.session import open_session

FEED = {"delta.enableChangeDataFeed": "true"}
CUSTOMERS, REGIONS = 50_000, 25


class Orders:
    """The source, and the windows that change it."""

    def __init__(self, location: str, rows: int) -> None:
        self.location, self.next, self.random = location, rows, np.random.default_rng(1)
        for start in range(0, rows, rows // 4):
            ids = np.arange(start, min(start + rows // 4, rows))
            write_deltalake(location, self._rows(ids), mode="append", configuration=FEED)
        self.live = list(range(rows))

    def change(self, count: int) -> None:
        """Change `count` orders, the newest ones, in one commit."""
        third = max(1, count // 3)
        inserts = list(range(self.next, self.next + max(1, count - 2 * third)))
        self.next = inserts[-1] + 1
        updates, deletes = self.live[-third:], self.live[-2 * third : -third]
        self.live = self.live[: -2 * third] + updates + inserts
        ids = np.array([*inserts, *updates, *deletes])
        gone = [False] * (len(inserts) + len(updates)) + [True] * len(deletes)
        rows = self._rows(ids).append_column("gone", pa.array(gone))
        columns = {name: f"s.{name}" for name in ("id", "customer", "amount", "note")}
        (
            DeltaTable(self.location)
            .merge(rows, f"t.id >= {min(ids)} AND t.id = s.id", source_alias="s", target_alias="t")
            .when_matched_delete("s.gone")
            .when_matched_update(columns, "NOT s.gone")
            .when_not_matched_insert(columns, "NOT s.gone")
            .execute()
        )

    def _rows(self, ids: np.ndarray) -> pa.Table:
        size = len(ids)
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "customer": pa.array(self.random.integers(0, CUSTOMERS, size), pa.int64()),
                "amount": pa.array(self.random.integers(0, 1000, size), pa.int32()),
                "note": pa.array([f"note {i % 1000}" for i in range(size)]),
            }
        )


class ByHand:
    """The same tables, each kept by a MERGE that somebody wrote for it."""

    def __init__(self, spark: Any, folder: Path, orders: str, customers: str) -> None:
        self.spark, self.folder = spark, folder
        self.names = {"orders": f"delta.`{orders}`", "customers": f"delta.`{customers}`"}
        self.orders = orders

    def create(self, shape: Shape) -> None:
        sql = shape.target.format(**self.names)
        self.spark.sql(sql).write.format("delta").save(self._place(shape))

    def refresh(self, shape: Shape, version: int) -> None:
        feed = f"table_changes_by_path('{self.orders}', {version}, {version})"
        signed = (
            "(SELECT *, CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 "
            f"END AS w FROM {feed})"
        )
        last = (
            "(SELECT *, _change_type = 'delete' AS gone FROM "
            f"{feed} WHERE _change_type <> 'update_preimage')"
        )
        target = f"delta.`{self._place(shape)}`"
        sql = shape.merge.format(target=target, signed=signed, last=last, **self.names)
        self.spark.sql(sql).collect()

    def _place(self, shape: Shape) -> str:
        return str(self.folder / "by_hand" / shape.name.replace(" ", ""))


def main(rows: int = 1_000_000, changes: str = "10,1000,100000", runs: int = 3) -> None:
    """Measure and print one table."""
    folder = Path(tempfile.mkdtemp(prefix="streamtables-bench-"))
    try:
        _print(_measure(folder, rows, [int(each) for each in changes.split(",")], runs), rows, runs)
    finally:
        shutil.rmtree(folder)


def _measure(folder: Path, rows: int, sizes: list[int], runs: int) -> dict[Any, Any]:
    lake, spark = Lake(folder), open_session()
    orders = Orders(lake.location("orders"), rows)
    customers = pa.table(
        {
            "id": pa.array(range(CUSTOMERS), pa.int64()),
            "region": pa.array([f"region {i % REGIONS}" for i in range(CUSTOMERS)]),
        }
    )
    write_deltalake(lake.location("customers"), customers, configuration=FEED)
    hand = ByHand(spark, folder, orders.location, lake.location("customers"))
    # 100,000 of 1,000,000 rows count twice where they are updates: the ratio is not the subject.
    declared = {
        (shape.name, way): StreamTable(
            f"{way}.{shape.name.replace(' + ', '_')}", shape.query, differential_max_change_ratio=0
        )
        for shape in SHAPES
        for way in ("differential", "full")
    }
    for shape in SHAPES:
        hand.create(shape)
    for table in declared.values():
        lake.refresh(table)
    seconds: dict[Any, list[float]] = defaultdict(list)
    for size in sizes:
        for run in range(-1, runs):
            orders.change(size)
            version = DeltaTable(orders.location).version()
            for shape in SHAPES:
                for way in ("differential", "full", "by hand"):
                    begin = time.perf_counter()
                    if way == "by hand":
                        hand.refresh(shape, version)
                    else:
                        lake.refresh(declared[shape.name, way], full=way == "full")
                    if run >= 0:
                        seconds[shape.name, size, way].append(time.perf_counter() - begin)
    for shape in SHAPES:
        table = declared[shape.name, "differential"]
        begin = time.perf_counter()
        lake.refresh(table)
        seconds[shape.name, "nothing"].append(time.perf_counter() - begin)
        assert lake.check(table).equal, f"{shape.name} is not its query"
    return {key: statistics.median(values) for key, values in seconds.items()}


def _print(medians: dict[Any, float], rows: int, runs: int) -> None:
    table = Table(
        title=f"Seconds of a refresh, {rows:,} rows, median of {runs} (× against differential)"
    )
    for heading in ("query", "changed rows", "DIFFERENTIAL", "FULL", "MERGE by hand", "NO_DATA"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for shape in SHAPES:
        for size in sorted({key[1] for key in medians if len(key) == 3}):
            ours, full, hand = (
                medians[shape.name, size, way] for way in ("differential", "full", "by hand")
            )
            table.add_row(
                shape.name,
                f"{size:,}",
                f"{ours:.2f}",
                f"{full:.2f} ({full / ours:.1f}×)",
                f"{hand:.2f} ({hand / ours:.1f}×)",
                f"{medians[shape.name, 'nothing'] * 1000:.0f} ms",
            )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
