"""What a target takes and what it refuses; nothing is half-applied."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Schema, write_deltalake

from dagster_streamtables.errors import PublisherProblem, TargetProblem
from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.apply.contract import Choices
from dagster_streamtables.replication.model.replication_model import PublishedTable
from dagster_streamtables.runtime.model.table_state import StreamTableState
from replication.apply.published import at, changes, counted, left, position_of, stored
from runtime.orders import ACCOUNT

MOMENT = datetime(2024, 2, 29, 12, 30, 1, 500000)
TYPES: dict[str, tuple[pa.DataType, Any, pa.DataType, Any]] = {
    "int into bigint": (pa.int32(), 5, pa.int64(), 5),
    "int into decimal": (pa.int32(), 5, pa.decimal128(10, 2), Decimal("5.00")),
    "int into double": (pa.int32(), 5, pa.float64(), 5.0),
    "int into string": (pa.int64(), -5, pa.string(), "-5"),
    "bigint into tinyint": (pa.int64(), 127, pa.int8(), 127),
    "decimal into a wider one": (
        pa.decimal128(10, 2), Decimal("1.50"), pa.decimal128(20, 4), Decimal("1.5000")),
    "decimal into bigint": (pa.decimal128(10, 2), Decimal("2.00"), pa.int64(), 2),
    "decimal into double": (
        pa.decimal128(38, 10), Decimal("12345678.33"), pa.float64(), 12345678.33),
    "decimal into string": (
        pa.decimal128(38, 18), Decimal("1e-18"), pa.string(), "0.000000000000000001"),
    "double into string": (pa.float64(), 1e20, pa.string(), "1e+20"),
    "NaN into string": (pa.float64(), math.nan, pa.string(), "NaN"),
    "float into double": (pa.float32(), 0.5, pa.float64(), 0.5),
    "timestamp into string": (pa.timestamp("us"), MOMENT, pa.string(), "2024-02-29 12:30:01.5"),
    "timestamptz into string": (
        pa.timestamp("us", "UTC"), MOMENT.replace(microsecond=0), pa.string(),
        "2024-02-29 12:30:01+00"),
    "timestamptz into timestamp": (pa.timestamp("us", "UTC"), MOMENT, pa.timestamp("us"), MOMENT),
    "date into timestamp": (
        pa.date32(), date(2024, 2, 29), pa.timestamp("us"), datetime(2024, 2, 29)),
    "boolean into string": (pa.bool_(), True, pa.string(), "t"),
    "bytes into string": (pa.binary(), b"a\xff", pa.string(), "\\x61ff"),
    "string into date": (pa.string(), "2024-02-29", pa.date32(), date(2024, 2, 29)),
    "nested": (
        pa.struct([("l", pa.list_(pa.int32()))]), {"l": [1, None]},
        pa.struct([("l", pa.list_(pa.int32()))]), {"l": [1, None]}),
}  # fmt: skip
INEXACT: dict[str, tuple[pa.DataType, Any, pa.DataType]] = {
    "out of range": (pa.int64(), 300, pa.int8()),
    "more than a double holds": (pa.int64(), 2**53 + 1, pa.float64()),
    "too precise": (pa.decimal128(10, 3), Decimal("1.234"), pa.decimal128(10, 2)),
    "too large": (pa.decimal128(10, 2), Decimal("12345.00"), pa.decimal128(5, 2)),
    "NaN": (pa.float64(), math.nan, pa.decimal128(10, 2)),
    "no number": (pa.string(), "one", pa.int32()),
    "no midnight": (pa.timestamp("us"), MOMENT, pa.date32()),
    "a shorter float": (pa.float64(), 0.1, pa.float32()),
}


def table(type_: pa.DataType) -> PublishedTable:
    schema = pa.schema([("id", pa.int64()), ("v", type_)])
    return PublishedTable("public.t", schema, ("id",))


def create(place: Path, type_: pa.DataType) -> None:
    """The columns in another order."""
    write_deltalake(place, pa.schema([("v", type_), ("id", pa.int64())]).empty_table())


def apply(place: Path, what: PublishedTable, *rows: Any, **choices: Any) -> Any:
    happened = {5: [("insert", row) for row in rows]}
    return apply_changes(at(place), changes(what, happened), 5, Choices(**choices))


@pytest.mark.parametrize(("given", "value", "wanted", "expected"), TYPES.values(), ids=TYPES)
def test_values_are_stored_as_equal_ones(
    given: pa.DataType, value: Any, wanted: pa.DataType, expected: Any, tmp_path: Path
) -> None:
    create(tmp_path, wanted)

    apply(tmp_path, table(given), {"id": 1, "v": value}, {"id": 2, "v": None})

    found = DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("id")
    assert repr(found["v"].to_pylist()) == repr([expected, None])


@pytest.mark.parametrize(("given", "value", "wanted"), INEXACT.values(), ids=INEXACT)
def test_a_value_that_has_no_equal_one_is_refused(
    given: pa.DataType, value: Any, wanted: pa.DataType, tmp_path: Path
) -> None:
    create(tmp_path, wanted)
    rows = [{"id": i, "v": None if i != 7 else value} for i in range(20)]

    with pytest.raises(TargetProblem, match='column "v" of the target') as error:
        apply(tmp_path, table(given), *rows)

    assert repr(pa.scalar(value, given).as_py())[:20] in str(error.value)
    assert (stored(tmp_path), position_of(at(tmp_path))) == (counted([]), None)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.bool_(), pa.int32()),
        (pa.list_(pa.int32()), pa.string()),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.binary(), pa.int32()),
        (pa.date32(), pa.int32()),
    ],
    ids=str,
)
def test_a_type_that_takes_no_value_is_refused_without_any(
    given: pa.DataType, wanted: pa.DataType, tmp_path: Path
) -> None:
    create(tmp_path, wanted)
    with pytest.raises(TargetProblem, match="cannot store published values"):
        apply(tmp_path, table(given))


def _stream_table(place: Path) -> None:
    state = StreamTableState("t", 1, "", {}, "", None, "", ACCOUNT)
    properties = CommitProperties(custom_metadata={"userMetadata": state.to_json()})
    write_deltalake(place, table(pa.string()).schema.empty_table(), commit_properties=properties)


def _with_another(field: Field) -> Callable[[Path], object]:
    fields = [Field("id", "long"), Field("v", "string"), field]
    return lambda place: DeltaTable.create(place, Schema(fields))


def _append_only(place: Path) -> None:
    settings = {"delta.appendOnly": "true"}
    write_deltalake(place, table(pa.string()).schema.empty_table(), configuration=settings)


def _of_rows(rows: dict[str, list[Any]]) -> Callable[[Path], object]:
    return lambda place: write_deltalake(place, pa.table(rows))


_REQUIRED = Field("own", "long", nullable=False)
_COMPUTED = Field("own", "long", metadata={"delta.generationExpression": "id + 1"})
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a stream table": (_stream_table, "is a stream table"),
    "no table": (lambda place: None, "has no table to apply its changes to"),
    "a required column": (
        _with_another(_REQUIRED), 'requires a column "own" that is not published'),
    "a computed column": (_with_another(_COMPUTED), "only Spark writes"),
    "append only": (_append_only, "cannot be written exactly"),
    "a column of another name": (
        _of_rows({"id": [1], "V": ["a"]}), 'is missing replicated column "v"'),
    "one identity twice": (_of_rows({"id": [1, 1], "v": ["a", "b"]}), "have one identity"),
}  # fmt: skip


@pytest.mark.parametrize(("create", "message"), REFUSED.values(), ids=REFUSED)
def test_a_target_that_is_refused(
    create: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    create(tmp_path)

    with pytest.raises(TargetProblem, match=message) as error:
        apply(tmp_path, table(pa.string()), {"id": 1, "v": "x"})

    assert error.value.why and error.value.fix and str(tmp_path) in error.value.where
    assert position_of(at(tmp_path)) is None


def test_constraints_of_a_target_hold(tmp_path: Path) -> None:
    fields = [Field("id", "long"), Field("v", "string", nullable=False)]
    DeltaTable.create(tmp_path, Schema(fields))
    DeltaTable(tmp_path).alter.add_constraint({"small": "id < 100"})

    with pytest.raises(TargetProblem, match="does not take NULL"):
        apply(tmp_path, table(pa.string()), {"id": 1, "v": None})
    with pytest.raises(TargetProblem, match="refuses a row"):
        apply(tmp_path, table(pa.string()), {"id": 100, "v": "abc"})
    apply(tmp_path, table(pa.string()), {"id": 1, "v": "abc"})

    assert stored(tmp_path) == counted([{"id": 1, "v": "abc"}])


@pytest.mark.parametrize("rows", [[{"id": 1}, {"id": 2}], []], ids=["rows", "none"])
def test_columns_are_added_and_filled(rows: list[Any], tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.int64())])))
    schema = pa.schema(
        [("id", pa.int64()), ("a b", pa.decimal128(5, 2)), ("n", pa.string()),
         ("t", pa.timestamp("us")), ("z", pa.timestamp("us", "UTC"))]
    )  # fmt: skip
    fills = {"a b": Decimal("1.50"), "t": MOMENT, "n": None}
    what = PublishedTable("public.t", schema, ("id",), fills=fills)
    new = {"id": 9, "a b": None, "n": "x", "t": None, "z": MOMENT.replace(tzinfo=UTC)}

    apply(tmp_path, what, new, add_columns=True)

    there = {"a b": Decimal("1.50"), "n": None, "t": MOMENT, "z": None}
    assert stored(tmp_path) == counted([*({**row, **there} for row in rows), new])


def test_a_key_that_is_not_told_is_the_publishers_fault(tmp_path: Path) -> None:
    create(tmp_path, pa.string())
    happened = {5: [("update", None, {"id": 1, "v": "x"}, "id")]}
    with pytest.raises(PublisherProblem, match="does not identify its row"):
        apply_changes(at(tmp_path), changes(table(pa.string()), happened), 5)


@pytest.mark.parametrize("identity", [("id",), ("v", "id"), None], ids=str)
@pytest.mark.parametrize("by", ["v", "id"])
def test_partitioned_targets(by: str, identity: Any, tmp_path: Path) -> None:
    schema = table(pa.string()).schema
    what = PublishedTable("public.t", schema, identity)
    rows = [{"id": i, "v": v} for i, v in enumerate([None, "a b", "é/=%", None, "x"])]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema=schema), partition_by=by)
    happened = {
        5: [
            ("update", rows[1], {"id": 1, "v": None}),
            ("update", rows[3], {"id": 3, "v": "a b"}),
            ("update", rows[2], {"id": 9, "v": "é/=%"}),
            ("delete", rows[4]),
            ("insert", {"id": None, "v": "new"}),
        ]
    }

    apply_changes(at(tmp_path), changes(what, happened), 5)

    assert stored(tmp_path) == left(what, rows, happened)


def test_an_empty_text_that_partitions_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, table(pa.string()).schema.empty_table(), partition_by="v")
    with pytest.raises(TargetProblem, match="does not take the value ''"):
        apply(tmp_path, table(pa.string()), {"id": 1, "v": ""})


NAMES = [
    "a.b", "two words", "back`tick", 'quo"te', "source", "target", "op", "s", "t", "k0", "v0",
    "u1", "SELECT", "$x", "ünï", "Upper", "it's", "semi;colon", "new\\n", "x{y}", "__row", "%s",
]  # fmt: skip


def test_names_that_mean_something_elsewhere(tmp_path: Path) -> None:
    """Each as the key of a table that has all of them."""
    schema = pa.schema([(name, pa.string()) for name in NAMES])
    for key in NAMES:
        place = tmp_path / str(NAMES.index(key))
        what = PublishedTable("public.t", schema, (key,))
        first, second, third = (dict.fromkeys(NAMES, f"{i}") for i in range(3))
        write_deltalake(place, pa.Table.from_pylist([first, second], schema=schema))
        hidden = next(name for name in NAMES if name != key)
        happened = {
            5: [("update", first, {**third, key: "new"}, hidden), ("delete", second)],
            6: [("insert", third)],
        }

        apply_changes(at(place), changes(what, happened), 6)

        assert stored(place) == left(what, [first, second], happened), key
