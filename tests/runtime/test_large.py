"""Changes that are too large for this process stay in Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.storagelevel import StorageLevel

from dagster_streamtables import Lake
from dagster_streamtables.runtime.compute.inputs import LIMIT, NARROW, Inputs
from dagster_streamtables.runtime.compute.relations import Relations
from dagster_streamtables.runtime.compute.version_views import views_of
from dagster_streamtables.runtime.delta.delta_log import Logs
from runtime.delta import write
from runtime.refreshes import maintained, refreshed

COPIES = maintained("copies", "SELECT v, f FROM s")


def rows(*values: int | None) -> pa.Table:
    floats = [None if v is None else -0.0 if v == 0 else v / 3 for v in values]
    return pa.table({"v": pa.array(values, pa.int64()), "f": pa.array(floats, pa.float64())})


@pytest.mark.long
def test_rows_that_only_come_are_appended_with_their_copies(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark, driver_rows=0)
    write(lake, "s", rows(1, 1, None))
    refreshed(lake, COPIES)
    write(lake, "s", rows(1, 1, 1, None, None, 0, 0, 2))
    done = refreshed(lake, COPIES)
    assert (done.writer, done.inserted, done.deleted) == ("spark", 8, 0)
    table = DeltaTable(lake.location("copies"))
    assert table.history(1)[0]["operation"] == "WRITE"
    assert str(table.to_pyarrow_table().column("f").to_pylist()).count("-0.0") == 2

    DeltaTable(lake.location("s")).delete("v = 1")
    done = refreshed(lake, COPIES)
    assert (done.writer, done.inserted, done.deleted) == ("spark", 0, 5)
    assert DeltaTable(lake.location("copies")).history(1)[0]["operation"] == "MERGE"


def test_a_change_of_many_rows_that_comes_to_few_is_committed_here(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, spark=spark, driver_rows=5)
    few = maintained("few", "SELECT v FROM s WHERE v > 30")
    write(lake, "s", rows(*range(20)))
    refreshed(lake, few)
    write(lake, "s", rows(*range(20, 34)))
    done = refreshed(lake, few)
    assert (done.writer, done.inserted) == ("delta-rs", 3)


def test_what_spark_holds_it_lets_go(spark: SparkSession) -> None:
    rows = spark.range(3)
    with Relations(views_of(spark, "held")) as relations:
        assert relations.kept(rows).count() == 3
        assert rows.storageLevel != StorageLevel.NONE
    assert rows.storageLevel == StorageLevel.NONE


@pytest.mark.smoke("changes that stay in Spark")
def test_what_is_held_may_read_what_was_named(spark: SparkSession) -> None:
    with Relations(views_of(spark, "held")) as relations:
        name = relations.named(spark.range(3))
        assert relations.kept(spark.sql(f"SELECT id FROM {name}")).count() == 3


@pytest.mark.parametrize(
    ("tables", "driver_rows", "limit"),
    [
        pytest.param((), None, NARROW, id="a new table"),
        pytest.param(("narrow",), None, NARROW, id="narrow"),
        pytest.param(("narrow", "wide"), None, LIMIT, id="wide"),
        pytest.param(("wide", "empty"), 7, 7, id="as many as somebody says"),
        pytest.param(("empty",), None, NARROW, id="empty"),
    ],
)
def test_narrow_rows_come_in_greater_numbers(
    tables: tuple[str, ...], driver_rows: int | None, limit: int, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    random = np.random.default_rng(1)
    write(lake, "narrow", pa.table({"id": pa.array(range(10_000), pa.int64())}))
    write(lake, "wide", pa.table({"note": [random.bytes(4000).hex() for _ in range(10)]}))
    write(lake, "empty", pa.table({"id": pa.array([], pa.int64())}))
    logs = [Logs().newest(lake.location(name)) for name in tables]
    inputs = Inputs(
        session=lambda: pytest.fail("it opens a session"),
        stored=lambda _: None,
        driver_rows=driver_rows,
        tables=tuple(log for log in logs if log is not None),
    )
    assert (len(inputs.tables), inputs.limit) == (len(tables), limit)
