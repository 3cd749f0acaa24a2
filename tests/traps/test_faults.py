"""Faults of disks, files, permissions, memory and Spark.

Each really happens. The refresh then fails with an error that says what, why and what to do, the
table is as it was, and the first refresh without the fault is exact.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyarrow.parquet import write_table
from pyspark.sql import SparkSession

from dagster_streamtables import Action, Lake, StreamTable, StreamTablesError
from dagster_streamtables.errors import DamagedTable, EnvironmentProblem, LostSpark
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.compute.spark_engine import LIMIT
from dagster_streamtables.runtime.errors.error_messages import first_line, place_in
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.errors.table_errors import LostHistory, MissingSource
from dagster_streamtables.runtime.spark.local_server import server_status
from dagster_streamtables.runtime.storage import spark_writer
from runtime import delta
from runtime.delta import create, on_spark, write
from runtime.orders import LARGE, TOTALS, orders, source
from runtime.refreshes import maintained, refreshed
from runtime.ways import writers
from traps.faults import filled, kept_aside, no_large_files, no_reading, no_writing, small_disk
from traps.test_commits import tables

pytestmark = [pytest.mark.spark, pytest.mark.long]

DUMPS = ("JVM stacktrace", "\tat ", "<unknown>", "Traceback", "\x1b")


@contextmanager
def unharmed(lake: Lake, table: StreamTable) -> Iterator[None]:
    """Version, frontier, rows and log are the same afterwards."""
    log = Path(lake.location(table.name)) / "_delta_log"

    def held() -> tuple[object, ...]:
        files = {(each.name, each.stat().st_size) for each in log.glob("*.json")}
        rows = delta.held(lake, table.name)
        return Lake(lake.root).version(table.name), lake.frontier(table), rows, files

    before = held()
    yield
    assert held() == before


def told(lake: Lake, table: StreamTable, kind: type[StreamTablesError], what: str) -> str:
    """The whole message of a refresh that fails."""
    with pytest.raises(kind) as raised:
        lake.refresh(table)
    error = raised.value
    assert type(error) is kind
    assert error.what == f'stream table "{table.name}": {what}'
    assert error.why
    assert error.fix
    assert not [dump for dump in DUMPS if dump in str(error)], str(error)
    lasting = 0 if issubclass(kind, EnvironmentProblem) else 1
    assert lake.controls.read(table.name).errors == lasting
    return str(error)


def ready(lake: Lake, table: StreamTable) -> None:
    """A table that is refreshed once, and new rows in its source."""
    refreshed(lake, table)
    write(lake, "orders", orders(20, 21))
    source(lake).delete("id = 3")


FULL = "the disk is full"
DENIED = "no permission to read or write a file"
UNREADABLE = "the log of a table cannot be read"
NO_FILE = '"orders" names a file that is not there, or cannot be read'


@writers
@tables
def test_a_disk_that_lets_no_file_grow(
    table: StreamTable, driver_rows: int, lake: Lake, own_home: Path
) -> None:
    """Spark on a server of its own, since other tests may use the one of all."""
    lake = Lake(lake.root, driver_rows=driver_rows)
    ready(lake, table)
    refreshed(lake, table)  # Spark unpacks libraries, and never again where that failed
    write(lake, "orders", orders(22))
    with unharmed(lake, table), no_large_files(400):
        told(lake, table, EnvironmentProblem, FULL)
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


@writers
@tables
def test_a_full_disk(
    table: StreamTable, driver_rows: int, spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "disk"
    with small_disk(root):
        lake = Lake(root, spark=spark, driver_rows=driver_rows)
        write(lake, "orders", orders(*range(20)))
        ready(lake, table)
        with unharmed(lake, table), filled(root):
            assert "No space left on device" in told(lake, table, EnvironmentProblem, FULL)
        assert refreshed(lake, table).action is Action.DIFFERENTIAL


@writers
@tables
def test_a_table_that_must_not_be_written(table: StreamTable, lake: Lake) -> None:
    """Its data files may be, the commit not: the latest moment."""
    ready(lake, table)
    log = Path(lake.location(table.name)) / "_delta_log"
    with unharmed(lake, table), no_writing(log):
        assert str(log) in told(lake, table, EnvironmentProblem, DENIED)
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


@writers
def test_a_table_that_must_not_be_created(lake: Lake) -> None:
    with no_writing(Path(lake.root)):
        told(lake, LARGE, EnvironmentProblem, DENIED)
    assert lake.version(LARGE.name) is None
    assert refreshed(lake, LARGE).version == 0


@pytest.mark.parametrize("whose", ["orders", LARGE.name])
@pytest.mark.parametrize("known", [True, False], ids=["read before", "new"])
def test_a_log_that_must_not_be_read(whose: str, known: bool, lake: Lake) -> None:
    ready(lake, LARGE)
    asked = lake if known else Lake(lake.root)
    with unharmed(lake, LARGE), no_reading(Path(lake.location(whose)) / "_delta_log"):
        with pytest.raises(EnvironmentProblem, match=DENIED) as raised:
            asked.refresh(LARGE)
        assert "Permission denied" in raised.value.why
        assert raised.value.where.startswith(lake.root)
    assert refreshed(lake, LARGE).action is Action.DIFFERENTIAL


def commit_of(log: Path, place: int) -> Path:
    return sorted(log.glob("*.json"))[place]


def _cut(log: Path) -> None:
    newest = commit_of(log, -1)
    newest.write_bytes(newest.read_bytes()[:-40])


def _bad_checkpoint(log: Path) -> None:
    (log / "00000000000000000001.checkpoint.parquet").write_bytes(b"garbage")
    (log / "_last_checkpoint").write_text('{"version":1,"size":1}')


def _next_is_garbage(log: Path) -> None:
    newest = commit_of(log, -1)
    (log / f"{int(newest.stem) + 1:020d}.json").write_text('{"commitInfo": {"timest')


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": _cut,
    "overwritten": lambda log: commit_of(log, -1).write_bytes(b"\x00\xff garbage" * 50),
    "emptied": lambda log: commit_of(log, -1).write_bytes(b""),
    "first emptied": lambda log: commit_of(log, 0).write_bytes(b""),
    "in between emptied": lambda log: commit_of(log, -2).write_bytes(b""),
    "bad checkpoint": _bad_checkpoint,
    "next is garbage": _next_is_garbage,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("whose", ["orders", LARGE.name])
def test_a_damaged_log(whose: str, damage: str, lake: Lake) -> None:
    refreshed(lake, LARGE)
    write(lake, "orders", orders(19))
    refreshed(lake, LARGE)
    ready(lake, LARGE)
    log = Path(lake.location(whose)) / "_delta_log"
    with unharmed(lake, LARGE), kept_aside(log):
        DAMAGES[damage](log)
        for asked in (lake, Lake(lake.root)):
            if whose == "orders" or damage != "in between emptied":
                assert str(log.parent) in told(asked, LARGE, DamagedTable, UNREADABLE)
            asked.controls.resume(LARGE.name)
    assert refreshed(lake, LARGE).action is Action.DIFFERENTIAL


def test_a_first_refresh_believes_no_empty_commit(lake: Lake) -> None:
    write(lake, "orders", orders(20, 21))
    log = Path(lake.location("orders")) / "_delta_log"
    with kept_aside(log):
        DAMAGES["emptied"](log)
        told(lake, LARGE, DamagedTable, UNREADABLE)
    assert refreshed(lake, LARGE).row_count == 22


def _gone(folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        file.unlink()


def _short(folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:200])


def _spoilt(folder: Path) -> None:
    """The pages are damaged, and what a reader plans by, the footer, is not."""
    for file in folder.glob("*.parquet"):
        content = bytearray(file.read_bytes())
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        content[4:footer] = b"\xff" * (footer - 4)
        file.write_bytes(content)


@writers
@tables
@pytest.mark.parametrize("damage", [_gone, _short, _spoilt], ids=["gone", "cut", "spoilt"])
def test_files_of_a_source(damage: Callable[[Path], None], table: StreamTable, lake: Lake) -> None:
    ready(lake, table)
    folder = Path(lake.location("orders"))
    with unharmed(lake, table), kept_aside(folder):
        damage(folder)
        shutil.rmtree(folder / "_change_data", ignore_errors=True)
        assert "part-" in told(lake, table, DamagedTable, NO_FILE)
    lake.controls.resume(table.name)
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


@pytest.mark.parametrize("damage", [_short, _spoilt], ids=["cut", "spoilt"])
def test_a_file_that_spark_cannot_read_while_it_writes_is_named(
    damage: Callable[[Path], None], spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's own error begins with the table that it writes."""
    read = tmp_path / "read"
    read.mkdir()
    write_table(pa.table({"id": [1, 2]}), read / "part-1.parquet")
    rows = spark.read.schema("id BIGINT").parquet(str(read))
    damage(read)
    with pytest.raises(LostHistory) as raised, translate_errors():
        rows.write.format("delta").save(str(tmp_path / "written"))
    assert "part-1.parquet" in first_line(str(raised.value))
    assert place_in(str(raised.value)).endswith("part-1.parquet")


