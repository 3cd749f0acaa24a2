"""The sources as Delta tables, read and changed by key."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import Lake
from qa.tpc.generated import tables

Row = dict[str, Any]


class Sources:
    """Each change is a commit of its own, by delta-rs."""

    def __init__(self, lake: Lake, generated: Path) -> None:
        self._lake = lake
        for table in tables(generated):
            Path(lake.location(table)).mkdir(parents=True)
            write_deltalake(
                lake.location(table),
                pq.read_table(generated / f"{table}.parquet"),
                configuration={"delta.enableChangeDataFeed": "true"},
            )

    def values(self, table: str, column: str) -> list[Any]:
        """The column's distinct values, in order: the same in each run."""
        return sorted(set(self._read(table, [column]).column(0).to_pylist()))

    def rows(self, table: str, key: str | None = None, among: Collection[Any] = ()) -> list[Row]:
        """All rows, or those whose key is among the values, in the order of their first columns."""
        read = self._read(table)
        if key is not None:
            read = read.filter(pc.field(key).isin(list(among)))
        return read.sort_by([(name, "ascending") for name in read.column_names[:4]]).to_pylist()

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        write_deltalake(self._lake.location(table), self._arrow(table, rows), mode="append")

    def update(self, table: str, key: str, rows: Sequence[Row]) -> None:
        matched = self._open(table).merge(
            self._arrow(table, rows), f"t.{key} = s.{key}", source_alias="s", target_alias="t"
        )
        matched.when_matched_update_all().execute()

    def delete(self, table: str, key: str, values: Collection[int]) -> None:
        self._open(table).delete(f"{key} IN ({', '.join(map(str, values))})")

    def _open(self, table: str) -> DeltaTable:
        return DeltaTable(self._lake.location(table))

    def _read(self, table: str, columns: list[str] | None = None) -> pa.Table:
        return pa.table(self._open(table).to_pyarrow_table(columns=columns))

    def _arrow(self, table: str, rows: Sequence[Row]) -> pa.Table:
        schema = self._open(table).schema().to_arrow()
        return pa.Table.from_pylist(list(rows), schema=pa.schema(schema))
