"""Number rows by their values, so that what happened to them is told by numbers alone."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


class RowIds:
    """The distinct rows of some tables with equal columns; NULLs and NaNs are equal."""

    def __init__(self, tables: Sequence[pa.Table], *, zeros_differ: bool = False) -> None:
        """
        Args:
            tables: The rows to number, in plain columns without nesting.
            zeros_differ: Whether -0.0 is another value than 0.0. PostgreSQL's keys equate them.
        """
        import pyarrow as pa

        self._zeros_differ = zeros_differ
        known = pa.concat_tables(tables)
        self._values = [self._plain(column).unique() for column in known.columns]
        self._combined: list[np.ndarray] = []
        combined = np.zeros(known.num_rows, np.int64)
        for values, column in zip(self._values, known.columns, strict=True):
            combined = combined * len(values) + self._codes(column, values)
            self._combined.append(np.unique(combined))
            combined = np.searchsorted(self._combined[-1], combined)
        self.count = len(self._combined[-1]) if self._combined else 0

    def of(self, rows: pa.Table) -> np.ndarray:
        """For each row its number, from 0; -1 if it is none of the known."""
        numbers, there = np.zeros(rows.num_rows, np.int64), np.ones(rows.num_rows, bool)
        for values, known, column in zip(self._values, self._combined, rows.columns, strict=True):
            codes = self._codes(column, values)
            there &= codes >= 0
            wanted = numbers * len(values) + codes
            numbers = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
            there &= known[numbers] == wanted if len(known) else False
        return np.where(there, numbers, -1)

    def _codes(self, column: pa.ChunkedArray, values: pa.Array) -> np.ndarray:
        import pyarrow.compute as pc

        found = pc.index_in(self._plain(column), value_set=values)
        return pc.fill_null(found, -1).to_numpy().astype(np.int64)

    def _plain(self, column: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._zeros_differ or not pa.types.is_floating(column.type):
            return column
        return pc.add(column, pa.scalar(0.0, column.type))
