"""Folded changes against a plain model that applies one change at a time."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dagster_streamtables.replication.apply.contract import OnConflict
from dagster_streamtables.replication.apply.effect import Bag
from dagster_streamtables.replication.apply.typed_changes import (
    NONE,
    STORED,
    IndexedChanges,
    RowIds,
    net_of,
)

Value = tuple[int, int]
"""The stored row that it was or `NONE`, and the change with its values or `STORED`."""


def changes(chance: random.Random, numbers: int, keyed: bool) -> IndexedChanges:
    op = chance.choices(["insert", "update", "delete", "truncate"], [8, 8, 6, 1], k=12)
    old = [NONE if each in ("insert", "truncate") else chance.randrange(numbers) for each in op]
    new = [NONE if each in ("delete", "truncate") else chance.randrange(numbers) for each in op]
    return IndexedChanges(np.array(op, object), np.array(old), np.array(new), [None] * len(op))


def one_by_one(
    given: IndexedChanges, rows: dict[int, Value], policy: OnConflict
) -> tuple[dict[int, Value], Counter[str]]:
    """PostgreSQL's rules, and those of the policies."""
    counts: Counter[str] = Counter()
    for i, (op, old, new) in enumerate(zip(given.op, given.old, given.new, strict=True)):
        if op == "truncate":
            rows = {}
        elif op == "insert":
            counts["insert_exists"] += new in rows
            if new not in rows or policy == "apply":
                rows[new] = (rows[new][0] if new in rows else NONE, i)
        elif old not in rows:
            counts[f"{op}_missing"] += 1
            if op == "update" and policy == "apply":
                rows[new] = (rows[new][0] if new in rows else NONE, i)
        elif op == "delete":
            del rows[old]
        elif new != old and new in rows:
            counts["update_exists"] += 1
            if policy == "apply":
                rows[new] = (rows.pop(old)[0], i)
        else:
            rows[new] = (rows.pop(old)[0], i)
    return rows, +counts


@pytest.mark.parametrize("policy", ["error", "apply", "skip"])
def test_a_fold_leaves_the_rows_that_one_change_after_the_other_leaves(policy: OnConflict) -> None:
    for seed in range(400):
        chance = random.Random(seed)
        given, stored = changes(chance, 5, True), [chance.random() < 0.5 for _ in range(5)]
        rows = {n: (n, STORED) for n in range(5) if stored[n]}

        net = net_of(given, np.array(stored), policy)

        expected, counts = one_by_one(given, dict(rows), policy)
        touched = {row.origin for row in net.rows} | set(net.gone)
        left = {} if net.truncated else {n: r for n, r in rows.items() if n not in touched}
        found = Counter([*left.values(), *((row.origin, row.change) for row in net.rows)])
        assert found == Counter(expected.values()), seed
        assert net.conflicts.counts == counts, seed


def test_values_that_a_publisher_does_not_tell_come_from_the_row_before() -> None:
    op = np.array(["insert", "update", "update"], object)
    given = IndexedChanges(op, np.array([NONE, 0, 1]), np.array([0, 0, 2]), [None, [1], [1]])

    rows = net_of(given, np.array([False, True, False]), "error").rows

    assert [(r.origin, r.change, r.columns) for r in rows] == [(NONE, 1, {1: 0}), (1, 2, {1: -1})]


@pytest.mark.parametrize("wins", [True, False])
def test_equal_rows_are_counted(wins: bool) -> None:
    for seed in range(400):
        chance = random.Random(seed)
        given = changes(chance, 3, False)
        stored = {n: list(range(n * 3, n * 3 + chance.randrange(3))) for n in range(3)}
        bag = Bag(stored, wins)
        bag.fold(given)

        model = Counter({n: len(there) for n, there in stored.items()})
        for op, old, new in zip(given.op, given.old, given.new, strict=True):
            if op == "truncate":
                model.clear()
            elif op == "insert" or model[old] or (op == "update" and wins):
                model[old] -= op != "insert" and model[old] > 0
                model[new] += op != "delete"
        touched = [row for rows in bag.rows.values() for row in rows if row.change != STORED]
        stored_left = (
            []
            if bag.truncated
            else [n for n, there in stored.items() for index in there if index not in bag.left]
        )
        found = Counter([*stored_left, *(int(given.new[row.change]) for row in touched)])
        assert found == +Counter({k: v for k, v in model.items() if k >= 0})


NAN = math.nan
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [3, None, 3, 0, None]),
    "floats": (pa.float64(), [NAN, None, NAN, 0.0, None]),
    "texts": (pa.string(), ["it's", None, "it's", "", None]),
    "bytes": (pa.binary(), [b"\0", None, b"\0", b"", None]),
    "decimals": (pa.decimal128(38, 18), [Decimal("1.5"), None, Decimal("1.50"), Decimal(0), None]),
    "times": (
        pa.timestamp("us", "UTC"),
        [datetime(2024, 1, 1, tzinfo=UTC), None, datetime(2024, 1, 1, tzinfo=UTC),
         datetime(9999, 12, 31, tzinfo=UTC), None],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("type_", "values"), COLUMNS.values(), ids=COLUMNS)
def test_equal_rows_have_one_number_nulls_and_nans_too(type_: pa.DataType, values: Any) -> None:
    rows = pa.table({"a": pa.array(values, type_), "b": pa.array([1, 1, 1, 1, 1])})
    ids = RowIds([rows])

    numbers = ids.of(rows).tolist()

    assert ids.count == 3
    assert sorted(set(numbers)) == [0, 1, 2]
    assert numbers[0] == numbers[2] and numbers[1] == numbers[4]


def test_rows_of_two_columns_that_share_values_are_not_mixed_up() -> None:
    known = [pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"]}), pa.table({"a": [2], "b": ["x"]})]
    ids = RowIds(known)

    found = ids.of(pa.table({"a": [1, 1, 2, 2, 3, 1], "b": ["x", "y", "x", "y", "x", None]}))

    assert ids.count == 3
    assert len(set(found.tolist()[:3])) == 3
    assert found.tolist()[3:] == [-1, -1, -1]


@pytest.mark.parametrize("differ", [True, False])
def test_zeros_of_both_signs(differ: bool) -> None:
    rows = pa.table({"a": [0.0, -0.0]})
    assert RowIds([rows], zeros_differ=differ).count == (2 if differ else 1)


def test_nothing_is_known_of_no_rows() -> None:
    ids = RowIds([pa.table({"a": pa.array([], pa.int64())})])
    assert (ids.count, ids.of(pa.table({"a": [1]})).tolist()) == (0, [-1])
