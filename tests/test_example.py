"""The example: what the replay plays is what happened, however often it is killed."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from subprocess import CompletedProcess

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, load_tables
from example_defs import followers as followers_module, replay
from example_defs.dataset import START, raw_flights, sources
from example_defs.followers import Followers
from example_defs.headless import Year
from example_defs.replay import Commit, Replay
from own_process import python

pytestmark = pytest.mark.process

NAMES = ["airlines", "airports", "planes", "weather", "flights"]
WEEK = START + timedelta(days=9)
"""By then every flight that was due in the first seven days is over."""


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Commit]]:
    """A lake with the first week of the year in it, and the commits that made it."""
    root = tmp_path_factory.mktemp("week")
    return root, Replay(root).advance(WEEK)


def contents(root: Path, name: str) -> pd.DataFrame:
    return ordered(DeltaTable(root / "air" / name).to_pyarrow_table())


def ordered(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return frame.sort_values(list(frame.columns), ignore_index=True)


@pytest.mark.long
def test_a_replayed_week_holds_the_flights_of_the_data_set(week: tuple[Path, list[Commit]]) -> None:
    identity = ["month", "day", "carrier", "flight", "origin"]
    known = ["tailnum", "dest", "distance", "dep_delay", "arr_delay", "air_time"]
    expected = raw_flights().query("month == 1 and day <= 7")
    expected = expected.query("tailnum.notna() or dep_time.notna()")
    played = contents(week[0], "flights")
    date = pd.to_datetime(played["flight_date"])
    played = played.assign(month=date.dt.month, day=date.dt.day).query("month == 1 and day <= 7")
    expected, played = (
        frame.filter(identity + known).sort_values(identity, ignore_index=True)
        for frame in (expected, played)
    )
    assert len(expected) == 6091
    pd.testing.assert_frame_equal(expected, played, check_dtype=False)


@pytest.mark.long
def test_every_flight_of_the_week_has_ended_as_the_data_set_says(
    week: tuple[Path, list[Commit]],
) -> None:
    played = contents(week[0], "flights")
    over = played[pd.to_datetime(played["flight_date"]) < pd.Timestamp("2013-01-08")]
    assert set(over["status"]) == {"landed", "diverted", "cancelled"}
    landed = over[over["status"] == "landed"]
    late = (landed["arrived_at"] - landed["scheduled_arrival"]) / pd.Timedelta(minutes=1)
    assert (late == landed["arr_delay"]).all()
    assert over.loc[over["status"] == "cancelled", "departed_at"].isna().all()


def test_rows_are_inserted_updated_and_deleted(week: tuple[Path, list[Commit]]) -> None:
    flights = [commit for commit in week[1] if commit.source == "flights"]
    assert len(flights) == 9
    assert all(commit.inserted and commit.updated for commit in flights)
    assert sum(commit.deleted for commit in flights) == 11
    corrected = {each.source for each in week[1] if each.updated and not each.inserted}
    assert {"airlines", "airports"} <= corrected
    assert not any(c.updated or c.deleted for c in week[1] if c.source in ("weather", "planes"))


def test_a_step_is_one_commit_in_each_table_that_changed(week: tuple[Path, list[Commit]]) -> None:
    for name in NAMES:
        commits = [commit for commit in week[1] if commit.source == name]
        assert DeltaTable(week[0] / "air" / name).version() == len(commits)


def test_only_some_sources_record_their_changes(week: tuple[Path, list[Commit]]) -> None:
    feeds = {
        name: DeltaTable(week[0] / "air" / name)
        .metadata()
        .configuration.get("delta.enableChangeDataFeed")
        == "true"
        for name in NAMES
    }
    assert feeds == {
        "airlines": True, "airports": True, "planes": False, "weather": False, "flights": True,
    }  # fmt: skip


def test_the_change_between_two_moments_leads_from_one_state_to_the_other() -> None:
    moments = [START + timedelta(hours=7 * each) for each in range(6)]
    for source in sources():
        if source.name == "weather":  # which only grows
            continue
        state = {row[source.key]: row for row in source.at(moments[0]).to_pylist()}
        for after, upto in pairwise(moments):
            for key in source.ended(after, upto)[source.key].to_pylist():
                del state[key]
            came = source.came(after, upto).to_pylist()
            assert not {row[source.key] for row in came} & set(state)
            state |= {row[source.key]: row for row in came}
            assert state == {row[source.key]: row for row in source.at(upto).to_pylist()}


@pytest.mark.parametrize(
    "killed_in",
    ["flights", *(pytest.param(each, marks=pytest.mark.long) for each in ("airports", "weather"))],
)
def test_a_killed_replay_goes_on_where_it_was(
    killed_in: str, week: tuple[Path, list[Commit]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Raised where the process would have ended."""

    stamp, commits = replay._stamp, []

    def dying(clock: datetime) -> object:
        commits.append(clock)
        if len(commits) == 6 + NAMES.index(killed_in):
            raise Killed
        return stamp(clock)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(replay, "_stamp", dying)
        Replay(tmp_path).advance(WEEK)
    for day in range(1, 10):  # each day in a replay of its own
        Replay(tmp_path).advance(START + timedelta(days=day))
    assert Replay(tmp_path).clock == WEEK
    for name in NAMES:
        pd.testing.assert_frame_equal(contents(tmp_path, name), contents(week[0], name))


