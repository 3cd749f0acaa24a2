"""The changes of single transactions of a batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dagster_streamtables.replication.model.batch import TableChanges

if TYPE_CHECKING:
    import pyarrow as pa


def changes_after(changes: TableChanges, position: int | None, skip: Collection[int]) -> pa.Table:
    """The changes of later transactions, without those that are skipped."""
    wanted = [
        each.position not in skip and (position is None or each.position > position)
        for each in changes.transactions
    ]
    first = wanted.index(True) if any(wanted) else len(wanted)
    if all(wanted[first:]):  # a view of rows that may be many
        return changes.rows.slice(int(np.searchsorted(_transaction(changes), first)))
    return changes.rows.filter(np.array(wanted)[_transaction(changes)])


def by_transaction(changes: TableChanges, end: int) -> Iterator[tuple[TableChanges, int]]:
    """Each transaction by itself, and its position; the last one reaches `end`."""
    last = len(changes.transactions) - 1
    if last < 0:
        yield changes, end
    transaction = _transaction(changes)
    for i, each in enumerate(changes.transactions):
        first, after = np.searchsorted(transaction, [i, i + 1]).tolist()
        rows = changes.rows.slice(first, after - first)
        yield replace(changes, rows=rows), end if i == last else each.position


def _transaction(changes: TableChanges) -> np.ndarray:
    return changes.rows.column("transaction").to_numpy()