@pytest.mark.parametrize("emptied", [True, False], ids=["its log is empty", "all is gone"])
def test_a_source_that_is_gone_and_comes_back(emptied: bool, lake: Lake) -> None:
    ready(lake, LARGE)
    folder = Path(lake.location("orders"))
    with unharmed(lake, LARGE), kept_aside(folder):
        shutil.rmtree(folder / "_delta_log" if emptied else folder)
        what = 'source "orders" is not a Delta table' if emptied else 'there is no table "orders"'
        told(lake, LARGE, MissingSource, what)
    assert refreshed(lake, LARGE).action is Action.DIFFERENTIAL


@writers
@pytest.mark.parametrize("damage", [_gone, _short], ids=["gone", "cut"])
def test_files_of_the_stream_table_are_made_again(
    damage: Callable[[Path], None], lake: Lake
) -> None:
    ready(lake, TOTALS)
    damage(Path(lake.location(TOTALS.name)))
    done = refreshed(lake, TOTALS, Action.REINITIALIZE)
    assert done.reason.endswith("no longer has all files of the window")


def test_a_version_that_spark_no_longer_reads_is_history_that_is_gone(lake: Lake) -> None:
    """Its SQLSTATE is that of a number out of range, which would be an error of the rows."""
    create(lake, "cleaned", "id INT", checkpointInterval=1)
    for number in range(3):
        on_spark(lake, f"INSERT INTO {{cleaned}} VALUES ({number})")
    for file in Path(lake.location("cleaned"), "_delta_log").glob("*0000[01].*"):
        file.unlink()
    with pytest.raises(LostHistory), translate_errors():
        on_spark(lake, "SELECT * FROM {cleaned} VERSION AS OF 0").collect()