def test_compaction_leaves_clock_and_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_TIDY_EVERY", 3)
    Replay(tmp_path, step=timedelta(hours=6)).advance(START + timedelta(hours=36))
    assert Replay(tmp_path).clock == START + timedelta(hours=36)
    operations = {each["operation"] for each in DeltaTable(tmp_path / "air" / "weather").history()}
    assert "OPTIMIZE" in operations
    for source in sources():
        expected = ordered(source.at(START + timedelta(hours=36)))
        pd.testing.assert_frame_equal(
            contents(tmp_path, source.name), expected, check_dtype=False, check_like=True
        )


def test_the_clock_moves_in_whole_steps(tmp_path: Path) -> None:
    played = Replay(tmp_path, step=timedelta(hours=5))
    played.advance(datetime(2013, 1, 1, 13, tzinfo=UTC))
    assert played.clock == datetime(2013, 1, 1, 10, tzinfo=UTC)
    assert played.advance(datetime(2013, 1, 1, 13, tzinfo=UTC)) == []
    with pytest.raises(ValueError, match="whole seconds"):
        Replay(tmp_path, step=timedelta(0))


def test_the_code_location_loads_without_spark(tmp_path: Path) -> None:
    Replay(tmp_path)
    code = (
        "import sys; from example_defs.definitions import defs; "
        "print(len(list(defs.resolve_all_asset_specs())), 'pyspark' in sys.modules)"
    )
    assets = run_python(tmp_path, "-c", code)
    assert assets.stdout == "18 False\n", assets.stderr
    assert "stream table" not in assets.stderr, "a definition was refused at load"


@pytest.mark.long
def test_dagster_finds_the_workspace_valid(tmp_path: Path) -> None:
    Replay(tmp_path)
    validated = run_python(
        tmp_path, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"
    )
    assert validated.returncode == 0, validated.stderr


def run_python(lake: Path, *arguments: str) -> CompletedProcess[str]:
    environment = os.environ | {"STREAMTABLES_DEMO_ROOT": str(lake)}
    return python(*arguments, env=environment, cwd=Path(__file__).parent.parent)


def test_the_report_reads_a_stream_table(tmp_path: Path) -> None:
    """By the IO manager of the example, from files such as a refresh leaves."""
    days = {
        "carrier": ["B6", "9E", "UA", "AA"],
        "landed": [60, 50, 49, 70],
        "average_delay": [1.0, 30.5, 99.0, 2.0],
        "__st_n": [60, 50, 49, 70],
    }
    place = tmp_path / "delay" / "carrier_days"
    place.mkdir(parents=True)
    write_deltalake(place, pa.table(days))
    code = (
        "from example_defs.definitions import defs; import dagster as dg; "
        "key = dg.AssetKey(['report', 'latest_airlines']); "
        "assert dg.AssetKey(['delay', 'carrier_days']) in "
        "defs.resolve_asset_graph().get(key).parent_keys; "
        "job = defs.resolve_implicit_global_asset_job_def(); "
        "print(job.execute_in_process(asset_selection=[key]).success)"
    )
    done = run_python(tmp_path, "-c", code)
    assert done.stdout == "True\n", done.stderr
    report = DeltaTable(tmp_path / "report" / "latest_airlines").to_pyarrow_table()
    assert report.column_names == ["carrier", "landed", "average_delay"]
    assert report.column("carrier").to_pylist() == ["9E", "AA", "B6"]


