"""64 bits for each row, and which of them two tables do not have as often as each other."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dagster_streamtables.replication.apply.told import comparable

if TYPE_CHECKING:
    import pyarrow as pa

_NULL = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def digests(rows: pa.Table) -> np.ndarray:
    """NaN equals NaN, and 0.0 equals -0.0, as in a key."""
    found = np.zeros(rows.num_rows, np.uint64)
    for column in comparable(rows).columns:
        null = column.is_null().to_numpy()
        found = _mixed(found * np.uint64(3) + np.where(null, _NULL, _mixed(_bits(column))))
    return found


def difference(
    expected: Sequence[np.ndarray], actual: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The digests that occur more often on one side, and how much more often: below 0 for those
    that occur more often in `actual`."""
    both = np.concatenate([np.zeros(0, np.uint64), *expected, *actual])
    sign = np.ones(len(both), np.int64)
    sign[sum(map(len, expected)) :] = -1
    order = np.argsort(both, kind="stable")
    both, sign = both[order], sign[order]
    starts = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]])[: len(both)])
    if not len(starts):
        return both, sign
    counts = np.add.reduceat(sign, starts)
    differs = counts != 0
    return both[starts][differs], counts[differs]


def _mixed(values: np.ndarray) -> np.ndarray:
    """SplitMix64: each bit of a value decides half of the bits of the result."""
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    return values ^ (values >> np.uint64(31))


def _bits(column: pa.ChunkedArray) -> np.ndarray:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    type_: Any = column.type
    if pa.types.is_floating(type_):
        floats = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy() + 0.0
        return np.where(np.isnan(floats), np.nan, floats).view(np.uint64)
    if pa.types.is_date32(type_) or pa.types.is_boolean(type_):
        column = column.cast(pa.int32() if pa.types.is_date32(type_) else pa.int8())
    if pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type):
        return pc.fill_null(column.cast(pa.int64()), 0).to_numpy().view(np.uint64)
    if not pa.types.is_binary(type_):
        column = column.cast(pa.string())
    values = pc.fill_null(column, b"" if pa.types.is_binary(type_) else "")
    return pd.util.hash_array(values.to_numpy(zero_copy_only=False), categorize=False)
