"""How large the files of a stream table are: a change of one row writes its file anew."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake
from dagster_streamtables.runtime.model.table_state import StreamTableState
from dagster_streamtables.runtime.storage import commit_target, upkeep
from dagster_streamtables.runtime.storage.commit_target import CommitTarget
from runtime.delta import on_spark, session, write
from runtime.orders import ACCOUNT, LARGE, orders
from runtime.refreshes import refreshed

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROWS, BYTES = 1000, 4096


def rows_of_files(lake: Lake) -> list[int]:
    added = DeltaTable(lake.location(LARGE.name)).get_add_actions()
    return added.column("num_records").to_pylist()


def told(lake: Lake) -> int:
    return int(
        DeltaTable(lake.location(LARGE.name)).metadata().configuration[commit_target.FILE_SIZE]
    )


@pytest.mark.parametrize(
    ("table", "file"),
    [(0, 2), (63, 2), (127, 2), (128, 4), (256, 8), (511, 8), (512, 16), (9999, 16)],
)
def test_a_larger_table_has_larger_files(table: int, file: int) -> None:
    """In MB."""
    assert commit_target.file_bytes(table * 2**20) == file * 2**20


@pytest.mark.parametrize(
    ("table", "file"), [(0, 100_000), (10_000_000, 312_500), (10**9, 1_000_000)]
)
def test_a_longer_table_has_longer_files(table: int, file: int) -> None:
    """In rows."""
    state = StreamTableState("mart.large", 1, "", {}, "", None, "", ACCOUNT)
    assert CommitTarget("", state, None, rows=table).file_rows == file


@pytest.mark.parametrize("driver_rows", [0])
def test_spark_counts_the_rows_of_a_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_target, "FILE_ROWS", (ROWS, ROWS))
    write(lake, "orders", orders(*range(5 * ROWS)))
    assert refreshed(lake, LARGE).writer == "spark"
    assert max(rows_of_files(lake)) <= ROWS
    write(lake, "orders", orders(*range(1, 5 * ROWS, 2), *range(5 * ROWS, 8 * ROWS)))
    refreshed(lake, LARGE, Action.DIFFERENTIAL, writer="spark")
    assert max(rows_of_files(lake)) <= ROWS
    assert session(lake).conf.get("spark.sql.files.maxRecordsPerFile") == "0"


@pytest.mark.parametrize("driver_rows", [100_000, 0], ids=["delta-rs", "spark"])
def test_delta_rs_counts_their_bytes(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made the table."""
    monkeypatch.setattr(commit_target, "FILE_BYTES", (BYTES, 2 * BYTES))
    write(lake, "orders", orders(*range(5 * ROWS)))
    refreshed(lake, LARGE)
    assert told(lake) == BYTES
    lake = Lake(lake.root, spark=spark)
    write(lake, "orders", orders(*range(1, 5 * ROWS, 2)))
    refreshed(lake, LARGE, Action.DIFFERENTIAL, writer="delta-rs")
    assert len(rows_of_files(lake)) > 2


@pytest.mark.parametrize("own", [None, 12345])
def test_files_grow_with_the_table(
    own: int | None, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is compacted; but nobody overrides what its owner has set."""
    monkeypatch.setattr(upkeep, "_MANY", 3)
    monkeypatch.setattr(commit_target, "FILE_BYTES", (BYTES, 2 * BYTES))
    monkeypatch.setattr(commit_target, "FILES", 1)
    write(lake, "orders", orders(1))
    refreshed(lake, LARGE)
    assert told(lake) == BYTES
    if own is not None:
        table = DeltaTable(lake.location(LARGE.name))
        table.alter.set_table_properties({commit_target.FILE_SIZE: str(own)})
    write(lake, "orders", orders(*range(2, 5 * ROWS)))
    for number in range(2):
        assert "compact" not in refreshed(lake, LARGE).phases
        write(lake, "orders", orders(-number))
    assert "compact" in refreshed(lake, LARGE).phases
    assert told(lake) == (own or 2 * BYTES)
    assert refreshed(lake, LARGE).action is Action.NO_DATA


def test_the_files_of_a_table_that_only_spark_writes_are_merged_too(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_MANY", 3)
    monkeypatch.setattr(commit_target, "FILES", 1)
    write(lake, "orders", orders(1))
    refreshed(lake, LARGE)
    on_spark(lake, "ALTER TABLE {mart.large} SET TBLPROPERTIES (delta.enableRowTracking = true)")
    for number in range(2, 6):
        write(lake, "orders", orders(number))
        refreshed(lake, LARGE, Action.DIFFERENTIAL, writer="spark")
    assert len(rows_of_files(lake)) < 4
    assert refreshed(lake, LARGE).action is Action.NO_DATA
