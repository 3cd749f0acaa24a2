"""Files of a table are read so that no thread of Arrow holds a Python object."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables.runtime.delta.arrow import may_use_threads, opened_parquet
from dagster_streamtables.runtime.delta.delta_log import log_at
from dagster_streamtables.runtime.delta.names import files_below


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


def test_a_client_in_python_is_asked_by_the_reader_alone(tmp_path: Path) -> None:
    rows = pa.table({name: list(range(50_000)) for name in "abcdef"})
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=1_000)
    folder = Folder(tmp_path)
    files = fs.PyFileSystem(folder)
    assert not may_use_threads(files)
    with opened_parquet(files, "t.parquet") as opened:
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
