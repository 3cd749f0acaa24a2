"""The data files of a version, read in this process exactly as Spark reads them, or not at all.

Two engines may read different rows from one Parquet file:

    times           See `value_encodings`. pyarrow can read INT96 in microseconds.
    CHAR(n)         A file may have the text without its padding; Spark adds it.
    partitions      delta-rs writes and Spark reads the empty text as a value; delta-rs's own list
                    of the files has NULL instead.
    text            Spark keeps any bytes in a STRING, as from `CAST(x'93' AS STRING)`. Arrow and
                    delta-rs require UTF-8: Python raises, some libraries read beyond the text, and
                    delta-rs refuses the whole file. So no such text comes to this process.

So pyarrow reads files here, and each footer is checked. delta-rs reads a table only if both engines
surely read all of its files alike (`alike`); otherwise Spark reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.arrow import (
    may_use_threads,
    open_parquet,
    pa,
    pc,
    plain_schema,
)
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import metadata_in
from dagster_streamtables.runtime.delta.value_encodings import (
    are_read_alike,
    has_names_of,
    have_times,
    in_old_calendar,
    statistic,
)
from dagster_streamtables.runtime.errors.table_errors import NOT_UTF8, no_utf8

_READ = ("path", "num_records")
_PARTITION = "partition."
_NULL = "__HIVE_DEFAULT_PARTITION__"
_TOLD = ("boolean", "tinyint", "smallint", "int", "bigint", "decimal", "string", "date")
UNTOLD = object()
"""A partition value that delta-rs may read otherwise than Spark, or that Python lacks."""


def is_exact_in_partitions(type_: str) -> bool:
    """Whether delta-rs reads the partition values of a type as Spark does.

    It reads the escapes of a BINARY as bytes, and a TIMESTAMP without a zone as UTC, not in the
    zone of the session.
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
    # Without the statistics, whose times may be beyond Python's, as the end of 9999 in New York.
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
    if not is_exact_in_partitions(type_):
        return [UNTOLD] * len(paths)
    try:
        values = log.adds.column(column).to_pylist()
    except OverflowError:  # a day after 9999
        return [UNTOLD] * len(paths)
    if not type_.startswith("string"):
        return values
    # delta-rs shows the empty text as NULL. The folder of a NULL has a name of its own.
    folder = f"{name}={_NULL}"
    pairs = zip(values, paths, strict=True)
    return [UNTOLD if v is None and folder not in p.split("/") else v for v, p in pairs]


def sum_rows(counts: Iterable[int | None]) -> int | None:
    """The sum of numbers of rows; None if one of them is unknown."""
    found = list(counts)
    return None if None in found else sum(filter(None, found))


_HERE = re.compile(r"(?:file:(?://)?)?(/.*)", re.DOTALL)
"""A file of this machine, as Spark writes it in a clone (``file:/…``), as a URI, or as a path."""
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)


def missing_files(log: TableLog, files: Iterable[DataFile]) -> list[str]:
    """The paths of those files that were deleted, as far as they are in this store.

    A shallow clone reads files of another table by their absolute paths.
    """
    paths = [file.path for file in files]
    here = {path: found[1] for path in paths if (found := _HERE.fullmatch(path))}
    own = [path for path in paths if path not in here and not _ELSEWHERE.match(path)]
    gone = [info.path for info in log.files.get_file_info(own) if info.type.name == "NotFound"]
    return gone + [path for path, place in here.items() if not Path(place).exists()]


class OnlySpark(Exception):
    """Rows that would be read differently here, or not at all."""


def is_utf8(rows: pa.Table) -> bool:
    """Whether every text, at any depth, is UTF-8."""
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def require_utf8(rows: pa.Table) -> pa.Table:
    """The same rows; raises OnlySpark if a text is not UTF-8."""
    if not is_utf8(rows):
        raise OnlySpark
    return rows


