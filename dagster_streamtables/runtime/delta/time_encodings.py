"""How the times of a data file are encoded, by its footer.

    INT96           Spark's default. delta-rs reads it in nanoseconds, in which 9999 is 1816.
    old calendar    Spark may write days before 1582, and times before 1900, in the calendar of that
                    time, and marks this in the footer. Only Spark converts them back. Ten days of
                    1582 are not in that calendar.
    milliseconds    Spark may write them (`spark.sql.parquet.outputTimestampType`), and cuts off
                    microseconds without a word.

What a rewrite in another encoding may lose: see `rewrites`.
"""

from __future__ import annotations

import json
from typing import Any

from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.parquet_files import opened_parquet

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
            with opened_parquet(log.files, path) as file:
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
