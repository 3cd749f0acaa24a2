"""The data files of a version, read in this process exactly as Spark reads them, or not at all.

Two engines may read different rows from one Parquet file:

    times           See `value_encodings`. Of INT96, pyarrow can keep microseconds.
    CHAR(n)         a file may hold the text without its padding; Spark pads it for a reader.
    partitions      delta-rs may write the empty text as a value, which Spark reads as such;
                    delta-rs's own list of the files has NULL instead.
    text            Spark keeps any bytes in a STRING, for example those that `CAST(value AS
                    STRING)` makes of a binary one. Arrow, its readers and delta-rs take every text
                    for UTF-8: Python raises, some libraries read beyond the text, and delta-rs
                    refuses the whole file. So no such text comes to this process.

So pyarrow reads files here, and each footer is checked. delta-rs reads a table only if both engines
are known to read all of its files alike (`alike`), whoever wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from dagster_streamtables.runtime.delta.value_encodings import (
    far_files,
    have_times,
    in_old_calendar,
    is_misread,
    paths_of,
    statistic,
    time_columns,
)
from dagster_streamtables.runtime.errors.table_errors import NOT_UTF8, no_utf8

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
    """The same rows.

    Raises:
        OnlySpark: A text is no UTF-8.
    """
    if not is_utf8(rows):
        raise OnlySpark
    return rows


@contextmanager
def read_by_delta_rs() -> Iterator[None]:
    """Where delta-rs reads rows.

    Raises:
        OnlySpark: A text in one of its files is no UTF-8.
    """
    try:
        yield
    except Exception as error:  # of no class of its own
        if NOT_UTF8 in str(error):
            raise OnlySpark from error
        raise


@contextmanager
def translate_text_errors(location: str) -> Iterator[None]:
    """Tell that delta-rs cannot read a text of a table, where nothing else can.

    Raises:
        SourceProblem: It is no UTF-8.
    """
    try:
        with read_by_delta_rs():
            yield
    except OnlySpark as error:
        raise no_utf8(location) from error


def is_spelled_alike(wanted: pa.Schema, found: pa.Schema) -> bool:
    """Whether a file has the names of a table as they are, or has not got them at all.

    CONVERT TO DELTA keeps files whose columns differ from the table's in case. Spark finds them;
    here, and in delta-rs, they would be NULL.
    """
    return _is_alike(pa.struct(list(wanted)), pa.struct(list(found)))


def _is_alike(wanted: pa.DataType, found: pa.DataType) -> bool:
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        return all(_is_field_alike(wanted.field(n), found) for n in range(wanted.num_fields))
    if wanted.num_fields != found.num_fields:
        return True
    parts = range(wanted.num_fields)  # of a list or a map, whose names mean nothing
    return all(_is_alike(wanted.field(n).type, found.field(n).type) for n in parts)


def _is_field_alike(field: pa.Field, found: pa.DataType) -> bool:
    there = [found.field(n) for n in range(found.num_fields)]
    same = [each for each in there if each.name.lower() == field.name.lower()]
    if not same:
        return True
    exactly = [each.name for each in same] == [field.name]
    return exactly and _is_alike(field.type, same[0].type)


_PADDED = re.compile(r"\bchar\(")
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"
_AT_ONCE = 16
_MOST_KNOWN = 100_000


def pads(log: TableLog, columns: Iterable[str] | None = None) -> bool:
    """Whether Spark pads any of the columns, or a field in one; None means all columns."""
    wanted = set(log.columns if columns is None else columns)
    return any(_has_char_type(field) for field in log.fields if field["name"] in wanted)


def _has_char_type(node: Any) -> bool:
    if isinstance(node, dict):
        told = str((node.get("metadata") or {}).get(_CHAR, "")).lower()
        return bool(_PADDED.search(told)) or any(map(_has_char_type, node.values()))
    return isinstance(node, list) and any(map(_has_char_type, node))


def rows_of(log: TableLog, file: DataFile, columns: Sequence[str], *more: str) -> pa.Table:
    """The rows of one file, in the types of the table.

    Args:
        log: The table.
        file: One of its data files, or of its Change Data Feed.
        columns: Columns of the table; NULL if the file is older than the column.
        more: Columns that only the file has, unchanged.

    Raises:
        OnlySpark: Spark would read different rows.
    """
    schema = schema_of(log, columns)
    with open_parquet(log.files, file.path) as opened:
        if in_old_calendar(opened.metadata) and have_times(log, columns):
            raise OnlySpark
        there = opened.schema_arrow
        own = pa.schema([field for field in schema if field.name not in file.partition])
        if not is_spelled_alike(own, there):
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

    For most files, the minimum and maximum in the log suffice; the footers of the others are read,
    once each.

    Args:
        log: The table.
        every: Read the footer of every file: a table that somebody else wrote may have files
            whose columns are spelled otherwise.
    """
    if pads(log) or replaces_text(log):
        return False
    told = time_columns(log)
    doubtful = far_files(log, told) if told and log.adds.num_rows else []
    paths = paths_of(log.adds) if every and log.adds.num_rows else []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        if any(list(pool.map(lambda path: is_misread(log, unquote(path)), doubtful))):
            return False
        return all(list(pool.map(lambda path: _is_spelled_alike(log, unquote(path)), paths)))


def replaces_text(log: TableLog) -> bool:
    """Whether the minimum or maximum of a text may be another in the log.

    Spark writes U+FFFD there for bytes that are no UTF-8. A reader that skips files by it misses
    rows: between the bytes 0x93 and 0xC3 is no UTF-8, so "é" is below a minimum that was 0x93.
    """
    texts = [name for name, type_ in log.columns.items() if type_.startswith("string")]
    if not texts or not log.adds.num_rows:
        return False
    ends = (statistic(log, f"{end}.{name}") for name in texts for end in ("min", "max"))
    return any(_has_replacement_char(values) for values in ends if values is not None)


def _has_replacement_char(values: Any) -> bool:
    return bool(pc.any(pc.match_substring(values, "\ufffd")).as_py())


_spelled: set[tuple[str, str, str]] = set()
"""(Table, file) of the files whose columns are spelled as the table's."""


def _is_spelled_alike(log: TableLog, path: str) -> bool:
    key = log.location, log.id, path
    if key in _spelled:
        return True
    try:
        with open_parquet(log.files, path) as file:
            names = file.schema_arrow
    except (OSError, pa.ArrowException):
        return True  # whoever reads the file will name it
    own = [name for name in log.columns if name not in log.partitions]
    if not is_spelled_alike(schema_of(log, own), names):
        return False
    if len(_spelled) > _MOST_KNOWN:
        _spelled.clear()
    _spelled.add(key)
    return True
