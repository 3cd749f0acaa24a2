"""Which columns of a table hold times, and which of its files may hold far ones."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dagster_streamtables.runtime.delta.delta_log import TableLog

if TYPE_CHECKING:
    import pyarrow as pa

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
