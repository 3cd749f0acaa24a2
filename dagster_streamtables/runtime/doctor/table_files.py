"""The data files and change files that are stored below a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dagster_streamtables.runtime.delta.log_paths import FOLDER, is_table
from dagster_streamtables.runtime.doctor.paths import Paths

_CHANGES = "_change_data"
_CHANGE = "cdc-"
"""With column mapping or random prefixes, Spark stores change files in the folders of data."""


@dataclass(frozen=True)
class StoredFile:
    path: str
    """As `Paths.plain` returns it."""
    shown: str
    """As the store has it, relative to the table."""
    written: float
    """When it was written, by the store's clock, in seconds since 1970."""
    is_change: bool


def stored_files(files: Any, paths: Paths) -> list[StoredFile]:
    """The Parquet files of a table, without those of tables in folders below it.

    Deletion vectors are left out: Spark writes one for a file whose rows are all deleted, and then
    removes the file without naming the vector (4.1).
    """
    from pyarrow.fs import FileSelector

    listed = files.get_file_info(FileSelector("", recursive=True))
    tables = {each.path.partition(f"/{FOLDER}")[0] for each in listed if _is_log(each.path)}
    return [
        StoredFile(paths.plain(each.path), each.path, each.mtime_ns / 1e9, _is_change(each.path))
        for each in listed
        if each.is_file and _is_data(each.path) and tables.isdisjoint(_folders(each.path))
    ]


def _is_log(path: str) -> bool:
    """Whether it is the log, or a file in the log, of a table in a folder below."""
    return is_table(path.split("/")[1:])


def _folders(path: str) -> Iterator[str]:
    """The folders that a file is in.

    >>> list(_folders("a/b/c"))
    ['a', 'a/b']
    """
    parts = path.split("/")
    return ("/".join(parts[:n]) for n in range(1, len(parts)))


def _is_data(path: str) -> bool:
    """Folders of other things begin with ``_``; so may the folder of a partition, ``_day=1``."""
    return path.endswith(".parquet") and not any(map(_is_hidden, path.split("/")))


def _is_hidden(part: str) -> bool:
    return part.startswith(("_", ".")) and "=" not in part and part != _CHANGES


def _is_change(path: str) -> bool:
    *folders, name = path.split("/")
    return folders[:1] == [_CHANGES] or name.startswith(_CHANGE)
