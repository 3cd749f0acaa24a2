"""What sources keep for stream tables, a vacuum that leaves it to them, and compaction."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.cli import app
from dagster_streamtables.runtime.delta.delta_log import Logs
from dagster_streamtables.runtime.observe.health import SourceHealth
from dagster_streamtables.runtime.storage import upkeep
from runtime.delta import write
from runtime.orders import LARGE, TOTALS, orders, source
from runtime.refreshes import refreshed

pytestmark = pytest.mark.long

WEEK = timedelta(weeks=1).total_seconds()


def health(lake: Lake, table: StreamTable = TOTALS) -> SourceHealth:
    [found] = lake.retention.of(table.name)
    return found


def test_a_source_keeps_what_a_stream_table_needs_for_as_long_as_it_says(lake: Lake) -> None:
    assert lake.retention.stream_tables() == []
    assert lake.retention.of(TOTALS.name) == []
    lake.refresh(TOTALS)
    assert lake.retention.stream_tables() == ["mart.totals"]
    found = health(lake)
    assert (found.source, found.frontier, found.versions_behind) == ("orders", 0, 0)
    assert (found.bytes_behind, found.seconds_left, found.lost) == (0, None, "")

    write(lake, "orders", orders(30))
    source(lake).delete("id = 1")
    found = health(lake)
    assert (found.versions_behind, found.capture, found.lost) == (2, "feed", "")
    assert found.bytes_behind
    assert found.seconds_left is not None
    assert 0 <= WEEK - found.seconds_left < 600

    hour = {"delta.deletedFileRetentionDuration": "interval 1 hour 30 minutes"}
    source(lake).alter.set_table_properties(hour)
    assert 0 <= 5400 - (health(lake).seconds_left or 0) < 600
    source(lake).alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    assert (health(lake).seconds_left or 0) < 0


def test_lost_history_is_known_before_the_refresh_that_meets_it(lake: Lake) -> None:
    lake.refresh(TOTALS)
    source(lake).delete("id = 1")
    [file] = [path for path in source_files(lake) if path.name not in active(lake)]
    file.rename(file.with_suffix(".away"))
    assert "1 files of version 0 are gone" in health(lake).lost
    file.with_suffix(".away").rename(file)
    assert health(lake).lost == ""

    shutil.rmtree(lake.location("orders"))
    assert "there is no table" in health(lake).lost
    write(lake, "orders", orders(1, 2))
    assert "created again" in health(lake).lost
    assert refreshed(lake, TOTALS).action is Action.REINITIALIZE


def source_files(lake: Lake) -> list[Path]:
    return sorted(Path(lake.location("orders")).glob("*.parquet"))


def active(lake: Lake) -> set[str]:
    return {path.rsplit("/", 1)[-1] for path in source(lake).file_uris()}


def test_a_vacuum_leaves_what_a_stream_table_needs(lake: Lake, spark: SparkSession) -> None:
    for table in (TOTALS, LARGE):
        lake.refresh(table)
    source(lake).update(predicate="id < 5", updates={"amount": "amount + 1"})
    lake.refresh(LARGE)
    since = source(lake).history(1)[0]["timestamp"] / 1000
    held = lake.retention.vacuum("orders", keep=timedelta(0))
    assert (held.files, held.hours) == (0, 25)
    assert held.held_since == since
    assert refreshed(lake, TOTALS).action is Action.DIFFERENTIAL

    dry = lake.retention.vacuum("orders", keep=timedelta(0), dry=True)
    assert (dry.held_since, dry.hours) == (None, 0)
    before = len(source_files(lake))
    done = lake.retention.vacuum("orders", keep=timedelta(0))
    assert done.files == dry.files > 0
    assert len(source_files(lake)) == before - 1
    assert refreshed(lake, TOTALS).action is Action.NO_DATA
    assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled") == "true"


def test_the_command_line_shows_and_deletes(lake: Lake) -> None:
    run = CliRunner().invoke
    lake.refresh(TOTALS)
    write(lake, "orders", orders(30))
    place = ["--root", lake.root]
    [row] = json.loads(run(app, ["retention", *place, "--json"]).output)
    assert (row["table"], row["source"], row["newest"], row["lost"]) == (
        "mart.totals", "orders", 1, "",
    )  # fmt: skip
    shown = run(app, ["retention", *place]).output
    assert "mart.totals" in shown
    assert "29 d 23 h" in shown


@pytest.mark.parametrize("mode", [Mode.DIFFERENTIAL, Mode.FULL])
def test_many_small_files_become_one_and_nobody_sees_a_change(
    mode: Mode, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(LARGE, mode=mode)
    monkeypatch.setattr(upkeep, "_MANY", 4)
    below = StreamTable("mart.below", f"SELECT COUNT(*) AS n FROM {LARGE.name}")
    lake.refresh(table)
    counts: list[int] = []
    for number in range(5):
        write(lake, "orders", orders(100 + number))
        done = refreshed(lake, table)
        assert done.action is Action[mode.name]
        counts.append(len(DeltaTable(lake.location(LARGE.name)).file_uris()))
        if number == 2:
            assert "compact" in done.phases
            assert lake.version(LARGE.name) == done.version + 1
            lake.refresh(below)
    assert counts == [2, 3, 1, 2, 3]
    assert refreshed(lake, table).action is Action.NO_DATA
    assert refreshed(lake, below).action is Action.DIFFERENTIAL


def test_a_compaction_that_loses_a_race_is_left_for_the_next_time(lake: Lake) -> None:
    place = lake.location("orders")
    write(lake, "orders", orders(30))
    log = Logs().newest(place)
    assert log is not None
    for _ in range(3):
        write_deltalake(place, orders(31), mode="overwrite")
    upkeep.compact(log)
    assert DeltaTable(place).to_pyarrow_table().num_rows == 1
