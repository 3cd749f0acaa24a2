"""The columns and batches of raw output (R1 to R8, R22 to R27 of SUBSCRIBE)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from changes.diffs import KV, chunk, shown, tuples
from dagster_streamtables import Debezium, Upsert
from dagster_streamtables.changes.output.row_encoder import RowEncoder
from dagster_streamtables.compiler import WEIGHT
from dagster_streamtables.errors import RefusedOperation

STRICT = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string(), False)])


def nullable(schema: pa.Schema) -> dict[str, bool]:
    return {field.name: field.nullable for field in schema}


def test_time_then_diff_then_the_columns_of_the_relation() -> None:
    shape = RowEncoder(KV)
    diffs = chunk(KV, [(-1, 1, "a"), (3, 1, "A")])

    assert shape.schema.names == ["_timestamp", "_diff", "k", "v"]
    assert shown(shape, diffs, timestamp=2) == [(2, -1, 1, "a"), (2, 3, 1, "A")]
    assert shape.ordering == ()


def test_with_progress_each_row_says_whether_it_is_one() -> None:
    shape = RowEncoder(KV, progress=True)

    assert shape.schema.names == ["_timestamp", "_progressed", "_diff", "k", "v"]
    assert shown(shape, chunk(KV, [(1, 1, "a")]), timestamp=2) == [(2, False, 1, 1, "a")]
    assert tuples(shape.progress(3)) == [(3, True, None, None, None)]
    assert shape.progress(3).schema == shape.schema


def test_columns_as_materialize_names_them() -> None:
    assert RowEncoder(KV, names="materialize", progress=True).schema.names == [
        "mz_timestamp", "mz_progressed", "mz_diff", "k", "v",
    ]  # fmt: skip
    assert RowEncoder(KV, names="materialize", envelope=Upsert("k")).schema.names == [
        "mz_timestamp", "mz_state", "k", "v",
    ]  # fmt: skip


def test_what_may_be_null() -> None:
    """A progress row has NULL in every column of data; a deleted key has no values."""
    assert nullable(RowEncoder(STRICT).schema) == {
        "_timestamp": False, "_diff": True, "k": False, "v": False,
    }  # fmt: skip
    assert nullable(RowEncoder(STRICT, progress=True).schema) == {
        "_timestamp": False, "_progressed": False, "_diff": True, "k": True, "v": True,
    }  # fmt: skip
    assert nullable(RowEncoder(STRICT, envelope=Debezium("k")).schema) == {
        "_timestamp": False, "_state": True, "k": False, "before_v": True, "after_v": True,
    }  # fmt: skip
    assert nullable(RowEncoder(STRICT, envelope=Upsert("k"), progress=True).schema) == {
        "_timestamp": False, "_progressed": False, "_state": True, "k": True, "v": True,
    }  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"order_by": "k"}, {"envelope": Upsert("k")}], ids=str)
def test_a_timestamp_is_in_one_batch_if_it_fits(options: dict[str, Any]) -> None:
    rows = [(1, k, "v") for k in range(10)]
    chunks = [chunk(KV, rows[:1]), chunk(KV, []), chunk(KV, rows[1:4]), chunk(KV, rows[4:])]

    for batch_rows, sizes in ((10, [10]), (65_536, [10]), (4, [4, 4, 2]), (9, [9, 1])):
        shape = RowEncoder(KV, batch_rows=batch_rows, **options)
        for given in (chunks, [chunk(KV, rows)]):
            batches = list(shape.rows(5, given))
            assert [len(batch) for batch in batches] == sizes
            assert {str(batch.schema) for batch in batches} == {str(shape.schema)}
            keys = [k for batch in batches for k in batch.column("k").to_pylist()]
            assert keys == list(range(10))


@pytest.mark.parametrize("options", [{}, {"order_by": "k"}, {"envelope": Upsert("k")}], ids=str)
def test_no_rows_are_no_batch(options: dict[str, Any]) -> None:
    assert list(RowEncoder(KV, **options).rows(1, [])) == []
    assert list(RowEncoder(KV, **options).rows(1, [chunk(KV, []), chunk(KV, [])])) == []


@pytest.mark.parametrize("options", [{}, {"order_by": "k"}, {"envelope": Upsert("k")}], ids=str)
def test_chunks_are_read_as_batches_are_wanted(options: dict[str, Any]) -> None:
    taken: list[int] = []

    def chunks() -> Iterator[pa.Table]:
        for number in range(100):
            taken.append(number)
            yield chunk(KV, [(1, number * 4 + k, "v") for k in range(4)])

    batches = RowEncoder(KV, batch_rows=4, **options).rows(1, chunks())

    next(batches)
    assert len(taken) <= 2
    next(batches)
    assert len(taken) <= 3


def test_columns_are_found_by_name_and_given_out_in_the_types_of_the_relation() -> None:
    schema = pa.schema([("s", pa.string_view()), ("a.b", pa.int32()), ("d", pa.binary_view())])
    rows = pa.table(
        {
            "d": pa.array([b"x"], pa.large_binary()),
            WEIGHT: pa.array([1], pa.int32()),
            "a.b": pa.array([7], pa.int64()),
            "s": pa.array(["one"]).dictionary_encode(),
        }
    )

    shape = RowEncoder(schema, order_by="a.b")

    assert shape.schema.types == [pa.int64(), pa.int64(), pa.string(), pa.int32(), pa.binary()]
    assert shown(shape, rows) == [(1, 1, "one", 7, b"x")]
    assert shown(RowEncoder(schema, envelope=Upsert("s")), rows) == [(1, "upsert", "one", 7, b"x")]


def test_types_that_differ_only_in_what_may_be_null_inside_are_one() -> None:
    inside = pa.list_(pa.field("element", pa.int64(), nullable=False))
    schema = pa.schema([("k", pa.int64()), ("l", pa.list_(pa.int64()))])
    rows = pa.table([pa.array([1]), pa.array([[1, 2]], inside), pa.array([1])], ["k", "l", WEIGHT])

    for options in ({}, {"order_by": "k"}, {"envelope": Debezium("k")}):
        assert shown(RowEncoder(schema, **options), rows)[0][-1] == [1, 2]


def refused(schema: pa.Schema, **options: Any) -> str:
    with pytest.raises(RefusedOperation) as told:
        RowEncoder(schema, **options)
    return str(told.value)


def test_a_column_that_is_called_like_a_leading_one_is_refused_with_the_way_out() -> None:
    schema = pa.schema([("k", pa.int64()), ("_diff", pa.int64())])

    said = refused(schema)
    assert said.startswith('the relation already has a column "_diff"')
    assert 'names="materialize"' in said and "`_diff` AS another_name" in said
    assert RowEncoder(schema, names="materialize").schema.names == [
        "mz_timestamp", "mz_diff", "k", "_diff",
    ]  # fmt: skip
    # An envelope gives out no diff.
    assert RowEncoder(schema, envelope=Upsert("k")).schema.names[-1] == "_diff"
    # For Spark and Delta this would be one name.
    assert '"_TimeStamp"' in refused(pa.schema([("_TimeStamp", pa.int64())]))
    assert 'names="delta"' in refused(pa.schema([("mz_diff", pa.int64())]), names="materialize")


def test_a_progress_column_is_in_the_way_only_with_progress() -> None:
    schema = pa.schema([("_progressed", pa.bool_())])

    assert RowEncoder(schema).schema.names == ["_timestamp", "_diff", "_progressed"]
    assert '"_progressed"' in refused(schema, progress=True)


def test_a_key_that_is_called_like_a_value_before_is_refused() -> None:
    schema = pa.schema([("before_v", pa.int64()), ("v", pa.int64())])

    said = refused(schema, envelope=Debezium("before_v"))
    assert said.startswith('the relation already has a column "before_v"')
    assert "names=" not in said and "AS another_name" in said
    assert RowEncoder(schema, envelope=Debezium("v")).schema.names[2:] == [
        "v", "before_before_v", "after_before_v",
    ]  # fmt: skip


def test_wrong_options_are_refused() -> None:
    assert refused(KV, envelope=Upsert("k"), order_by="k").startswith(
        "an envelope and an order cannot be combined"
    )
    assert f'"{WEIGHT}"' in refused(pa.schema([("k", pa.int64()), (WEIGHT, pa.int64())]))
    assert refused(pa.schema([("k", pa.int64()), ("k", pa.int64())])).startswith(
        'the relation has two columns "k"'
    )
