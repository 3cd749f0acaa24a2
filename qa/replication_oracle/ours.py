"""The same publications, applied to Delta tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables.errors import ReplicationConflict
from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.apply.contract import Choices
from dagster_streamtables.replication.apply.copy_rows import copy_rows
from dagster_streamtables.replication.model.replication_model import Batch
from dagster_streamtables.replication.postgres.postgres_publisher import PostgresPublisher
from dagster_streamtables.replication.target.target_table import ReplicationTarget

POSITION = re.compile(r"position (\d+)")


@dataclass
class Replica:
    publisher: PostgresPublisher
    folder: Path
    max_rows: int
    in_memory: int
    after: dict[str, int] = field(default_factory=dict)
    confirmed: str | None = None
    skipped: list[int] = field(default_factory=list)
    """The commits at which it has stopped."""

    def begin(self, tables: Collection[str], *, copy: bool) -> None:
        published = self.publisher.offer().require()
        if copy:
            with self.publisher.copy("ours", tables) as rows:
                for name in tables:
                    self.after[name] = rows.position(name)
                    target, table = self.target(name), published[name]
                    copy_rows(target, table, rows.rows(name), self.after[name])
            return
        self.after = dict(self.publisher.create_slot("ours", tables))
        for name in tables:
            schema = published[name].schema
            write_deltalake(self.target(name).location, schema.empty_table())

    def catch_up(self) -> None:
        while True:
            read = self.publisher.read(
                "ours", self.after, self.confirmed, max_rows=self.max_rows
            ).require()
            for name in self.after:
                self._apply(name, read)
            self.after = dict(read.end)
            self.confirmed = self.publisher.confirm("ours", self.after)
            if read.complete:
                return

    def rows(self, table: str, columns: list[str]) -> Counter[str]:
        found = DeltaTable(self.target(table).location).to_pyarrow_table(columns=columns)
        return Counter(repr(tuple(row[name] for name in columns)) for row in found.to_pylist())

    def insert(self, table: str, row: dict[str, Any]) -> None:
        """Somebody writes to the target."""
        place = DeltaTable(self.target(table).location)
        schema = pa.schema(place.schema().to_arrow())
        write_deltalake(place, pa.Table.from_pylist([row], schema=schema), mode="append")

    def delete(self, table: str, where: str) -> None:
        DeltaTable(self.target(table).location).delete(where)

    def target(self, table: str) -> ReplicationTarget:
        return ReplicationTarget(str(self.folder / table), "r", self.publisher.origin)

    def _apply(self, name: str, read: Batch) -> None:
        while name in read.tables:
            choices = Choices(
                commit_by_commit=True, skip=tuple(self.skipped), in_memory=self.in_memory
            )
            try:
                apply_changes(self.target(name), read.tables[name], read.end[name], choices)
            except ReplicationConflict as error:
                found = POSITION.search(str(error))
                assert found is not None, error
                assert int(found[1]) not in self.skipped, "it stops at what it skips"
                self.skipped.append(int(found[1]))
            else:
                return
