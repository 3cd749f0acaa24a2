"""How large the files of a stream table are: a change of one row writes its file anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake
from dagster_streamtables.runtime import spark_writer, storage
from runtime.delta import refreshed, write
from runtime.orders import LARGE, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS, BYTES = 1000, 4096


def rows_of_files(lake: Lake) -> list[int]:
    added = DeltaTable(lake.location(LARGE.name)).get_add_actions()
    return added.column("num_records").to_pylist()


def test_spark_counts_the_rows_of_a_file(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_writer, "FILE_ROWS", ROWS)
    lake = Lake(lake.root, spark=spark, driver_rows=0)
    write(lake, "orders", orders(*range(5 * ROWS)))
    assert refreshed(lake, LARGE).writer == "spark"
    assert max(rows_of_files(lake)) <= ROWS
    write(lake, "orders", orders(*range(1, 5 * ROWS, 2), *range(5 * ROWS, 8 * ROWS)))
    done = refreshed(lake, LARGE)
    assert (done.action, done.writer) == (Action.DIFFERENTIAL, "spark")
    assert max(rows_of_files(lake)) <= ROWS
    assert spark.conf.get("spark.sql.files.maxRecordsPerFile") == "0"


@pytest.mark.parametrize("driver_rows", [100_000, 0], ids=["delta-rs", "spark"])
def test_delta_rs_counts_their_bytes(
    driver_rows: int, lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made the table."""
    size = {"delta.targetFileSize": str(BYTES)}
    monkeypatch.setitem(storage.FILE_SIZE, "delta.targetFileSize", str(BYTES))
    write(lake, "orders", orders(*range(5 * ROWS)))
    refreshed(Lake(lake.root, spark=spark, driver_rows=driver_rows), LARGE)
    configuration = DeltaTable(lake.location(LARGE.name)).metadata().configuration
    assert size.items() <= configuration.items()
    write(lake, "orders", orders(*range(1, 5 * ROWS, 2)))
    done = refreshed(lake, LARGE)
    assert (done.action, done.writer) == (Action.DIFFERENTIAL, "delta-rs")
    assert len(rows_of_files(lake)) > 2
