"""A source that nobody wrote to for a week: Delta refuses its version by default, with all files
there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake
from runtime.refreshes import maintained, refreshed

LARGE = maintained("large", "SELECT k, v FROM events WHERE v > 1")
EIGHT_DAYS = 8 * 86_400
KINDS = {
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "renamed": "'delta.columnMapping.mode' = 'name'",
    "plain": "'delta.enableDeletionVectors' = 'false'",
}


@pytest.fixture(params=list(KINDS))
def quiet(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Lake:
    """A lake whose source was last written eight days ago, and a table over it."""
    lake = Lake(tmp_path, spark=spark)
    place = lake.location("events")
    spark.sql(
        f"CREATE TABLE delta.`{place}` (k INT, v INT) USING delta "
        f"TBLPROPERTIES ({KINDS[request.param]}, 'delta.enableChangeDataFeed' = 'false')"
    )
    spark.sql(f"INSERT INTO delta.`{place}` SELECT /*+ REPARTITION(1) */ id, id FROM range(50)")
    lake.refresh(LARGE)
    then = time.time() - EIGHT_DAYS
    for file in Path(place, "_delta_log").iterdir():
        os.utime(file, (then, then))
    return lake


def test_its_next_change_is_differential(quiet: Lake, spark: SparkSession) -> None:
    spark.sql(f"UPDATE delta.`{quiet.location('events')}` SET v = 100 WHERE k = 7")
    done = refreshed(quiet, LARGE)
    assert (done.action, done.inserted, done.deleted, done.fallback) == (
        Action.DIFFERENTIAL, 1, 1, "",
    )  # fmt: skip


def test_it_can_be_compared(quiet: Lake) -> None:
    assert quiet.check(LARGE).equal


def test_files_that_a_vacuum_deleted_are_lost_history(quiet: Lake, spark: SparkSession) -> None:
    place = quiet.location("events")
    spark.sql(f"UPDATE delta.`{place}` SET v = 100 WHERE k >= 0")
    files = list(Path(place).rglob("*.parquet"))
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    for file in files:
        if file != newest:
            file.unlink()
    done = refreshed(quiet, LARGE)
    assert done.action is Action.REINITIALIZE
    assert "no longer has all files" in done.reason
