"""A replica in memory: plain rows that follow a publisher, change by change.

The values of a row are in the order of the names of its columns, never in that of the publisher.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import named_rows
from dagster_streamtables import Lake, Publication, PublicationEntry, Publications
from dagster_streamtables.replication.lake.lake_publisher import LakePublisher
from dagster_streamtables.replication.model.replication_model import (
    Batch,
    Operation,
    PublishedTable,
    TableChanges,
)

Row = tuple[Any, ...]
T = "public.t"
KEYED = PublicationEntry("t", key=("k",))
NOBODY = "sc://nobody.invalid"
"""No row is read by Spark."""


def publish(lake: Lake, *entries: PublicationEntry, name: str = "p", **more: Any) -> None:
    Publications(lake.root).create(Publication(name, entries, **more))


def publisher(lake: Lake, *names: str, **more: Any) -> LakePublisher:
    return LakePublisher(lake.root, names or ("p",), spark=lake.access.spark or NOBODY, **more)


@dataclass
class Replica:
    """Applies changes strictly: what does not fit its rows is an error."""

    publisher: LakePublisher
    slot: str = "replica"
    lenient: bool = False
    """Whether rows may be missing or there already, since not every operation is published."""
    rows: dict[str, Counter[Row]] = field(default_factory=dict)
    at: dict[str, int] = field(default_factory=dict)
    confirmed: str | None = None

    def copy(self, *tables: str) -> Replica:
        chosen = tables or tuple(self.publisher.offer().require())
        with self.publisher.copy(self.slot, chosen) as copy:
            for name in chosen:
                self.rows[name] = Counter(tuples(copy.rows(name).read_all()))
                self.at[name] = copy.position(name)
        return self

    def follow(self, max_rows: int = 1_000_000, *, confirm: bool = True) -> list[Batch]:
        """Read and apply until nothing is left."""
        batches: list[Batch] = []
        while not batches or not batches[-1].complete:
            batches.append(self.step(max_rows))
        if confirm:
            self.confirmed = self.publisher.confirm(self.slot, self.at)
        return batches

    def step(self, max_rows: int = 1_000_000) -> Batch:
        batch = self.publisher.read(self.slot, self.at, self.confirmed, max_rows=max_rows).require()
        for name, changes in batch.tables.items():
            self._apply(name, changes)
        self.at |= batch.end
        return batch

    def _apply(self, name: str, changes: TableChanges) -> None:
        rows, table = self.rows[name], changes.table
        for op, old, new in told(changes):
            if op == "truncate":
                rows.clear()
            elif op == "insert":
                assert new is not None
                self._insert(rows, table, new)
            else:
                there = self._take(rows, table, key_of(table, new) if old is None else old, op)
                if there and new is not None:
                    self._insert(rows, table, new)

    def _insert(self, rows: Counter[Row], table: PublishedTable, new: Row) -> None:
        if table.identity is not None:
            there = find(rows, table, key_of(table, new))
            assert there is None or self.lenient, f"{new} is there already"
            if there is not None:
                del rows[there]
        rows[new] += 1

    def _take(self, rows: Counter[Row], table: PublishedTable, key: Row, op: str) -> bool:
        there = find(rows, table, key)
        assert there is not None or self.lenient, f"{op}: {key} is not there"
        if there is not None:
            rows[there] -= 1
            if not rows[there]:
                del rows[there]
        return there is not None


def find(rows: Counter[Row], table: PublishedTable, key: Row) -> Row | None:
    """NaN is equal to itself here, and -0.0 is not 0.0."""
    return next((row for row in rows if repr(key_of(table, row)) == repr(key)), None)


def key_of(table: PublishedTable, row: Row | None) -> Row:
    assert row is not None
    if table.identity is None:
        return row
    names = sorted(table.schema.names)
    return tuple(row[names.index(name)] for name in sorted(table.identity))


def told(changes: TableChanges) -> Iterator[tuple[str, Row | None, Row | None]]:
    """Operation, identity before, row after."""
    for row in changes.rows.to_pylist():
        yield row["op"], _by_name(row["old"]), _by_name(row["new"])


def _by_name(row: dict[str, Any] | None) -> Row | None:
    return None if row is None else tuple(row[name] for name in sorted(row))


def ops(batches: list[Batch], name: str) -> list[tuple[Any, ...]]:
    """All changes of a table: operation, transaction's position, identity before, row after."""
    found = []
    for changes in (batch.tables[name] for batch in batches if name in batch.tables):
        at = [changes.positions[i] for i in changes.rows["transaction"].to_pylist()]
        found += [(op, v, old, new) for v, (op, old, new) in zip(at, told(changes), strict=True)]
    return found


def replica_of(
    lake: Lake, *entries: PublicationEntry, operations: Any = Operation, **more: Any
) -> Replica:
    publish(lake, *entries, operations=operations)
    return Replica(publisher(lake, **more)).copy()


def tuples(table: pa.Table) -> list[Row]:
    return named_rows.tuples(table.select(sorted(table.column_names)))