@pytest.mark.long
def test_three_days_of_stream_tables_equal_their_recomputation(
    spark: SparkSession, tmp_path: Path
) -> None:
    year = Year(tmp_path, spark=spark)
    year.play(START + timedelta(days=24), 2, {2})
    assert year.different == set()
    names = {table.name for table in year.tables}
    assert len(names) == 11
    done = {Action.REINITIALIZE: set[str](), Action.DIFFERENTIAL: set[str]()}
    for refresh in year.refreshes:
        done.setdefault(refresh.action, set()).add(refresh.table)
    assert done[Action.REINITIALIZE] == names
    assert {"ops.flights", "ops.airport_days", "delay.scorecard"} <= done[Action.DIFFERENTIAL]


def test_an_alert_is_written_when_an_airline_becomes_late(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "delay" / "carrier_days"
    place.mkdir(parents=True)
    days = {
        "carrier": ["B6", "UA"],
        "airline": ["JetBlue Airways", "United Air Lines"],
        "flight_date": [datetime(2013, 1, 1, tzinfo=UTC).date()] * 2,
        "landed": [60, 50],
        "average_delay": [1.0, 45.0],
    }
    write_deltalake(place, pa.table(days))
    code = (
        "from example_defs.definitions import defs; import dagster as dg; "
        "from deltalake import DeltaTable; "
        "key = dg.AssetKey(['report', 'late_airlines']); "
        "job = defs.resolve_implicit_global_asset_job_def(); "
        "run = lambda: job.execute_in_process(asset_selection=[key]).success; "
        "first = run(); "
        f"table = DeltaTable({str(place)!r}); "
        "table.update({'average_delay': '31.0'}, predicate=\"carrier = 'B6'\"); "
        "table.update({'average_delay': '2.0'}, predicate=\"carrier = 'UA'\"); "
        "print(first, run())"
    )
    done = run_python(tmp_path / "lake", "-c", code)
    assert done.stdout == "True True\n", done.stderr
    assert (tmp_path / "alerts.txt").read_text().splitlines() == [
        "2013-01-01 JetBlue Airways is late: 31 minutes over 60 landings",
        "2013-01-01 United Air Lines is no longer late",
    ]


def test_the_replay_waits_for_tables_without_rows_and_for_those_behind(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: SimpleQueue[str] = SimpleQueue()
    # What a thread prints while `capsys` is read may be lost.
    monkeypatch.setattr(
        followers_module, "print", lambda line, flush: lines.put(line), raising=False
    )
    lake, folder = Lake(tmp_path / "lake", spark=spark), tmp_path / "tables"
    folder.mkdir()
    (folder / "paid.sql").write_text("SELECT id FROM orders")
    (folder / "broken.sql").write_text("SELECT 1 DIV (id - 1) AS n FROM orders")
    tables = load_tables(folder)
    followers = Followers(tmp_path / "lake", folder, seconds=0)
    place = lake.location("orders")
    write_deltalake(place, pa.table({"id": [2]}))

    def waited(told: str) -> None:
        waiting = threading.Thread(target=followers.wait)
        waiting.start()
        while told not in lines.get(timeout=60):
            pass
        lake.refresh_all(tables)
        waiting.join(60)
        assert not waiting.is_alive()

    waited("the first rows of 2 of 2 stream tables")
    write_deltalake(place, pa.table({"id": [3]}), mode="append")
    waited("stream tables that are behind")
    # One that fails holds nothing up.
    write_deltalake(place, pa.table({"id": [1]}), mode="append")
    lake.refresh_all(tables)
    followers.wait()
