"""The rows that one commit added and removed → the operations that a rule publishes of them."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.replication.lake.shown_rows import flag
from dagster_streamtables.replication.lake.shown_table import ShownTable
from dagster_streamtables.replication.model.publisher import (
    Operation,
    PublishedTable,
    change_schema,
)
from dagster_streamtables.runtime.delta.arrow import times_as_numbers

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowChanges:
    """The changes of the rows of one commit.

    A commit says which rows went and which came. Two of one key are an update of that row. Without
    a key, or where the key itself changed, one row goes and another comes: in a commit that says
    that it is an UPDATE they are published as updates are, in another as deletes and inserts.
    """

    shown: ShownTable
    rows: pa.Table
    """The columns that are read, the flags, and the weight."""
    updates: bool = False
    """Whether the commit says that it is an UPDATE."""

    def published(self) -> pa.Table:
        """The columns of `change_schema` but for the transaction. Deletes come first and inserts
        last, so that at no moment two rows have one key."""
        old, new = self._pairs
        before, after = self._chosen(Operation.UPDATE, old), self._chosen(Operation.UPDATE, new)
        gone = np.concatenate([self._alone(Operation.DELETE, -1, old), old[before & ~after]])
        came = np.concatenate([self._alone(Operation.INSERT, 1, new), new[after & ~before]])
        return self._told(gone, new[before & after], came)

    def _copies(self, sign: int) -> np.ndarray:
        """The indices of the rows that went or came, one for each copy."""
        weights = self.rows.column(WEIGHT).to_numpy() * sign
        found = np.flatnonzero(weights > 0)
        return np.repeat(found, weights[found])

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the old rows and of the new rows of updates."""
        old, new = self._copies(-1), self._copies(1)
        pairs: list[tuple[int, int]] = []
        if self.shown.key and len(old) and len(new):
            waiting: defaultdict[Any, list[int]] = defaultdict(list)
            for index, key in zip(old.tolist(), self._keys(old), strict=True):
                waiting[key].append(index)
            for index, key in zip(new.tolist(), self._keys(new), strict=True):
                if waiting.get(key):
                    pairs.append((waiting[key].pop(), index))
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _keys(self, indices: np.ndarray) -> Iterator[tuple[Any, ...]]:
        keys = self.rows.select(list(self.shown.key or ())).take(indices)
        return zip(*(times_as_numbers(each).to_pylist() for each in keys.columns), strict=True)

    def _alone(self, operation: Operation, sign: int, paired: np.ndarray) -> np.ndarray:
        """The rows without a partner that are published."""
        copies = np.bincount(self._copies(sign), minlength=self.rows.num_rows)
        left = copies - np.bincount(paired, minlength=self.rows.num_rows)
        alone = np.repeat(np.arange(self.rows.num_rows), left)
        return alone[self._chosen(Operation.UPDATE if self.updates else operation, alone)]

    def _chosen(self, operation: Operation, indices: np.ndarray) -> np.ndarray:
        """Which of some rows an operation is published of."""
        where = self.shown.rule.filters.get(operation)
        if not where:
            return np.full(len(indices), where is not None)
        number = self.shown.rule.all_filters.index(where)
        return self.rows.column(flag(number)).to_numpy().astype(bool)[indices]

    def _told(self, gone: np.ndarray, updated: np.ndarray, came: np.ndarray) -> pa.Table:

        table, n = self.shown.published, len(gone) + len(updated) + len(came)
        ops = ["delete"] * len(gone) + ["update"] * len(updated) + ["insert"] * len(came)
        there = self.rows.select(table.schema.names).cast(table.schema)
        old = _structs(there.select(_identity(table)), gone, behind=n - len(gone))
        new = _structs(there, np.concatenate([updated, came]), before=len(gone))
        return told(table, ops, old, new)


def truncated(table: PublishedTable) -> pa.Table:
    """A truncate, as `RowChanges.published` gives changes of rows."""
    schema = change_schema(table)
    nothing = [_nulls(schema.field(name).type, 1) for name in ("old", "new")]
    return told(table, ["truncate"], *nothing)


def told(table: PublishedTable, ops: Sequence[str], old: Any, new: Any) -> pa.Table:
    import pyarrow as pa

    schema = change_schema(table)
    schema = schema.remove(schema.get_field_index("transaction"))
    unchanged = _nulls(schema.field("unchanged").type, len(ops))
    return pa.Table.from_arrays([pa.array(ops, pa.string()), old, new, unchanged], schema=schema)


def _identity(table: PublishedTable) -> list[str]:
    return table.schema.names if table.identity is None else list(table.identity)


def _structs(rows: pa.Table, indices: np.ndarray, *, before: int = 0, behind: int = 0) -> Any:
    """Some rows as structs, with NULLs before or behind them."""
    import pyarrow as pa

    fields = [field.with_nullable(True) for field in rows.schema]
    columns = [column.combine_chunks() for column in rows.take(indices).columns]
    columns = [c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns]
    found = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.chunked_array([_nulls(found.type, before), found, _nulls(found.type, behind)])


def _nulls(type_: pa.DataType, count: int) -> Any:
    import pyarrow as pa

    return pa.nulls(count, type_)
