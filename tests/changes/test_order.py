"""The order of rows within a timestamp (R41, R42 of SUBSCRIBE)."""

from __future__ import annotations

import datetime
import functools
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from changes.diffs import KV, chunk, shown
from dagster_streamtables.changes.output.output_options import Term, order_terms, sort_indices
from dagster_streamtables.changes.output.row_encoder import RowEncoder
from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import RefusedOperation

COLUMNS = ["k", "v", "a b", "-v", "p.q"]


@pytest.mark.parametrize(
    ("given", "term"),
    [
        ("k", Term("k")),
        ("K", Term("k")),
        ("k asc", Term("k")),
        ("k DESC", Term("k", True, True)),
        ("k DESC NULLS LAST", Term("k", True, False)),
        ("k nulls first", Term("k", False, True)),
        ("k  ASC  nulls\nLAST ", Term("k")),
        ("-k", Term("k", True, True)),
        ("-k NULLS LAST", Term("k", True, False)),
        ("a b", Term("a b")),
        ("a b desc", Term("a b", True, True)),
        ("`a b` desc", Term("a b", True, True)),
        ('"k" DESC', Term("k", True, True)),
        ("-v", Term("-v")),
        ("p.q DESC", Term("p.q", True, True)),
        ("_diff", Term(WEIGHT)),
        ("mz_diff DESC", Term(WEIGHT, True, True)),
        ("-_diff", Term(WEIGHT, True, True)),
        ("1", Term(WEIGHT)),
        (1, Term(WEIGHT)),
        (2, Term("k")),
        ("3 DESC", Term("v", True, True)),
        (-3, Term("v", True, True)),
        (Term("K", nulls_first=True), Term("k", nulls_first=True)),
        (Term(WEIGHT, True), Term(WEIGHT, True)),
    ],
    ids=str,
)
def test_a_term(given: Any, term: Term) -> None:
    assert order_terms([given], COLUMNS) == (term,)
    assert order_terms(given, COLUMNS) == (term,)


def test_a_column_of_the_relation_comes_before_the_diff_of_that_name() -> None:
    assert order_terms(["_diff", "mz_diff"], ["_diff"]) == (Term("_diff"), Term(WEIGHT))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("x", 'column "x" does not exist'),
        ("`x y`", 'column "x y" does not exist'),
        ("x DESC", 'column "x" does not exist'),
        (Term("x"), 'column "x" does not exist'),
        ("k + 1", 'invalid ORDER BY within a timestamp: "k + 1"'),
        ("_diff + 1 DESC", 'invalid ORDER BY within a timestamp: "_diff + 1"'),
        ("lower(v)", 'invalid ORDER BY within a timestamp: "lower(v)"'),
        ("", 'invalid ORDER BY within a timestamp: ""'),
        ("0", "ORDER BY position 0 is not in the output"),
        (7, "ORDER BY position 7 is not in the output"),
    ],
    ids=str,
)
def test_what_is_no_term(given: Any, message: str) -> None:
    with pytest.raises(RefusedOperation) as told:
        order_terms([given], COLUMNS)
    assert told.value.what == message


def test_an_ambiguous_column_and_a_near_one() -> None:
    with pytest.raises(RefusedOperation, match='column "TWIN" is ambiguous'):
        order_terms("TWIN", ["twin", "Twin"])
    with pytest.raises(RefusedOperation, match='did you mean "amount"'):
        order_terms("amuont", ["id", "amount"])


def test_rows_are_sorted_within_the_timestamp() -> None:
    diffs = chunk(KV, [(1, 2, "b"), (1, 1, "A"), (-1, 1, "a"), (1, None, "c")])

    assert shown(RowEncoder(KV, order_by=["k", "_diff"]), diffs) == [
        (1, -1, 1, "a"), (1, 1, 1, "A"), (1, 1, 2, "b"), (1, 1, None, "c"),
    ]  # fmt: skip
    assert shown(RowEncoder(KV, order_by="-k"), diffs)[0] == (1, 1, None, "c")
    assert shown(RowEncoder(KV, order_by="k DESC NULLS LAST"), diffs)[-1] == (1, 1, None, "c")
    assert shown(RowEncoder(KV, order_by="k NULLS FIRST"), diffs)[0] == (1, 1, None, "c")


def test_each_term_has_its_own_place_for_null() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    rows = [(1, a, b) for a in (None, 1) for b in (None, 2, 3)]

    shape = RowEncoder(schema, order_by=["a NULLS FIRST", "b DESC NULLS LAST"])

    assert [row[2:] for row in shown(shape, chunk(schema, rows))] == [
        (None, 3), (None, 2), (None, None), (1, 3), (1, 2), (1, None),
    ]  # fmt: skip


