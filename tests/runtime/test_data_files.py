"""Which versions are read from their data files, and that those hold what Delta shows.

They are read so that no thread of Arrow holds a Python object.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

from dagster_streamtables import Lake
from dagster_streamtables.runtime.checks.comparison import difference
from dagster_streamtables.runtime.compute.change_reader import at_version
from dagster_streamtables.runtime.delta.arrow import may_use_threads, open_parquet
from dagster_streamtables.runtime.delta.data_files import alike
from dagster_streamtables.runtime.delta.delta_log import log_at
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.delta.table_locations import files_below
from dagster_streamtables.runtime.delta.value_encodings import far_files, misreads
from dagster_streamtables.runtime.spark import parquet_scan
from dagster_streamtables.runtime.spark.parquet_scan import rows_of_files
from runtime.delta import create, log_of, on_spark, session, write
from runtime.orders import TOTALS, orders, source
from runtime.refreshes import maintained, refreshed
from runtime.ways import writers


def test_the_files_of_each_version_are_its_rows(lake: Lake) -> None:
    write(lake, "orders", orders(20, 21))
    source(lake).delete("id < 4")
    source(lake).optimize.compact()
    more = orders(30).append_column("colour", pa.array(["red"]))
    write(lake, "orders", more, schema_mode="merge", configuration=None)
    log = log_of(lake, "orders")

    for version in range(log.version + 1):
        then = log.at(version)
        assert then is not None
        paths = parquet_scan.data_files(then)
        assert paths is not None and len(paths) == then.adds.num_rows
        found = rows_of_files(session(lake), then, paths)
        assert found.columns == list(then.columns)
        assert not difference(
            found, at_version(session(lake), then.snapshot.table, version), zeros=True
        ).collect()


def test_the_columns_that_a_stream_table_keeps_for_itself_are_left_out(
    lake: Lake, spark: SparkSession
) -> None:
    lake.refresh(TOTALS)
    log = log_of(lake, TOTALS.name)
    paths = parquet_scan.data_files(log)
    assert paths is not None
    assert rows_of_files(spark, log, paths).columns == ["customer", "total"] != list(log.columns)


def _partitioned(lake: Lake) -> None:
    write(lake, "odd", orders(1, 2), partition_by=["customer"])


def _with_vectors(lake: Lake) -> None:
    create(lake, "odd", "id INT", enableDeletionVectors=True)
    on_spark(lake, "INSERT INTO {odd} SELECT CAST(id AS INT) FROM RANGE(0, 9, 1, 1)")
    on_spark(lake, "DELETE FROM {odd} WHERE id = 1")


def _with_chars(lake: Lake) -> None:
    create(lake, "odd", "code CHAR(3)")
    on_spark(lake, "INSERT INTO {odd} VALUES ('a')")


def _mapped(lake: Lake) -> None:
    create(lake, "odd", "id INT", **{"columnMapping.mode": "name"})
    on_spark(lake, "INSERT INTO {odd} VALUES (1)")


def _emptied(lake: Lake) -> None:
    write(lake, "odd", orders(1))
    DeltaTable(lake.location("odd")).delete()


@pytest.mark.parametrize("make", [_partitioned, _with_vectors, _with_chars, _mapped, _emptied])
def test_a_table_that_is_more_than_its_files_is_read_by_delta(
    make: Callable[[Lake], None], lake: Lake
) -> None:
    make(lake)
    assert parquet_scan.data_files(log_of(lake, "odd")) is None


@pytest.mark.smoke("deletion vectors")
def test_rows_under_deletion_vectors_are_not_counted(lake: Lake) -> None:
    _with_vectors(lake)
    counts = [log.row_count for version in (0, 1, 2) if (log := log_of(lake, "odd").at(version))]
    assert counts == [0, 9, 8]


@pytest.mark.spark
@pytest.mark.parametrize("folder", ["a b", "x*", "50%"])
def test_a_path_that_spark_takes_for_a_pattern_is_not_given_to_it(
    folder: str, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / folder)
    write(lake, "orders", orders(1))
    assert parquet_scan.data_files(log_of(lake, "orders")) is None


def test_what_proves_a_table_right_reads_through_delta(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a wrong list of files would be wrong on both sides, and equal."""
    lake.refresh(TOTALS)
    write(lake, "orders", orders(20, 21, amount=900))
    monkeypatch.setattr(parquet_scan, "data_files", lambda _: pytest.fail("it reads data files"))
    refreshed(lake, TOTALS, full=True)


@pytest.mark.long
@pytest.mark.parametrize(
    "query",
    ["SELECT id, t FROM src", "SELECT id % 2 AS odd, MAX(t) AS t FROM src GROUP BY id % 2"],
    ids=["bag", "most of a group"],
)
@writers
def test_the_last_second_of_9999_in_new_york_is_a_time(query: str, lake: Lake) -> None:
    """It is in the year 10000 of UTC, which Python's times lack, and a maximum in a checkpoint."""
    create(lake, "src", "id INT, t TIMESTAMP", checkpointInterval=1)
    last = "TIMESTAMP '9999-12-31 23:59:59 America/New_York'"
    on_spark(lake, f"INSERT INTO {{src}} VALUES (1, {last}), (2, TIMESTAMP '2020-01-01')")
    table = maintained("last", query)
    refreshed(lake, table)
    on_spark(lake, "UPDATE {src} SET id = 4 WHERE id = 1")
    assert refreshed(lake, table).action == "DIFFERENTIAL"


class Watched(io.FileIO):
    readers: set[int]

    def readinto(self, buffer: Any) -> int | None:
        self.readers.add(threading.get_ident())
        return super().readinto(buffer)

    def read(self, size: int | None = -1) -> bytes:
        self.readers.add(threading.get_ident())
        return super().read(-1 if size is None else size)


class Folder(fs.FSSpecHandler):
    """A store whose client is written in Python, which notes who asks it for bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.readers: set[int] = set()

    def open_input_file(self, path: str) -> pa.PythonFile:
        opened = Watched(str(self.folder / path))
        opened.readers = self.readers
        return pa.PythonFile(opened, mode="r")


def test_a_table_without_files_has_none_to_misread(tmp_path: Path) -> None:
    place = str(tmp_path / "empty")
    DeltaTable.create(place, Schema([Field("day", PrimitiveType("date"))]))
    log = Logs().newest(place)
    assert log is not None

    assert alike(log, every=True) and far_files(log, ["day"]) == []
    assert not misreads(log, 0, ())
    assert misreads(log, 0, {"written and rewritten since.parquet"})


def test_a_client_in_python_is_asked_by_the_reader_alone(tmp_path: Path) -> None:
    rows = pa.table({name: list(range(50_000)) for name in "abcdef"})
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=1_000)
    folder = Folder(tmp_path)
    files = fs.PyFileSystem(folder)
    assert not may_use_threads(files)
    with open_parquet(files, "t.parquet") as opened:
        assert opened.read(["a", "f"], use_threads=may_use_threads(files)) == rows.select("af")
    assert folder.readers == {threading.get_ident()}


def test_a_folder_is_read_without_python(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1, 2]}))
    log = log_at(str(tmp_path / "t"), 0, None)
    assert log and may_use_threads(log.files) and may_use_threads(files_below("/", None))
    [path] = (
        add["path"]
        for add in pa.table(DeltaTable(str(tmp_path / "t")).get_add_actions()).to_pylist()
    )
    assert log.rows_in(path) == 2
