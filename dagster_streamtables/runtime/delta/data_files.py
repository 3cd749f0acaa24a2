"""The data files that make up a version of a table, and which of them are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from dagster_streamtables.runtime.delta.delta_log import TableLog

_READ = ("path", "num_records")
_PARTITION = "partition."
_NULL = "__HIVE_DEFAULT_PARTITION__"
_TOLD = ("boolean", "tinyint", "smallint", "int", "bigint", "decimal", "string", "date")
UNTOLD = object()
"""A partition value that delta-rs may tell otherwise than Spark does, or that Python has not."""


def is_exact_in_partitions(type_: str) -> bool:
    """Whether delta-rs tells the partition values of a type as Spark reads them.

    It reads the escapes of a BINARY as bytes, and a TIMESTAMP without a zone as UTC, while Spark
    reads it in the zone of its session.
    """
    return type_.partition("(")[0] in _TOLD


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
    held = [name for name in log.adds.column_names if name in _READ]
    columns = log.adds.select(held).to_pydict()
    paths = [unquote(path) for path in columns["path"]]
    rows = columns.get("num_records") or [None] * len(paths)
    divided = [name for name in log.adds.column_names if name.startswith(_PARTITION)]
    values = {n.removeprefix(_PARTITION): _partition_values(log, n, paths) for n in divided}
    return {
        path: DataFile(path, {name: column[i] for name, column in values.items()}, rows[i])
        for i, path in enumerate(paths)
    }


def _partition_values(log: TableLog, column: str, paths: list[str]) -> list[Any]:
    name = column.removeprefix(_PARTITION)
    type_ = log.columns.get(name, "string")
    try:
        values = (
            log.adds.column(column).to_pylist()
            if is_exact_in_partitions(type_)
            else [UNTOLD] * len(paths)
        )
    except OverflowError:  # a day after 9999
        return [UNTOLD] * len(paths)
    if not type_.startswith("string"):
        return values
    # delta-rs shows the empty text as NULL. A NULL is known by the folder that both engines write.
    folder = f"{name}={_NULL}"
    pairs = zip(values, paths, strict=True)
    return [UNTOLD if v is None and folder not in p.split("/") else v for v, p in pairs]


def total_rows(files: Iterable[DataFile]) -> int | None:
    """The number of rows of some files; None if it is unknown for one of them."""
    counts = [file.rows for file in files]
    return None if None in counts else sum(filter(None, counts))


_HERE = re.compile(r"(?:file:(?://)?)?(/.*)", re.DOTALL)
"""A file of this machine, as Spark writes it in a clone (``file:/…``), as a URI, or as a path."""
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)


def missing_files(log: TableLog, files: Iterable[DataFile]) -> list[str]:
    """The paths of some files that were deleted.

    A shallow clone reads files of another table by their absolute paths; those in another store
    are not looked for.
    """
    paths = [file.path for file in files]
    here = {path: found[1] for path in paths if (found := _HERE.fullmatch(path))}
    own = [path for path in paths if path not in here and not _ELSEWHERE.match(path)]
    gone = [info.path for info in log.files.get_file_info(own) if info.type.name == "NotFound"]
    return gone + [path for path, place in here.items() if not Path(place).exists()]
