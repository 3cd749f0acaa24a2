"""Sources with an old log.

Delta refuses a version by default after a week without a commit, with all files there. Where a log
was cleaned up, its oldest commits are gone, and a later checkpoint stays.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dagster_streamtables import Action, Lake
from dagster_streamtables.runtime.delta.log_folder import log_at_place
from dagster_streamtables.runtime.delta.table_locations import commit_file
from runtime.delta import create, on_spark
from runtime.refreshes import maintained, refreshed

LARGE = maintained("large", "SELECT k, v FROM events WHERE v > 1")
EIGHT_DAYS = 8 * 86_400
KINDS = {
    "vectors": {"enableDeletionVectors": True},
    "renamed": {"columnMapping.mode": "name"},
    "plain": {"enableDeletionVectors": False},
}


@pytest.fixture(params=list(KINDS))
def quiet(request: pytest.FixtureRequest, lake: Lake) -> Lake:
    """A lake whose source was last written eight days ago, and a table over it."""
    create(lake, "events", "k INT, v INT", enableChangeDataFeed=False, **KINDS[request.param])
    on_spark(lake, "INSERT INTO {events} SELECT /*+ REPARTITION(1) */ id, id FROM range(50)")
    lake.refresh(LARGE)
    then = time.time() - EIGHT_DAYS
    for file in Path(lake.location("events"), "_delta_log").iterdir():
        os.utime(file, (then, then))
    return lake


def test_its_next_change_is_differential(quiet: Lake) -> None:
    on_spark(quiet, "UPDATE {events} SET v = 100 WHERE k = 7")
    refreshed(quiet, LARGE, Action.DIFFERENTIAL, inserted=1, deleted=1, fallback="")


def test_it_can_be_compared(quiet: Lake) -> None:
    assert quiet.check(LARGE).equal


def test_files_that_a_vacuum_deleted_are_lost_history(quiet: Lake) -> None:
    on_spark(quiet, "UPDATE {events} SET v = 100 WHERE k >= 0")
    files = list(Path(quiet.location("events")).rglob("*.parquet"))
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    for file in files:
        if file != newest:
            file.unlink()
    refreshed(quiet, LARGE, Action.REINITIALIZE, because="no longer has all files")


BAG = maintained("bag", "SELECT id FROM src")


@pytest.mark.long
def test_a_version_of_which_only_the_commit_is_left_is_no_version(lake: Lake) -> None:
    """Its commit has the schema, and delta-rs reads it as a table without the files of before."""
    place = Path(lake.location("src"))
    create(lake, "src", "id INT", checkpointInterval=3)
    on_spark(lake, "INSERT INTO {src} VALUES (1), (2)")
    on_spark(lake, "ALTER TABLE {src} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    refreshed(lake, BAG)
    on_spark(lake, "INSERT INTO {src} VALUES (3)")
    assert list(place.glob("_delta_log/*3.checkpoint.*"))
    for version in (0, 1):
        (place / commit_file(version)).unlink()
    lost = 'the log of "src" no longer has all commits since last time'
    refreshed(lake, BAG, Action.REINITIALIZE, reason=lost)


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