PAIRS = maintained(
    "mart.pairs", "SELECT a.id AS one, b.id AS other FROM orders AS a CROSS JOIN orders AS b"
)
COUNTS = replace(
    PAIRS,
    name="mart.counts",
    query="SELECT a.customer, COUNT(*) AS n FROM orders AS a CROSS JOIN orders AS b "
    "CROSS JOIN orders AS c WHERE a.id + b.id <> c.id GROUP BY a.customer",
)


@pytest.mark.parametrize(
    ("table", "module", "step", "rows"),
    [(COUNTS, differential, "change", 20_000), (PAIRS, spark_writer, "write_bag", 2_000)],
    ids=["computes", "writes"],
)
def test_spark_is_killed_in_the_middle_of_a_statement(
    table: StreamTable,
    module: object,
    step: str,
    rows: int,
    own_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = Lake(tmp_path / "lake", driver_rows=1_000_000 if step == "change" else 0)
    write(lake, "orders", orders(*range(10)))
    refreshed(lake, table)
    write(lake, "orders", orders(*range(10, rows)))
    first, do = server_status(), getattr(module, step)
    assert first is not None

    def kill() -> None:
        time.sleep(3)
        psutil.Process(first.pid).kill()

    def with_a_killer(*args: object) -> object:
        threading.Thread(target=kill).start()
        return do(*args)

    with unharmed(lake, table), monkeypatch.context() as patch:
        patch.setattr(module, step, with_a_killer)
        told(lake, table, LostSpark, "Spark stopped during the refresh")
    source(lake).delete("id >= 20")

    refreshed(lake, table, Action.DIFFERENTIAL)

    second = server_status()
    assert second is not None
    assert second.pid != first.pid


def many(first: int, count: int) -> pa.Table:
    ids = pa.array(range(first, first + count), pa.int64())
    note = pa.array([f"a note of some length about the order {i}" for i in range(count)])
    return pa.table({"id": ids, "note": note})


@pytest.mark.parametrize("driver_rows", [LIMIT, 10**9], ids=["default", "all to the driver"])
def test_an_enormous_change(driver_rows: int, own_home: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", driver_rows=driver_rows)
    table = replace(PAIRS, name="mart.notes", query="SELECT id, note FROM orders WHERE id > 3")
    write(lake, "orders", many(0, 10))
    refreshed(lake, table)
    write(lake, "orders", many(10, 2_000_000))
    if driver_rows == LIMIT:
        assert refreshed(lake, table).inserted == 2_000_000
        return
    try:
        lake.refresh(table)
    except EnvironmentProblem as error:
        assert "not enough memory" in error.what or "Spark stopped" in error.what
        assert lake.frontier(table) == {"orders": 0}
    refreshed(Lake(lake.root), table)