def test_ties_are_in_the_order_of_the_whole_row_then_the_diff() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int64())), ("c", pa.string())])
    diffs = chunk(schema, [(1, 1, [1], "z"), (2, 1, [2], "y"), (-1, 1, [3], "y")])

    shape = RowEncoder(schema, order_by="a")

    assert shape.ordering == (Term("a"), Term("c"), Term(WEIGHT))  # a list has no order
    assert [row[1] for row in shown(shape, diffs)] == [-1, 2, 1]


def test_the_order_of_several_chunks_is_that_of_spark_and_is_kept() -> None:
    chunks = [chunk(KV, [(1, 2, "b")]), chunk(KV, [(1, 1, "a")])]

    assert [row[2] for row in shown(RowEncoder(KV, order_by="k"), *chunks)] == [2, 1]


VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int8(): [-128, 0, 127],
    pa.int64(): [-(2**63), -1, 0, 2**63 - 1],
    pa.float32(): [-math.inf, -1.5, 0.0, 2.0, math.inf, math.nan],
    pa.float64(): [-math.inf, -1e300, -5e-324, 0.0, 5e-324, math.inf, math.nan],
    pa.decimal128(5, 2): [Decimal("-9.99"), Decimal("0.00"), Decimal("10.00")],
    pa.string(): ["", "A", "Z", "a", "ab", "é", "中", "\U0001f600"],
    pa.binary(): [b"", b"\x00", b"\x7f", b"\x80", b"\xff"],
    pa.date32(): [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)],
    pa.timestamp("us"): [datetime.datetime(1, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)],
    pa.timestamp("us", "UTC"): [
        datetime.datetime(year, 1, 1, tzinfo=ZoneInfo("UTC")) for year in (1, 1970, 9999)
    ],
    pa.duration("us"): [datetime.timedelta(-1), datetime.timedelta(0), datetime.timedelta(1)],
}
"""Of each type that has an order, values that ascend."""


@pytest.mark.parametrize("type_", VALUES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_every_type_that_has_an_order(
    type_: pa.DataType, descending: bool, nulls_first: bool
) -> None:
    values = VALUES[type_]
    shuffled = [*values[1::2], None, *values[::2]]
    schema = pa.schema([("k", type_)])
    table = chunk(schema, [(1, value) for value in shuffled])

    order = sort_indices(table, [Term("k", descending, nulls_first)])

    expected = values[::-1] if descending else values
    expected = [None, *expected] if nulls_first else [*expected, None]
    assert str(table.column("k").take(order).to_pylist()) == str(expected)


def test_what_has_no_order_is_not_sorted_here() -> None:
    schema = pa.schema([("s", pa.struct([("x", pa.int64())])), ("k", pa.int64())])

    with pytest.raises(RefusedOperation, match='column "s" cannot be sorted by'):
        RowEncoder(schema, order_by="s")


ROWS = pa.schema([("a", pa.float64()), ("b", pa.string())])
A_VALUES = st.sampled_from([None, math.nan, 0.0, -0.0, 1.0])
TERMS = st.tuples(st.sampled_from(["a", "b", WEIGHT]), st.booleans(), st.booleans())


@settings(deadline=None, max_examples=200)
@given(
    rows=st.lists(st.tuples(st.integers(-1, 1), A_VALUES, st.sampled_from([None, "", "x", "y"]))),
    terms=st.lists(TERMS.map(lambda parts: Term(*parts)), min_size=1, max_size=3),
)
def test_sorting_equals_comparing_term_by_term(rows: list[Any], terms: list[Term]) -> None:
    numbers = {WEIGHT: 0, "a": 1, "b": 2}

    def compared(one: int, other: int) -> int:
        for term in terms:
            left, right = rows[one][numbers[term.column]], rows[other][numbers[term.column]]
            if left is None or right is None:
                found = ((left is None) - (right is None)) * (-1 if term.nulls_first else 1)
            else:
                found = _compared(left, right) * (-1 if term.descending else 1)
            if found:
                return found
        return one - other

    expected = sorted(range(len(rows)), key=functools.cmp_to_key(compared))

    assert sort_indices(chunk(ROWS, rows), terms).to_pylist() == expected


def _compared(left: Any, right: Any) -> int:
    """NaN is the greatest number, and equal to itself."""
    one, other = (value != value for value in (left, right))
    return one - other if one or other else (left > right) - (left < right)
