"""Rows are numbered by their values, whatever the values are."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dagster_streamtables.replication.apply.typed_changes import RowIds

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
