"""The ranges in which local values lie, as a plan names them."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from dagster_streamtables.runtime.delta.key_lookup import bounds


def ranges(values: list[object], type_: pa.DataType | None = None) -> list[str] | None:
    found = bounds(pa.chunked_array([pa.array(values, type_)]))
    return found and [f"{low.sql('spark')}..{high.sql('spark')}" for low, high in found.ranges]


def test_few_values_are_a_range_each() -> None:
    assert ranges([5, -3, 5]) == ["-3..-3", "5..5"]
    assert ranges(["it's", "a\\b"]) == [r"'a\\b'..'a\\b'", r"'it\'s'..'it\'s'"]
    day = "CAST('2026-11-22' AS DATE)"
    assert ranges([date(2026, 11, 22)]) == [f"{day}..{day}"]


def test_many_are_ranges_with_wide_gaps_between() -> None:
    newest = range(1_000_000, 1_000_100)
    assert ranges([7, *newest, 8]) == ["7..8", "1000000..1000099"]
    assert ranges(list(range(0, 900, 3))) == ["0..897"]
    assert ranges([chr(97 + i) for i in range(20)]) == ["'a'..'t'"]


def test_no_range_begins_with_a_day_that_spark_moves_where_it_reads_parquet() -> None:
    days = [date(1582, 10, n) for n in (10, 14)]
    assert ranges(days[:1]) == ["CAST('1582-10-04' AS DATE)..CAST('1582-10-10' AS DATE)"]
    assert ranges([date(1582, 10, 4), days[1], date(1582, 10, 15)]) == [
        f"CAST('1582-10-{low}' AS DATE)..CAST('1582-10-{high}' AS DATE)"
        for low, high in (("04", "04"), ("04", "14"), ("15", "15"))
    ]


def test_nulls_are_told_apart() -> None:
    for values, null in (([None, 1], True), ([1], False), ([None], True), ([], False)):
        found = bounds(pa.chunked_array([pa.array(values, pa.int32())]))
        assert found is not None
        assert found.null is null
        assert len(found.ranges) == (1 in values)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.5, float("nan")]),
        pa.array(["x" * 300]),
        pa.array([3_000_000], pa.date32()),
        pa.array([True]),
    ],
    ids=["floats", "a long text", "a year that no literal has", "booleans"],
)
def test_where_no_literal_says_it_there_are_none(values: pa.Array) -> None:
    assert bounds(pa.chunked_array([values])) is None
