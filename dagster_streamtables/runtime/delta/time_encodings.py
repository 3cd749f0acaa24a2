"""Times in data files that engines read differently: by the file's footer, and by its statistics.

    INT96           Spark's default. delta-rs reads it in nanoseconds, in which 9999 is 1816.
    old calendar    Spark may write days before 1582, and times before 1900, in the calendar of that
                    time, and marks this in the footer. Only Spark converts them back. Ten days of
                    1582 are not in that calendar.
    milliseconds    Spark may write them (`spark.sql.parquet.outputTimestampType`), and cuts off
                    microseconds without a word.
    far times       Arrow and Python have no years after 9999.

What a rewrite in another encoding may lose: see `rewrites`.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dagster_streamtables.runtime.delta.arrow import open_parquet
from dagster_streamtables.runtime.delta.delta_log import TableLog

if TYPE_CHECKING:
    import pyarrow as pa

INT96, OLD_CALENDAR, MILLISECONDS = "INT96", "old calendar", "milliseconds"

_OLD = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_SPARK = b"org.apache.spark.version"
_FIRST = b"3.1.0"
"""Earlier versions of Spark use only the old calendar, without a mark in the footer."""
_MOST_KNOWN = 100_000


def in_old_calendar(footer: Any) -> bool:
    """Whether the file of a footer has its days and times in the old calendar."""
    said = footer.metadata or {}
    return any(key in said for key in _OLD) or said.get(_SPARK, _FIRST) < _FIRST


_known: dict[tuple[str, str, str], frozenset[str]] = {}
"""(Table, file) → its encodings. Files never change."""


def encodings_of(log: TableLog, path: str) -> frozenset[str] | None:
    """Which of the encodings above a file has; None if it cannot be read."""
    import pyarrow as pa

    key = log.location, log.id, path
    if key not in _known:
        try:
            with open_parquet(log.files, path) as file:
                footer = file.metadata
        except (OSError, pa.ArrowException):
            return None  # Spark's error will name the file
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        _known[key] = _encodings(footer)
    return _known.get(key)


def _encodings(footer: Any) -> frozenset[str]:
    columns = [footer.schema.column(each) for each in range(footer.num_columns)]
    found = {INT96 for column in columns if column.physical_type == "INT96"}
    found |= {MILLISECONDS for column in columns if _is_in_milliseconds(column)}
    return frozenset(found | ({OLD_CALENDAR} if in_old_calendar(footer) else set()))


def _is_in_milliseconds(column: Any) -> bool:
    kind = column.logical_type
    return kind.type == "TIMESTAMP" and json.loads(kind.to_json())["timeUnit"] == "milliseconds"


def is_misread(log: TableLog, path: str) -> bool:
    """Whether delta-rs may read other times from a file than Spark does, or the file is gone."""
    found = encodings_of(log, path)
    return found is None or not found.isdisjoint({INT96, OLD_CALENDAR})


_TIMES = re.compile(r"\b(date|timestamp|timestamp_ntz)\b")
"""Types whose values depend on the reader. No engine writes TIMESTAMP_NTZ as INT96, but to delta-rs
the INT96 of a folder that it converts is of that type."""
_SAFE = datetime(1900, 1, 2), datetime(2262, 1, 1)
"""Between these, every engine reads all encodings of a time alike."""


def time_columns(log: TableLog) -> list[str]:
    return [name for name in log.columns if have_times(log, [name]) and name not in log.partitions]


def have_times(log: TableLog, columns: Iterable[str]) -> bool:
    return any(_TIMES.search(log.columns[name]) for name in columns)


def far_files(log: TableLog, names: Sequence[str]) -> list[str]:
    """The files that may hold an unsafe value in these columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    safe = pa.array([True] * log.adds.num_rows)
    for name in names:
        low, high, nulls = (statistic(log, f"{each}.{name}") for each in _STATISTICS)
        if low is None or high is None or nulls is None:
            return paths_of(log.adds)
        least, most = (pa.scalar(each, pa.timestamp("us")) for each in _SAFE)
        within = pc.and_(pc.greater_equal(low, least), pc.less(high, most))
        empty = pc.equal(nulls, log.adds.column("num_records"))
        safe = pc.and_(safe, pc.fill_null(pc.or_kleene(within, empty), False))
    return paths_of(log.adds.filter(pc.invert(safe)))


_STATISTICS = ("min", "max", "null_count")


def statistic(log: TableLog, name: str) -> Any:
    import pyarrow as pa

    # The path of a field in a struct may equal the name of a column with a dot.
    if log.adds.column_names.count(name) != 1:
        return None
    values = log.adds.column(name)
    return values.cast(pa.timestamp("us")) if pa.types.is_temporal(values.type) else values


def paths_of(adds: pa.Table) -> list[str]:
    return adds.column("path").to_pylist()
