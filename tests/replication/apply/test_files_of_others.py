"""Targets with files that others wrote, in forms that delta-rs would change as it rewrites them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables.replication.apply.apply_changes import apply_changes
from dagster_streamtables.replication.model.replication_model import PublishedTable
from dagster_streamtables.replication.target.target_table import log_of, open_target
from dagster_streamtables.runtime.spark.settings import settings_for_now
from dagster_streamtables.runtime.storage import upkeep
from dagster_streamtables.runtime.storage.commit_target import FILE_SIZE
from replication.apply.published import Transactions, changes, counted, left, position_of
from replication.apply.test_only_spark import Place
from runtime.test_times import INT96, LEGACY

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("n", pa.int64())])
BY_ID = PublishedTable("public.t", SCHEMA, ("id",))
BY_TIME = PublishedTable("public.t", SCHEMA, ("at",))
BAG = PublishedTable("public.t", SCHEMA, None)
YEARS = [1, 1500, 1582, 1600, 1900, 1970, 2026, 2263, 9999]


def at(year: int, microsecond: int = 1) -> datetime:
    return datetime(year, 10, 4, 12, 30, 0, microsecond, tzinfo=UTC)


def row(id_: int, when: datetime | None, n: int = 0) -> dict[str, Any]:
    return {"id": id_, "at": when, "n": n}


THERE = [row(year, at(year)) for year in YEARS]
HAPPENED: Transactions = {
    5: [
        ("update", row(1600, at(1600)), row(1600, at(1600), 7)),
        ("delete", row(2263, at(2263))),
        ("insert", row(10, at(2300))),
    ],
    6: [
        ("update", row(9999, at(9999)), row(9999, at(1601), 8)),
        ("insert", row(11, at(1, 999_999))),
        ("delete", row(10, at(2300))),
    ],
}


EITHER = pytest.mark.parametrize(
    "table",
    [pytest.param(BY_ID, id="a key"), pytest.param(BAG, id="whole rows", marks=pytest.mark.long)],
)


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    return Place(spark, tmp_path / "t")


def fill(place: Place, settings: Mapping[str, str]) -> None:
    values = ", ".join(f"({each['id']}, TIMESTAMP '{each['at']}', {each['n']})" for each in THERE)
    with settings_for_now(place.spark, settings):
        place.sql(f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")


def convert(place: Place) -> None:
    """CONVERT TO DELTA takes files whose columns are spelled otherwise than the table's."""
    place.path.mkdir()
    for name, rows in (("a", THERE[1::2]), ("b", THERE[::2])):
        held = pa.Table.from_pylist(rows, SCHEMA)
        spelled = [n.upper() for n in held.column_names] if name == "a" else held.column_names
        pq.write_table(held.rename_columns(spelled), place.path / f"{name}.parquet")
    place.spark.sql(f"CONVERT TO DELTA parquet.`{place.path}`")


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "settings"),
    [
        pytest.param(BY_ID, INT96, id="a key, INT96"),
        pytest.param(BY_TIME, LEGACY, id="a key of the time, old calendar"),
        pytest.param(BAG, INT96, id="whole rows, INT96"),
        pytest.param(BY_TIME, INT96, id="a key of the time, INT96"),
        pytest.param(BY_ID, LEGACY, id="a key, old calendar"),
        pytest.param(BAG, LEGACY, id="whole rows, old calendar"),
    ],
)
def test_times_in_other_encodings_stay(
    place: Place, table: PublishedTable, settings: Mapping[str, str]
) -> None:
    place.create("id BIGINT, at TIMESTAMP, n BIGINT")
    fill(place, settings)
    assert place.rows() == counted(THERE)
    assert open_target(place.target, table).spark is not None

    apply_changes(place.target, changes(table, HAPPENED), 6)

    assert place.rows() == left(table, THERE, HAPPENED)
    assert position_of(place.target) == 6


@pytest.mark.long
@EITHER
def test_columns_that_were_widened_keep_their_values(place: Place, table: PublishedTable) -> None:
    widening = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    place.create("id INT, at TIMESTAMP, n INT", widening)
    fill(place, {})
    for name in ("id", "n"):
        place.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} TYPE BIGINT")
    large: Transactions = {
        **HAPPENED,
        7: [
            ("insert", row(2**40, at(2000), -(2**40))),
            ("update", row(1, at(1)), row(1, at(1), 2**50)),
        ],
    }
    apply_changes(place.target, changes(table, large), 7)

    assert place.rows() == left(table, THERE, large)


@EITHER
@pytest.mark.long
def test_columns_are_found_in_any_case(place: Place, table: PublishedTable) -> None:
    convert(place)
    assert place.rows() == counted(THERE)

    apply_changes(place.target, changes(table, HAPPENED), 6)

    assert place.rows() == left(table, THERE, HAPPENED)


@EITHER
@pytest.mark.parametrize("size", ["", "104857600"])
def test_files_whose_columns_are_in_another_case_are_merged_with_their_values(
    place: Place, table: PublishedTable, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs would find no column in them, and write NULLs; whoever chose the size of files."""
    monkeypatch.setattr(upkeep, "_MANY", 2)
    convert(place)
    if size:
        DeltaTable(place.path).alter.set_table_properties({FILE_SIZE: size})
    happened: Transactions = {5: [("insert", row(10, at(2300)))]}

    apply_changes(place.target, changes(table, happened), 5)

    assert place.rows("id", "at", "n") == left(table, THERE, happened)
    log = log_of(place.target)
    assert log is not None and len(log.adds) == 1
