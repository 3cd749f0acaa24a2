"""The data files that make up a version of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from dagster_streamtables.runtime.delta.delta_log import TableLog

_READ = ("path", "num_records")
_PARTITION = "partition."
_NULL = "__HIVE_DEFAULT_PARTITION__"
UNTOLD = object()
"""A partition value that is NULL or the empty text: delta-rs shows both as NULL, Spark does not."""


@dataclass(frozen=True)
class DataFile:
    path: str
    """Relative to the table, or absolute, decoded."""
    partition: Mapping[str, Any]
    """Partition column → its value, of the column's type, or `UNTOLD`."""
    rows: int | None
    """Rows in the file, including those under a deletion vector; None if the log lacks them."""

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


def live_files(log: TableLog) -> dict[str, DataFile]:
    """The files of a table at its version, by path."""
    if not log.adds.num_rows:
        return {}
    # Not the statistics: their times may be none of Python's, such as the end of 9999 in New York.
    held = [n for n in log.adds.column_names if n in _READ or n.startswith(_PARTITION)]
    columns = log.adds.select(held).to_pydict()
    paths = [unquote(path) for path in columns["path"]]
    rows = columns.get("num_records") or [None] * len(paths)
    names = {n: n.removeprefix(_PARTITION) for n in columns if n.startswith(_PARTITION)}
    values = {name: _partition_values(log, name, columns[n], paths) for n, name in names.items()}
    return {
        path: DataFile(path, {name: column[i] for name, column in values.items()}, rows[i])
        for i, path in enumerate(paths)
    }


def _partition_values(log: TableLog, name: str, values: list[Any], paths: list[str]) -> list[Any]:
    """A NULL is recognized by the folder into which both engines write it."""
    if not log.columns.get(name, "string").startswith("string"):
        return values
    folder = f"{name}={_NULL}"
    pairs = zip(values, paths, strict=True)
    return [UNTOLD if v is None and folder not in p.split("/") else v for v, p in pairs]


def total_rows(files: Iterable[DataFile]) -> int | None:
    """The number of rows of some files; None if it is unknown for one of them."""
    counts = [file.rows for file in files]
    return None if None in counts else sum(filter(None, counts))
