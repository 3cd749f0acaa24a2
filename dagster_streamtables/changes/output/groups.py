"""Rows that are sorted by key and diff → what happened to each key."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

INSERT, UPDATE, DELETE, VIOLATION = range(4)
"""The cases of a group, by their places in `Envelope.states`."""

ENOUGH = 3
"""A group of three rows violates the key, whatever follows."""


@dataclass(frozen=True)
class Groups:
    """For each key, numbers of rows: NULL where there is none."""

    first: pa.Array
    before: pa.Array
    after: pa.Array
    case: pa.Array
    ascending: bool = True
    """Whether the numbers ascend; else the rows themselves are not sorted."""

    def __len__(self) -> int:
        return len(self.first)

    def slice(self, start: int, length: int) -> Groups:
        parts = (self.first, self.before, self.after, self.case)
        return Groups(*(part.slice(start, length) for part in parts), ascending=self.ascending)

    def through(self, order: pa.Array) -> Groups:
        """The same groups, of rows that are not sorted but have this order."""
        return Groups(
            order.take(self.first),
            order.take(self.before),
            order.take(self.after),
            self.case,
            ascending=False,
        )

    def gather(self, values: pa.Array, numbers: pa.Array) -> pa.Array:
        """The values of the rows with these numbers, which are some of the groups'.

        Nothing is copied where each row is a group, as in a snapshot.
        """
        if self.ascending and len(numbers) and not numbers.null_count:
            first, last = numbers[0].as_py(), numbers[-1].as_py()
            if last - first == len(numbers) - 1:
                return values.slice(first, len(numbers))
        return values.take(numbers)


def groups_of(keys: Sequence[pa.Array], diffs: pa.Array) -> Groups:
    """The groups of rows that are sorted by their keys, and within a key by their diffs."""
    first = _starts(keys)
    end = pa.concat_arrays([first.slice(1), pa.array([len(diffs)], pa.uint64())])
    last = pc.subtract(end, pa.scalar(1, pa.uint64()))
    size = pc.subtract(end, first)
    lowest, highest = diffs.take(first), diffs.take(last)
    alone, pair = pc.equal(size, 1), pc.equal(size, 2)
    came = pc.and_(alone, pc.equal(highest, 1))
    went = pc.and_(alone, pc.equal(lowest, -1))
    replaced = pc.and_(pair, pc.and_(pc.equal(lowest, -1), pc.equal(highest, 1)))
    case = pc.if_else(came, INSERT, pc.if_else(replaced, UPDATE, pc.if_else(went, DELETE, 3)))
    nothing = pa.scalar(None, pa.uint64())
    return Groups(
        first,
        before=pc.if_else(pc.or_(went, replaced), first, nothing),
        after=pc.if_else(pc.or_(came, replaced), last, nothing),
        case=case,
    )


def _starts(keys: Sequence[pa.Array]) -> pa.Array:
    """The numbers of the rows that have another key than the row before them."""
    differs = reduce(pc.or_, (_differs(values) for values in keys))
    begin = pa.array([True])
    return pc.indices_nonzero(pa.chunked_array([begin, differs]))


def _differs(values: pa.Array) -> pa.Array:
    """Whether each value but the first is distinct from the one before it.

    NULL equals NULL and NaN equals NaN, as they do in Spark's groups.
    """
    if values.null_count == len(values):
        return pa.repeat(pa.scalar(False), len(values) - 1)
    ahead, behind = values.slice(1), values.slice(0, len(values) - 1)
    differs = pc.not_equal(ahead, behind)
    if pa.types.is_floating(values.type):
        both = pc.and_(pc.is_nan(ahead), pc.is_nan(behind))
        differs = pc.and_not(differs, both)
    if not values.null_count:
        return differs
    # NULL where either is: then they differ if only one is.
    return pc.coalesce(differs, pc.xor(pc.is_null(ahead), pc.is_null(behind)))
