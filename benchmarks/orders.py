"""The sources of the benchmark, and the windows that change them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

FEED = {"delta.enableChangeDataFeed": "true"}
CUSTOMERS, REGIONS, FILES = 50_000, 25, 16
COLUMNS = ("id", "customer", "amount", "note")


class Orders:
    """`orders`, in the order of its keys until scattered ones change, and `customers`."""

    def __init__(self, location: str, customers: str, rows: int) -> None:
        self.location, self.rows = location, rows
        self._random = np.random.default_rng(1)
        self._next = rows
        for ids in np.array_split(np.arange(rows), FILES):
            write_deltalake(location, self._rows(ids), mode="append", configuration=FEED)
        self._live = np.arange(rows)
        write_deltalake(customers, _customers(), configuration=FEED)

    @property
    def version(self) -> int:
        return DeltaTable(self.location).version()

    def append(self, count: int) -> None:
        """Insert so many orders, in one commit."""
        ids = np.arange(self._next, self._next + count)
        self._next += count
        self._live = np.concatenate([self._live, ids])
        write_deltalake(self.location, self._rows(ids), mode="append")

    def change(self, count: int, *, scattered: bool) -> None:
        """Insert, update, and delete a third of `count` orders each, in one commit.

        Those that are updated and deleted are the newest, or drawn from all.
        """
        third = max(1, count // 3)
        inserted = np.arange(self._next, self._next + max(1, count - 2 * third))
        self._next = int(inserted[-1]) + 1
        size = len(self._live)
        if scattered:
            places = self._random.choice(size, 2 * third, replace=False)
        else:
            places = np.arange(size - 2 * third, size)
        updated, deleted = self._live[places[:third]], self._live[places[third:]]
        self._live = np.concatenate([np.delete(self._live, places[third:]), inserted])
        ids = np.concatenate([inserted, updated, deleted])
        gone = np.repeat([False, True], [len(inserted) + third, third])
        source = self._rows(ids).append_column("gone", pa.array(gone))
        columns = {name: f"s.{name}" for name in COLUMNS}
        matched = DeltaTable(self.location).merge(
            source, f"t.id >= {ids.min()} AND t.id = s.id", source_alias="s", target_alias="t"
        )
        matched = matched.when_matched_delete("s.gone")
        matched = matched.when_matched_update(columns, "NOT s.gone")
        matched.when_not_matched_insert(columns, "NOT s.gone").execute()

    def _rows(self, ids: np.ndarray) -> pa.Table:
        size = len(ids)
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "customer": pa.array(self._random.integers(0, CUSTOMERS, size), pa.int64()),
                "amount": pa.array(self._random.integers(0, 1000, size), pa.int32()),
                "note": pa.array([f"note {i % 1000}" for i in range(size)]),
            }
        )


def _customers() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(CUSTOMERS), pa.int64()),
            "region": pa.array([f"region {i % REGIONS}" for i in range(CUSTOMERS)]),
        }
    )
