"""`RowDigests`: the rows that were added so far, in 16 bytes each."""

from __future__ import annotations

from typing import Any

from dagster_streamtables.replication.apply.typed_changes import comparable
from dagster_streamtables.runtime.delta.arrow import LazyModule, np, pa, pc

hashing: Any = LazyModule("pandas.util")

_KEYS = "0123456789abcdef", "fedcba9876543210"
_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class RowDigests:
    """Rows of a table without nested columns; NULL equals NULL, NaN NaN, and 0.0 -0.0."""

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []
        """Digests (see `_digests`) in their order."""

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, rows: pa.Table) -> np.ndarray:
        """Add rows, and return which of them are repetitions, of earlier rows or of each other."""
        digests = _digests(rows)
        order = _order(digests)
        found = self._has(digests)
        ordered = digests.take(order, axis=1)
        again = np.zeros(len(order), bool)
        again[1:] = (ordered[:, 1:] == ordered[:, :-1]).all(axis=0)
        found[order[again]] = True
        self._keep(ordered.compress(~again & ~found[order], axis=1))
        return found

    def has(self, rows: pa.Table) -> np.ndarray:
        return self._has(_digests(rows))

    def _has(self, digests: np.ndarray) -> np.ndarray:
        found = np.zeros(digests.shape[1], bool)
        for run in self._runs:
            found |= _among(run, digests)
        return found

    def _keep(self, run: np.ndarray) -> None:
        """Runs are merged as they grow, so that there are few, and each row is moved seldom."""
        if not run.size:
            return
        while self._runs and self._runs[-1].size <= 2 * run.size:
            both = np.concatenate([self._runs.pop(), run], axis=1)
            run = both.take(_order(both), axis=1)
        self._runs.append(run)


def _order(digests: np.ndarray) -> np.ndarray:
    return np.lexsort(digests[::-1])


def _among(run: np.ndarray, digests: np.ndarray) -> np.ndarray:
    """Which digests are in a run."""
    at = np.searchsorted(run[0], digests[0])
    last = run.shape[1] - 1
    while True:
        near = np.minimum(at, last)
        same = (at <= last) & (run[0, near] == digests[0])
        found = same & (run[1, near] == digests[1])
        if np.array_equal(found, same):
            return found
        # Another row has the same first half.
        at = at + (same & ~found)


def hashes(rows: pa.Table) -> np.ndarray:
    """64 well mixed bits of each row; rows that are equal to `RowDigests` have equal ones."""
    first, second = _digests(rows)
    return _mix(first) ^ second


def _mix(values: np.ndarray) -> np.ndarray:
    """SplitMix64: each bit of a value decides half of the bits of the result."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _digests(rows: pa.Table) -> np.ndarray:
    """128 bits of each row, in two halves: rows of 64 bits."""
    first, second = np.zeros((2, rows.num_rows), np.uint64)
    for column in comparable(rows).columns:
        halves = _halves(column)
        first = first * _ODD[0] + halves[0]
        second = (second ^ (second >> np.uint64(31))) * _ODD[1] + halves[1]
    return np.stack([first, second])


def _halves(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Two hashes of each value, which differ for each number."""
    null = column.is_null().to_numpy()
    values = _own_bits(column)
    if values is not None:
        first, second = values, values * _ODD[1] + np.uint64(1)
    else:
        if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
            column = column.cast(pa.string())
        objects = pc.fill_null(column, "" if pa.types.is_string(column.type) else b"")
        values = objects.to_numpy(zero_copy_only=False)
        first, second = (
            hashing.hash_array(values, hash_key=key, categorize=False) for key in _KEYS
        )
    return np.where(null, np.uint64(0), first), np.where(null, np.uint64(0), second)


def _own_bits(column: pa.ChunkedArray) -> np.ndarray | None:
    """Each value as its own 64 bits; None if the type has more."""

    type_: Any = column.type
    if pa.types.is_floating(type_):
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy() + 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    if pa.types.is_date32(type_) or pa.types.is_boolean(type_):
        column = column.cast(pa.int32() if pa.types.is_date32(type_) else pa.int8())
    elif not (pa.types.is_integer(type_) or pa.types.is_timestamp(type_)):
        return None
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy().view(np.uint64)
