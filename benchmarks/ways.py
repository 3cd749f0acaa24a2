"""The ways to bring a table up to date, each timed on the same window of the same sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import duckdb
from deltalake import DeltaTable

from benchmarks.orders import Orders
from benchmarks.shapes import Shape
from dagster_streamtables import Lake, Mode, Refresh, StreamTable


class Way(Protocol):
    def create(self, shape: Shape) -> None:
        """Fill the table of a shape for the first time."""
        ...

    def refresh(self, shape: Shape, version: int) -> Refresh | None:
        """Bring it up to a version of the orders; the window holds that version only."""
        ...


class Streamed:
    """A stream table."""

    def __init__(self, lake: Lake, mode: Mode) -> None:
        self._lake, self._mode = lake, mode

    def create(self, shape: Shape) -> None:
        self._lake.refresh(self.table(shape))

    def refresh(self, shape: Shape, version: int) -> Refresh:
        return self._lake.refresh(self.table(shape))

    def table(self, shape: Shape) -> StreamTable:
        name = f"{self._mode.lower()}.{shape.file}"
        if self._mode is Mode.AUTO:
            return StreamTable(name, shape.query, mode=self._mode)
        # However large the change: what it costs is the question.
        return StreamTable(name, shape.query, mode=self._mode, differential_max_change_ratio=0)


class Overwritten:
    """What one would write first: INSERT OVERWRITE with the query."""

    def __init__(self, spark: Any, folder: Path, orders: str, customers: str) -> None:
        self._spark, self._folder = spark, folder / "overwritten"
        for name, place in (("orders", orders), ("customers", customers)):
            spark.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM delta.`{place}`")

    def create(self, shape: Shape) -> None:
        rows = self._spark.sql(shape.query)
        rows.write.format("delta").save(str(self._folder / shape.file))

    def refresh(self, shape: Shape, version: int) -> None:
        place = self._folder / shape.file
        self._spark.sql(f"INSERT OVERWRITE delta.`{place}` {shape.query}").collect()


class ByHand:
    """The MERGE that a good engineer would write, over the feed of the window."""

    def __init__(self, spark: Any, folder: Path, orders: str, customers: str) -> None:
        self._spark, self._folder, self._orders = spark, folder / "by_hand", orders
        self._names = {"orders": f"delta.`{orders}`", "customers": f"delta.`{customers}`"}

    def create(self, shape: Shape) -> None:
        rows = self._spark.sql(shape.target.format(**self._names))
        rows.write.format("delta").save(str(self._folder / shape.file))

    def refresh(self, shape: Shape, version: int) -> None:
        feed = f"table_changes_by_path('{self._orders}', {version}, {version})"
        signed = (
            "(SELECT *, CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 "
            f"END AS w FROM {feed})"
        )
        last = (
            "(SELECT *, _change_type = 'delete' AS gone FROM "
            f"{feed} WHERE _change_type <> 'update_preimage')"
        )
        target = f"delta.`{self._folder / shape.file}`"
        sql = shape.merge.format(target=target, signed=signed, last=last, **self._names)
        self._spark.sql(sql).collect()


class Duck:
    """Another engine over the same Parquet files: what the machine can do."""

    def __init__(self, folder: Path, sources: Orders, customers: str) -> None:
        self._folder, self._places = folder, {"orders": sources.location, "customers": customers}

    def create(self, shape: Shape) -> None:
        self.refresh(shape, 0)

    def refresh(self, shape: Shape, version: int) -> None:
        with duckdb.connect() as database:
            for name, place in self._places.items():
                files = DeltaTable(place).file_uris()
                database.sql(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files})")
            target = self._folder / f"{shape.file}.parquet"
            database.sql(f"COPY ({shape.query}) TO '{target}'")