@contextmanager
def read_by_delta_rs() -> Iterator[None]:
    """While delta-rs reads rows: raise OnlySpark if it meets a text that is not UTF-8."""
    try:
        yield
    except Exception as error:  # delta-rs has no class for it
        if NOT_UTF8 in str(error):
            raise OnlySpark from error
        raise


@contextmanager
def translate_text_errors(location: str) -> Iterator[None]:
    """While only delta-rs can read a table: raise SourceProblem for a text that is not UTF-8."""
    try:
        with read_by_delta_rs():
            yield
    except OnlySpark as error:
        raise no_utf8(location) from error


_PADDED = re.compile(r"\bchar\(")
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"


def pads(log: TableLog, columns: Iterable[str] | None = None) -> bool:
    """Whether Spark pads any of the columns, or a field in one; None means all columns."""
    wanted = set(log.columns if columns is None else columns)
    fields = [field for field in log.fields if field["name"] in wanted]
    return any(_PADDED.search(str(each.get(_CHAR, "")).lower()) for each in metadata_in(fields))


def rows_of(log: TableLog, file: DataFile, columns: Sequence[str], *more: str) -> pa.Table:
    """The rows of one data or feed file, in the types of the table; NULL in columns newer than it.

    `more` are columns that only the file has, returned unchanged.

    Raises:
        OnlySpark: Spark would read different rows.
    """
    schema = schema_of(log, columns)
    with open_parquet(log.files, file.path) as opened:
        if in_old_calendar(opened.metadata) and have_times(log, columns):
            raise OnlySpark
        there = opened.schema_arrow
        own = pa.schema([field for field in schema if field.name not in file.partition])
        if not has_names_of(own, there):
            raise OnlySpark
        found = [name for name in (*own.names, *more) if name in there.names]
        rows = require_utf8(opened.read(found, use_threads=may_use_threads(log.files)))
        count = opened.metadata.num_rows
    arrays = [_column(rows, file.partition, field, count) for field in schema]
    fields = [*schema, *(rows.schema.field(name) for name in more)]
    return pa.Table.from_arrays(
        [*arrays, *(rows.column(name) for name in more)], schema=pa.schema(fields)
    )


def schema_of(log: TableLog, columns: Sequence[str]) -> pa.Schema:
    """Columns of a table in Arrow's types."""
    return plain_schema(pa.schema([log.arrow_schema.field(name) for name in columns]))


def _column(rows: pa.Table, partition: Mapping[str, Any], field: pa.Field, count: int) -> object:
    if field.name in partition:
        value = partition[field.name]
        if value is UNTOLD:
            raise OnlySpark
        if isinstance(value, str) and not pa.types.is_string(field.type):
            # As in the log, where the empty text is a value only in text columns.
            return pa.array([value or None] * count, pa.string()).cast(field.type)
        return pa.array([value] * count, field.type)
    if field.name in rows.column_names:
        return rows.column(field.name).cast(field.type)
    return pa.nulls(count, field.type)


def alike(log: TableLog, *, every: bool = False) -> bool:
    """Whether delta-rs, which checks no footer and skips files by statistics, reads the table as
    Spark does.

    With `every`, all footers are read, once: other writers' files may spell the columns
    differently. Otherwise only if the minimum and maximum in the log do not suffice.
    """
    return not (pads(log) or replaces_text(log)) and are_read_alike(log, every=every)


def replaces_text(log: TableLog) -> bool:
    """Whether the log may have a wrong minimum or maximum of a text.

    Spark writes U+FFFD there for bytes that are not UTF-8. A reader that skips files then misses
    rows: "é" begins with 0xC3, and is above the text 0x93, but below the minimum U+FFFD.
    """
    texts = [name for name, type_ in log.columns.items() if type_.startswith("string")]
    if not texts or not log.adds.num_rows:
        return False
    ends = (statistic(log, f"{end}.{name}") for name in texts for end in ("min", "max"))
    return any(
        pc.any(pc.match_substring(values, "\ufffd")).as_py()
        for values in ends
        if values is not None
    )
