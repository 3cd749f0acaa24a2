"""Rows that are copied into real tables, new and old."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables.errors import ReplicationConflict, TargetProblem
from dagster_streamtables.replication.apply.contract import Choices, OnConflict
from dagster_streamtables.replication.apply.copy_rows import copy_rows
from dagster_streamtables.replication.apply.row_digests import RowDigests
from dagster_streamtables.replication.model.replication_model import PublishedTable
from replication.apply.published import KEYED, SHOP, WHOLE, at, counted, position_of, stored

ROWS = [{"id": i, "name": name} for i, name in enumerate(["a", "", None, "a"])]


def reader(rows: Sequence[Any], schema: pa.Schema = SHOP) -> pa.RecordBatchReader:
    """A row in each batch."""
    batches = [pa.RecordBatch.from_pylist([each], schema=schema) for each in rows]
    return pa.RecordBatchReader.from_batches(schema, batches)


@pytest.mark.parametrize("rows", [ROWS, []], ids=["rows", "none"])
@pytest.mark.parametrize("table", [KEYED, WHOLE], ids=["keyed", "whole"])
def test_a_target_is_created(table: PublishedTable, rows: list[Any], tmp_path: Path) -> None:
    done = copy_rows(at(tmp_path), table, reader(rows), 7)

    assert (done.version, done.position, done.inserted) == (0, 7, len(rows))
    assert stored(tmp_path) == counted(rows)
    assert position_of(at(tmp_path)) == 7
    settings = DeltaTable(str(tmp_path)).metadata().configuration
    assert settings["delta.enableChangeDataFeed"] == "true"


def test_a_copy_that_was_made_is_not_made_again(tmp_path: Path) -> None:
    copy_rows(at(tmp_path), WHOLE, reader(ROWS), 7)

    assert copy_rows(at(tmp_path), WHOLE, reader(ROWS), 7).version is None
    assert copy_rows(at(tmp_path), WHOLE, reader(ROWS), 6).position == 7
    assert stored(tmp_path) == counted(ROWS)


def test_a_second_copy_does_not_double_rows(tmp_path: Path) -> None:
    copy_rows(at(tmp_path), WHOLE, reader(ROWS), 7)

    with pytest.raises(ReplicationConflict, match="was copied to its target before"):
        copy_rows(at(tmp_path), WHOLE, reader(ROWS), 8)
    assert (stored(tmp_path), position_of(at(tmp_path))) == (counted(ROWS), 7)

    DeltaTable(tmp_path).delete()
    copy_rows(at(tmp_path), WHOLE, reader(ROWS), 8)
    assert (stored(tmp_path), position_of(at(tmp_path))) == (counted(ROWS), 8)


def test_a_copy_without_an_identity_adds_its_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist(ROWS, schema=SHOP))

    copy_rows(at(tmp_path), WHOLE, reader(ROWS), 7)

    assert stored(tmp_path) == counted(ROWS * 2)


@pytest.mark.parametrize(
    ("policy", "name", "done"), [("apply", "new", (1, 1)), ("skip", "old", (1, 0))]
)
def test_rows_that_are_there(policy: OnConflict, name: str, done: Any, tmp_path: Path) -> None:
    there = [{"own": i, "name": "old", "id": i} for i in (1, 2)]
    write_deltalake(tmp_path, pa.Table.from_pylist(there))
    rows = [{"id": i, "name": "new"} for i in (2, 3)]

    found = copy_rows(at(tmp_path), KEYED, reader(rows), 7, Choices(policy))

    assert (found.inserted, found.updated) == done
    assert found.conflicts == {"insert_exists": 1}
    left = [there[0], {**there[1], "name": name}, {**rows[1], "own": None}]
    assert stored(tmp_path) == counted(left)


def test_a_row_that_is_there_stops_the_copy(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist(ROWS[2:3], schema=SHOP))

    with pytest.raises(ReplicationConflict, match="already has") as error:
        copy_rows(at(tmp_path), KEYED, reader(ROWS), 7)

    assert "id=2" in error.value.where
    assert stored(tmp_path) == counted(ROWS[2:3])
    assert position_of(at(tmp_path)) is None


@pytest.mark.parametrize("exists", [True, False])
def test_a_row_that_comes_twice_stops_the_copy(exists: bool, tmp_path: Path) -> None:
    if exists:
        write_deltalake(tmp_path, SHOP.empty_table())

    with pytest.raises(ReplicationConflict):
        copy_rows(at(tmp_path), KEYED, reader([*ROWS, ROWS[1]]), 7)

    assert DeltaTable.is_deltatable(str(tmp_path)) == exists
    assert not exists or not stored(tmp_path)
    found = copy_rows(at(tmp_path), KEYED, reader([*ROWS, ROWS[1]]), 7, Choices("skip"))
    assert (stored(tmp_path), found.inserted) == (counted(ROWS), 4)


def test_a_publisher_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from reader(ROWS)
        raise ConnectionError("the server went away")

    with pytest.raises(ConnectionError, match="the server went away"):
        copy_rows(at(tmp_path), KEYED, pa.RecordBatchReader.from_batches(SHOP, broken()), 7)
    assert not DeltaTable.is_deltatable(str(tmp_path))


def test_a_new_copy_takes_the_place_of_all_rows(tmp_path: Path) -> None:
    copy_rows(at(tmp_path), KEYED, reader(ROWS), 7)

    found = copy_rows(at(tmp_path), KEYED, reader(ROWS[:2]), 3, replace=True)

    assert (found.inserted, found.deleted, position_of(at(tmp_path))) == (2, 4, 3)
    assert stored(tmp_path) == counted(ROWS[:2])


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.string(), ["", "a", "é", None, "a b", "0"]),
        (pa.int32(), [0, -1, 2**31 - 1, None]),
        (pa.int64(), [0, -1, 2**63 - 1, -(2**63), None]),
        (pa.float64(), [0.0, 1.5, math.nan, math.inf, None, 5e-324]),
        (pa.binary(), [b"", b"\0", b"\0\0", None, b"\xff"]),
        (pa.bool_(), [True, False, None]),
        (pa.date32(), [0, 1, -1, None]),
        (pa.timestamp("us", "UTC"), [0, 1, -1, None]),
        (pa.decimal128(38, 10), [Decimal(0), Decimal("0.1"), Decimal("-1e27"), None]),
    ],
    ids=str,
)
def test_what_was_seen_is_known(type_: pa.DataType, values: list[Any]) -> None:
    rows = pa.table({"a": pa.array(values, type_), "b": pa.array([1] * len(values))})
    seen = RowDigests()

    assert not seen.add(rows.slice(1)).any()
    assert seen.add(rows).tolist() == [False] + [True] * (len(values) - 1)
    assert seen.add(pa.concat_tables([rows, rows])).all()
    assert not seen.has(rows.set_column(1, "b", pa.array([2] * len(values)))).any()


def test_equal_zeros_and_nans_are_one() -> None:
    seen = RowDigests()
    floats = pa.table({"a": [0.0, -0.0, math.nan, -math.nan]})
    assert seen.add(floats).tolist() == [False, True, False, True]


def test_a_hundred_thousand_rows_are_all_told_apart() -> None:
    seen, chance = RowDigests(), np.random.default_rng(1)
    order = chance.permutation(100_000)
    for part in np.array_split(order, 37):
        rows = pa.table({"a": part // 300, "b": [str(each % 300) for each in part.tolist()]})
        assert not seen.add(rows).any()
        assert seen.has(rows).all()


def test_names_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("ID", pa.int64())])
    with pytest.raises(TargetProblem, match="would differ only in case"):
        copy_rows(at(tmp_path), PublishedTable("t", schema, None), reader([], schema), 7)
