"""What sources keep for stream tables and slots, a vacuum that leaves it to them, and compaction.

`force` takes what slots hold, and says so; lag shows it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.cli import app
from dagster_streamtables.metrics import StreamTablesCollector
from dagster_streamtables.metrics.collector import exposition
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.model.table_state import state_of
from dagster_streamtables.runtime.observe.monitor import EventKind
from dagster_streamtables.runtime.observe.slot_store import Slot, SlotStatus, VersionHold
from dagster_streamtables.runtime.observe.source_health import SlotHealth, SlotLag, SourceHealth
from dagster_streamtables.runtime.storage import upkeep
from dagster_streamtables.runtime.storage.commit_target import CommitTarget
from dagster_streamtables.runtime.storage.delta_rs_writer import hooks_after
from dagster_streamtables.runtime.storage.documents import Ledger
from runtime.delta import log_of, write
from runtime.orders import LARGE, TOTALS, orders, source
from runtime.refreshes import each_refreshed, refreshed

WEEK = timedelta(weeks=1).total_seconds()


def health(lake: Lake, table: StreamTable = TOTALS) -> SourceHealth:
    [found] = lake.retention.of(table.name)
    return found


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_vacuum_leaves_what_a_stream_table_needs(lake: Lake, spark: SparkSession) -> None:
    each_refreshed(lake, TOTALS, LARGE)
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
    assert lake.retention.vacuum("orders", keep=timedelta(0)).files == dry.files > 0
    assert len(source_files(lake)) == before - 1
    assert refreshed(lake, TOTALS).action is Action.NO_DATA
    assert spark.conf.get("spark.databricks.delta.retentionDurationCheck.enabled") == "true"


@pytest.mark.long
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
@pytest.mark.long
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
        done = refreshed(lake, table, Action[mode.name])
        counts.append(len(DeltaTable(lake.location(LARGE.name)).file_uris()))
        if number == 2:
            assert "compact" in done.phases
            assert lake.version(LARGE.name) == done.version + 1
            lake.refresh(below)
    assert counts == [2, 3, 1, 2, 3]
    assert refreshed(lake, table).action is Action.NO_DATA
    assert refreshed(lake, below).action is Action.DIFFERENTIAL


@pytest.mark.long
def test_a_compaction_that_loses_a_race_is_left_for_the_next_time(lake: Lake) -> None:
    place = lake.location("orders")
    write(lake, "orders", orders(30))
    log = log_of(lake, "orders")
    for _ in range(3):
        write_deltalake(place, orders(31), mode="overwrite")
    upkeep.compact(log)
    assert DeltaTable(place).to_pyarrow_table().num_rows == 1


DAY = timedelta(days=1)
run = CliRunner().invoke


@pytest.fixture
def plain(tmp_path: Path) -> Lake:
    """A lake without Spark: one source, at version 0."""
    lake = Lake(tmp_path)
    write(lake, "orders", orders(*range(20)))
    return lake


def held(place: str, version: int | None = None) -> VersionHold:
    log = Logs().newest(place) if version is None else Logs().at(place, version)
    assert log is not None
    return VersionHold.of(log)


def follow(
    lake: Lake,
    name: str = "crm",
    *,
    deadline: timedelta | None = None,
    sources: Mapping[str, str] | None = None,
) -> Slot:
    """A slot at the present versions of some sources: by default, of `orders`."""
    at = sources or {"orders": lake.location("orders")}
    return lake.slots.create(
        Slot.new(
            name, "orders", fingerprint="", clock="version", deadline=deadline,
            held={source: held(place) for source, place in at.items()},
        )
    )  # fmt: skip


def lag(lake: Lake) -> SlotLag:
    [slot_health] = lake.retention.slots()
    [found] = slot_health.sources
    return found


def removed_at(lake: Lake) -> float:
    return source(lake).history(1)[0]["timestamp"] / 1000


def test_a_slot_shows_how_far_it_is_behind(plain: Lake) -> None:
    assert plain.retention.slots() == []
    follow(plain)
    found = lag(plain)
    assert (found.source, found.acknowledged, found.versions_behind) == ("orders", 0, 0)
    assert (found.bytes_behind, found.seconds_behind, found.seconds_left) == (0, 0.0, None)

    write(plain, "orders", orders(30))
    source(plain).delete("id = 1")
    found = lag(plain)
    assert (found.versions_behind, found.lost) == (2, "")
    assert found.bytes_behind
    assert found.seconds_behind
    assert found.seconds_left is not None
    assert 0 <= WEEK - found.seconds_left < 600

    plain.slots.move("crm", "", {"orders": held(plain.location("orders"))})
    assert (lag(plain).versions_behind, lag(plain).seconds_behind) == (0, 0.0)


def test_lost_history_is_known_before_a_reader_comes(plain: Lake) -> None:
    follow(plain)
    place = Path(plain.location("orders"))
    shutil.copytree(place, place.with_name("backup"))
    source(plain).delete("id = 1")
    [file] = [each for each in place.glob("*.parquet") if each.name not in active(plain)]
    file.rename(file.with_suffix(".away"))
    assert "files of version 0 are gone: 1" in lag(plain).lost
    file.with_suffix(".away").rename(file)
    assert lag(plain).lost == ""

    plain.slots.move("crm", "", {"orders": held(plain.location("orders"))})
    shutil.rmtree(place)
    place.with_name("backup").rename(place)
    assert "before the 1 read last" in lag(plain).lost
    write(plain, "orders", orders(40))
    assert lag(plain).lost == "version 1 of it is another commit now"
    shutil.rmtree(place)
    assert (lag(plain).newest, lag(plain).seconds_behind) == (None, None)
    assert "there is no table" in lag(plain).lost
    write(plain, "orders", orders(1))
    assert "created again" in lag(plain).lost


def test_a_source_that_cannot_be_read_hides_no_other(plain: Lake) -> None:
    write(plain, "customers", orders(1))
    follow(plain, sources={name: plain.location(name) for name in ("orders", "customers")})
    log = Path(plain.location("customers")) / "_delta_log/00000000000000000000.json"
    log.write_text("no JSON\n")
    [slot_health] = plain.retention.slots()
    assert [each.newest for each in slot_health.sources] == [None, 0]
    assert slot_health.loss_reason == '"customers": the log of a table cannot be read'


def test_what_a_slot_holds_is_needed(plain: Lake) -> None:
    follow(plain)
    follow(plain, "copy")
    assert plain.retention.needed_since("orders") is None
    source(plain).delete("id = 1")
    first = removed_at(plain)
    source(plain).delete("id = 2")
    assert plain.retention.needed_since("orders") == first
    plain.slots.drop("copy")
    plain.slots.move("crm", "", {"orders": held(plain.location("orders"), 1)})
    assert plain.retention.needed_since("orders") == removed_at(plain)
    plain.slots.invalidate("crm", "somebody said so")
    assert plain.retention.needed_since("orders") is None


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_source_is_held_however_it_is_reached(form: str, plain: Lake) -> None:
    place = form.format(plain.location("orders"))
    follow(plain, sources={f"delta.`{place}`": place})
    source(plain).delete("id = 1")
    assert plain.retention.needed_since("orders") == removed_at(plain)
    assert plain.retention.needed_since(f"delta.`{plain.location('orders')}`") is not None


def test_what_cannot_be_kept_any_more_is_not_held(plain: Lake) -> None:
    follow(plain)
    shutil.rmtree(plain.location("orders"))
    write(plain, "orders", orders(1, 2))
    source(plain).delete("id = 1")
    assert plain.retention.needed_since("orders") is None

    plain.slots.move("crm", "", {"orders": held(plain.location("orders"))})
    before = active(plain)
    source(plain).delete("id = 2")
    assert plain.retention.needed_since("orders") is not None
    for name in before - active(plain):  # as a foreign vacuum does
        (Path(plain.location("orders")) / name).unlink()
    assert plain.retention.needed_since("orders") is None


def test_a_slot_past_its_deadline_holds_nothing(plain: Lake) -> None:
    follow(plain, deadline=timedelta(microseconds=1))
    source(plain).delete("id = 1")
    assert plain.retention.needed_since("orders") is None


def test_a_warning_comes_before_a_slot_is_let_go(plain: Lake) -> None:
    slot = follow(plain, deadline=DAY)
    [slot_health] = plain.retention.slots()
    assert slot_health.warning(timedelta(hours=23)) == ""
    at = slot.created_at + DAY
    assert slot_health.warning(DAY) == (
        f'slot "crm" is released at {at.isoformat(timespec="seconds")} unless a reader uses it'
    )
    plain.slots.expire(at)
    [slot_health] = plain.retention.slots()
    assert slot_health.warning(DAY).startswith('slot "crm" is lost: it has been unused since')


def samples(lake: Lake) -> Mapping[tuple[str, ...], float]:
    text = exposition(StreamTablesCollector(lake.monitor))
    return {
        (sample.name.removeprefix("streamtables_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "slot" in sample.name
    }


def test_an_event_comes_before_a_slot_is_let_go_and_one_after(plain: Lake) -> None:
    slot = follow(plain, deadline=DAY)
    soon = slot.used_at + timedelta(hours=23)
    assert plain.monitor.events(now=slot.used_at, warn_before=timedelta(0)) == []
    [event] = plain.monitor.events(now=soon)
    assert (event.table, event.kind) == (slot.name, EventKind.SLOT_EXPIRES)

    plain.slots.invalidate(slot.name, "its reader left")
    [event] = plain.monitor.events()
    assert event.kind is EventKind.SLOT_LOST
    assert "its reader left" in event.message


def test_metrics_show_slots(plain: Lake) -> None:
    assert samples(plain) == {("slots_unreadable",): 0}
    follow(plain)
    write(plain, "orders", orders(30))
    found = samples(plain)
    assert found["slot_lag_versions", "crm", "orders"] == 1
    assert found["slot_lag_bytes", "crm", "orders"] > 0
    assert found["slot_lag_seconds", "crm", "orders"] > 0
    assert found["slot_lost", "crm"] == 0
    plain.slots.invalidate("crm", "somebody said so")
    assert samples(plain)["slot_lost", "crm"] == 1

    Ledger(f"{plain.root}/_streamtables/slots/crm").append("no slot", 1)
    assert samples(plain) == {("slots_unreadable",): 1}


@pytest.mark.parametrize("command", ["retention", "status"])
def test_the_command_line_shows_slots(command: str, plain: Lake) -> None:
    follow(plain, deadline=DAY)
    reader = str(plain.slots.take("crm", "job 7", DAY).reader)
    assert reader.startswith(f"process {os.getpid()} on ")
    write(plain, "orders", orders(30))
    place = ["--root", plain.root]
    [row] = json.loads(run(app, [command, *place, "--json"]).output)
    assert (row["slot"], row["source"], row["status"], row["reader"]) == (
        "crm", "orders", "ACTIVE", reader,
    )  # fmt: skip
    assert (row["acknowledged"], row["newest"], row["versions_behind"]) == (0, 1, 1)
    assert (row["lost"], row["relation"]) == ("", "orders")

    assert f"\t{reader}\t" in run(app, [command, *place, "--wide"]).output
    plain.slots.invalidate("crm", "gone")
    assert "\tlost: gone\n" in run(app, [command, *place]).output
    assert json.loads(run(app, [command, *place, "--json"]).output)[0]["lost"] == "gone"

    plain.slots.take("crm", "job 7", DAY, restart=True)
    [row] = json.loads(run(app, [command, *place, "--json"]).output)
    assert (row["slot"], row["source"], row["lost"]) == ("crm", None, "")
    assert "crm" in run(app, [command, *place]).output


def slot_health(lake: Lake, name: str) -> SlotHealth:
    [found] = [each for each in lake.retention.slots() if each.slot.name == name]
    return found


@pytest.mark.long
def test_a_vacuum_leaves_what_slots_hold_until_it_is_forced(lake: Lake) -> None:
    follow(lake)
    source(lake).delete("id = 1")
    since = removed_at(lake)
    follow(lake, "current")
    follow(lake, "abandoned", deadline=timedelta(microseconds=1))

    dry = lake.retention.vacuum("orders", keep=timedelta(0), dry=True)
    assert (dry.hours, dry.held_since, dry.held_by, dry.lost) == (25, since, ("crm",), ())
    assert lake.slots.read("abandoned").status is SlotStatus.ACTIVE
    done = lake.retention.vacuum("orders", keep=timedelta(0))
    assert replace(done, files=0) == replace(dry, files=0)
    assert done.files == 0
    assert lake.slots.read("abandoned").status is SlotStatus.LOST
    assert DeltaTable(lake.location("orders"), version=0).to_pyarrow_table().num_rows == 20

    dry = lake.retention.vacuum("orders", keep=timedelta(0), dry=True, force=True)
    assert (dry.hours, dry.held_since, dry.held_by, dry.lost) == (0, None, ("crm",), ("crm",))
    assert not lake.slots.read("crm").is_lost
    place = ["--root", lake.root, "--keep-hours", "0", "--dry-run"]
    assert "slots (crm) still need orders as of" in run(app, ["vacuum", "orders", *place]).output
    forced = run(app, ["vacuum", "orders", *place, "--force"]).output
    assert "These slots would be lost: crm." in forced

    done = lake.retention.vacuum("orders", keep=timedelta(0), force=True)
    assert done.files > 0
    assert (done.held_by, done.lost) == (("crm",), ("crm",))
    assert lake.slots.read("crm").reason == 'a forced vacuum of "orders" deleted what it held'
    assert "files of version 0 are gone" in slot_health(lake, "crm").sources[0].lost
    assert slot_health(lake, "current").loss_reason == ""


@pytest.mark.long
def test_force_takes_only_what_is_deleted(lake: Lake) -> None:
    follow(lake)
    lake.refresh(TOTALS)
    source(lake).delete("id = 1")
    done = lake.retention.vacuum("orders", keep=timedelta(days=2), dry=True, force=True)
    assert (done.held_by, done.lost, done.hours) == ((), (), 48)

    # What a stream table needs is kept, forced or not.
    done = lake.retention.vacuum("orders", keep=timedelta(0), force=True)
    assert (done.held_by, done.lost, done.hours) == (("crm",), (), 25)
    assert not lake.slots.read("crm").is_lost
    assert slot_health(lake, "crm").loss_reason == ""


def age_commits(lake: Lake, table: StreamTable) -> None:
    for file in (Path(lake.location(table.name)) / "_delta_log").glob("*.json"):
        os.utime(file, (0, 0))


@pytest.mark.parametrize("cleans", [True, False])
def test_old_commits_of_a_stream_table_are_deleted_if_it_may(cleans: bool, lake: Lake) -> None:
    lake.refresh(LARGE)
    settings = {
        "delta.checkpointInterval": "5",
        "delta.logRetentionDuration": "interval 0 days",
        "delta.enableExpiredLogCleanup": str(cleans).lower(),
    }
    DeltaTable(lake.location(LARGE.name)).alter.set_table_properties(settings)
    for number in range(10):
        age_commits(lake, LARGE)
        write(lake, "orders", orders(100 + number))
        assert lake.refresh(LARGE).writer == "delta-rs"
    log = log_of(lake, LARGE.name)
    assert log.version == 11
    assert (log.actions_at(0) is None) is cleans
    assert (log.actions_at(11) is None) is False


def test_a_checkpoint_is_written_also_if_another_commit_came_first(lake: Lake) -> None:
    lake.refresh(LARGE)
    place = lake.location(LARGE.name)
    DeltaTable(place).alter.set_table_properties({"delta.checkpointInterval": "4"})
    write(lake, "orders", orders(100))
    log = log_of(lake, LARGE.name)
    with log.writing() as table:
        write_deltalake(place, log.arrow_schema.empty_table(), mode="append")
        rows, state = log.arrow_schema.empty_table(), state_of(LARGE.name, log)
        assert state is not None
        target = CommitTarget(place, state, None, None, log.version, 0)
        write_deltalake(table, rows, mode="append", post_commithook_properties=hooks_after(target))
    assert (Path(place) / "_delta_log" / f"{3:020}.checkpoint.parquet").exists()
