"""Sources whose log was cleaned up: its oldest commits are gone, and a later checkpoint stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake
from dagster_streamtables.runtime.delta.log_folder import log_at_place
from dagster_streamtables.runtime.delta.log_paths import commit_file
from runtime.refreshes import maintained, refreshed

BAG = maintained("bag", "SELECT id FROM src")


@pytest.mark.long
def test_a_version_of_which_only_the_commit_is_left_is_no_version(
    spark: SparkSession, lake: Lake
) -> None:
    """Its commit has the schema, and delta-rs reads it as a table without the files of before."""
    place = Path(lake.location("src"))
    table = f"delta.`{place}`"
    spark.sql(f"CREATE TABLE {table} (id INT) USING delta "
              "TBLPROPERTIES (delta.checkpointInterval = 3)")  # fmt: skip
    spark.sql(f"INSERT INTO {table} VALUES (1), (2)")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    refreshed(lake, BAG)
    spark.sql(f"INSERT INTO {table} VALUES (3)")
    assert list(place.glob("_delta_log/*3.checkpoint.*"))
    for version in (0, 1):
        (place / commit_file(version)).unlink()
    done = refreshed(lake, BAG)
    assert done.action is Action.REINITIALIZE
    assert done.reason == 'the log of "src" no longer has all commits since last time'


@pytest.mark.parametrize(
    ("left", "begins"),
    [
        (["{0}.json", "{1}.json"], True),
        (["{1}.json", "{1}.checkpoint.parquet", "{2}.json"], True),
        (["{2}.checkpoint.0000000001.0000000002.parquet", "{1}.json"], False),
        (["{1}.json", "{2}.crc", "_last_checkpoint"], False),
    ],
)
def test_where_a_version_begins(tmp_path: Path, left: list[str], begins: bool) -> None:
    (tmp_path / "_delta_log").mkdir()
    for name in left:
        (tmp_path / "_delta_log" / name.format(*(f"{n:020}" for n in range(3)))).touch()
    assert log_at_place(str(tmp_path)).begins_before(1) is begins
