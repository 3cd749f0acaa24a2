"""`StoredRows`: the rows of a target that changes may be about, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


class StoredRows(Protocol):
    def touched(
        self, names: Sequence[str], wanted: pa.Table, is_wanted: Callable[[pa.Table], np.ndarray]
    ) -> pa.Table:
        """The rows that a predicate chooses.

        Args:
            names: The columns to read.
            wanted: The values of the rows that may be chosen, in some of the columns: what is known
                to be without them is not read.
            is_wanted: Says of each row whether it is.
        """
        ...


@dataclass(frozen=True)
class RowsAtHand:
    """Rows that were read before, in all columns that may be asked for."""

    rows: pa.Table

    def touched(
        self, names: Sequence[str], wanted: pa.Table, is_wanted: Callable[[pa.Table], np.ndarray]
    ) -> pa.Table:
        rows = self.rows.select(list(names))
        return rows.filter(is_wanted(rows)).combine_chunks()
