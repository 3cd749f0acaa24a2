"""`Contents`: the rows of a relation now, by adding up what came and went."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from dagster_streamtables.changes.output.row_formats import texts
from dagster_streamtables.runtime.delta.arrow import pa, times_as_numbers

Row: TypeAlias = tuple[str | None, ...]


@dataclass
class Copies:
    """A row and its number of copies."""

    texts: Row
    count: int
    order: tuple[Any, ...]
    since: int
    """The timestamp of its last insertion or change of count."""


class Contents:
    """The sum of a subscription without an envelope and without progress, from its snapshot on.

    Attributes:
        timestamp: Of the last row that was added; None before the first.
        count: The number of rows, counting copies.
    """

    _LEADING = 2

    def __init__(self, schema: pa.Schema) -> None:
        """Args: schema: The schema of the subscription."""
        self.names = schema.names[self._LEADING :]
        self._compared = [_is_comparable(type_) for type_ in schema.types[self._LEADING :]]
        self._rows: dict[Row, Copies] = {}
        self.timestamp: int | None = None
        self.count = 0

    def clear(self) -> None:
        """Forget all rows: a new snapshot replaces them."""
        self._rows.clear()
        self.count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        columns = batch.columns[self._LEADING :]
        keys = zip(*(texts(column).to_pylist() for column in columns), strict=True)
        values = zip(*map(self._orders, columns, self._compared), strict=True)
        stamps, diffs = (column.to_pylist() for column in batch.columns[: self._LEADING])
        for key, order, stamp, diff in zip(keys, values, stamps, diffs, strict=True):
            row = self._rows.setdefault(key, Copies(key, 0, order, stamp))
            row.count, row.since = row.count + diff, stamp
            self.count += diff
            if not row.count:
                del self._rows[key]
            self.timestamp = stamp

    def first(self, number: int) -> list[Copies]:
        """The first distinct rows, in the order of their columns from left to right."""
        return heapq.nsmallest(number, self._rows.values(), key=lambda row: row.order)

    def __len__(self) -> int:
        """The number of distinct rows."""
        return len(self._rows)

    @staticmethod
    def _orders(column: pa.Array, compared: bool) -> Iterator[tuple[int, Any]]:
        """The sort keys of rows: values that can be compared, or texts; NaN is the greatest number,
        and NULL is last."""
        for value in (times_as_numbers(column) if compared else texts(column)).to_pylist():
            if value is None or value != value:
                yield (2 if value is None else 1), 0
            else:
                yield 0, value


def _is_comparable(type_: pa.DataType) -> bool:
    types = pa.types
    kinds = (types.is_integer, types.is_floating, types.is_decimal, types.is_date)
    return any(is_it(type_) for is_it in kinds)
