"""A Delta table that tests write as others would: with delta-rs, one commit a method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from named_rows import tuples

Row = tuple[Any, ...]

FEED = {"delta.enableChangeDataFeed": "true"}
KV = pa.schema([("k", pa.int64()), ("v", pa.string())])
"""The relation of most examples: a key and a value."""


@dataclass
class Table:
    location: str
    schema: pa.Schema = KV

    @classmethod
    def new(
        cls, location: str, schema: pa.Schema = KV, settings: Mapping[str, str] | None = FEED
    ) -> Table:
        """An empty table; it has version 0."""
        write_deltalake(location, schema.empty_table(), configuration=dict(settings or {}))
        return cls(location, schema)

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(self.location)

    @property
    def version(self) -> int:
        return self.delta.version()

    def insert(self, *rows: Row) -> None:
        write_deltalake(self.location, self._rows(rows), mode="append")

    def overwrite(self, *rows: Row) -> None:
        write_deltalake(self.location, self._rows(rows), mode="overwrite")

    def update(self, where: str | None, **values: str) -> None:
        self.delta.update(predicate=where, updates=values)

    def delete(self, where: str | None = None) -> None:
        self.delta.delete(where)

    def merge(self, *rows: Row, key: str = "k") -> None:
        """Insert rows, in place of those with the same key."""
        source = self._rows(rows)
        done = self.delta.merge(source, f"t.{key} = s.{key}", source_alias="s", target_alias="t")
        done.when_matched_update_all().when_not_matched_insert_all().execute()

    def compact(self) -> None:
        self.delta.optimize.compact()

    def vacuum(self) -> None:
        """Delete all files that the newest version has not, those of the feed as well."""
        self.delta.vacuum(0, enforce_retention_duration=False, dry_run=False, full=True)
        for file in Path(self.location).glob("_change_data/*"):
            file.unlink()

    def clean_log(self) -> None:
        """Delete all commits but the newest, which a checkpoint has."""
        self.delta.create_checkpoint()
        for commit in sorted(Path(self.location, "_delta_log").glob("*.json"))[:-1]:
            commit.unlink()

    def restore(self, version: int) -> None:
        self.delta.restore(version)

    def add_column(self, name: str, type_: str) -> None:
        self.delta.alter.add_columns(Field(name, PrimitiveType(type_)))

    def delta_at(self, version: int) -> pa.Table:
        return DeltaTable(self.location, version=version).to_pyarrow_table()

    def rows(self, version: int, columns: Iterable[str] | None = None) -> Counter[Row]:
        """What plain reading finds at a version, the columns by name, as `reading.plain` does."""
        names = sorted(columns or self.names(version))
        return Counter(tuples(self.delta_at(version).select(names)))

    def names(self, version: int) -> list[str]:
        return self.delta_at(version).column_names

    def _rows(self, rows: Iterable[Row]) -> pa.Table:
        """The rows, with NULL in columns that were added since."""
        schema = pa.schema(self.delta.schema().to_arrow())
        names = self.schema.names
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
