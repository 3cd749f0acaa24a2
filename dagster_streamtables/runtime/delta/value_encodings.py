"""Encodings of values that engines read differently, and the values that rewrites change.

Times, by the file's footer and its statistics:

    INT96           Spark's default. delta-rs reads it in nanoseconds, in which 9999 is 1816.
    old calendar    Spark may write days before 1582 and times before 1900 in the calendar of their
                    time, with a mark in the footer. Only Spark converts them back. The calendar
                    lacks ten days of 1582.
    milliseconds    Spark may write them (`spark.sql.parquet.outputTimestampType`), and silently
                    truncates microseconds.
    far times       Arrow and Python have no years after 9999.

Rewrites may change rows that they only carry over, though their commits report no change of these
rows, or have a feed without them:

    delta-rs    misreads INT96 and the old calendar: compacting turns the year 9999 into 1816.
    Spark       may write an encoding without all times: compacting truncates microseconds.
    both        turn the empty text of a partition into NULL.
    both        write the time of a partition in their own form: Spark in UTC, with a mark, delta-rs
                without a zone. Spark reads that in the zone of its session, so the time changes
                unless the zone is UTC.
    Spark       names columns in files as in the schema when column mapping ends: two that were
                renamed to each other have swapped their values, and the schema is as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from dagster_streamtables.runtime.delta.actions import Action
from dagster_streamtables.runtime.delta.arrow import open_parquet, pa, pc
from dagster_streamtables.runtime.delta.delta_log import TableLog

INT96, OLD_CALENDAR, MILLISECONDS = "INT96", "old calendar", "milliseconds"
OTHER_NAMES = "other names"
"""Not an encoding, but likewise in the footer: columns whose names differ from the table's in case.
CONVERT TO DELTA keeps such files. Spark finds the columns; pyarrow and delta-rs would read NULL."""
_MISREAD, _LOSING = frozenset({INT96, OLD_CALENDAR}), frozenset({OLD_CALENDAR, MILLISECONDS})
_OLD = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_SPARK = b"org.apache.spark.version"
_FIRST = b"3.1.0"
"""Earlier versions of Spark use only the old calendar, without a mark in the footer."""
_AT_ONCE = 16
_MOST_KNOWN = 100_000


def in_old_calendar(footer: Any) -> bool:
    """Whether the file of a footer has its days and times in the old calendar."""
    said = footer.metadata or {}
    return any(key in said for key in _OLD) or said.get(_SPARK, _FIRST) < _FIRST


_known: dict[tuple[str, str, str], frozenset[str]] = {}
"""(Table, file) → its encodings. Files never change."""


def encodings_of(log: TableLog, path: str) -> frozenset[str] | None:
    """Which of the encodings above a file has; None if it cannot be read."""
    key = log.location, log.id, path
    if key not in _known:
        try:
            with open_parquet(log.files, path) as file:
                found = _encodings(log, file.metadata, file.schema_arrow)
        except (OSError, pa.ArrowException):
            return None  # Spark's error will name the file
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        _known[key] = found
    return _known.get(key)


def _encodings(log: TableLog, footer: Any, schema: pa.Schema) -> frozenset[str]:
    columns = [footer.schema.column(each) for each in range(footer.num_columns)]
    own = [log.arrow_schema.field(name) for name in log.columns if name not in log.partitions]
    found = {
        INT96: any(column.physical_type == "INT96" for column in columns),
        MILLISECONDS: any(map(_is_in_milliseconds, columns)),
        OLD_CALENDAR: in_old_calendar(footer),
        OTHER_NAMES: not has_names_of(pa.schema(own), schema),
    }
    return frozenset(name for name, has in found.items() if has)


def _is_in_milliseconds(column: Any) -> bool:
    kind = column.logical_type
    return kind.type == "TIMESTAMP" and json.loads(kind.to_json())["timeUnit"] == "milliseconds"


def has_names_of(wanted: pa.Schema, found: pa.Schema) -> bool:
    """Whether a file has the columns of a table under their exact names, or not at all."""
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


def are_read_alike(log: TableLog, *, every: bool) -> bool:
    """Whether delta-rs reads the times and columns of all files as Spark does. With `every`, all
    footers are read, not only those of files that may hold a far time."""
    times = time_columns(log)
    far = set(far_files(log, times)) if times else set[str]()

    def is_alike(path: str) -> bool:
        found = encodings_of(log, unquote(path))
        if found is None:
            return path not in far
        return OTHER_NAMES not in found and (path not in far or found.isdisjoint(_MISREAD))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return all(pool.map(is_alike, paths_of(log.adds) if every else far))


_TIMES = re.compile(r"\b(date|timestamp|timestamp_ntz)\b")
"""Types whose values depend on the reader. No engine writes TIMESTAMP_NTZ as INT96, but delta-rs
gives that type to the INT96 of a folder that it converts."""
_SAFE = datetime(1900, 1, 2), datetime(2262, 1, 1)
"""Between these, every engine reads all encodings of a time alike."""


def time_columns(log: TableLog) -> list[str]:
    return [name for name in log.columns if have_times(log, [name]) and name not in log.partitions]


def have_times(log: TableLog, columns: Iterable[str]) -> bool:
    return any(_TIMES.search(log.columns[name]) for name in columns)


def far_files(log: TableLog, names: Sequence[str]) -> list[str]:
    """The files that may hold an unsafe value in these columns."""
    safe = pa.array([True] * log.adds.num_rows, pa.bool_())
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
    # The path of a field in a struct may equal the name of a column with a dot.
    if log.adds.column_names.count(name) != 1:
        return None
    values = log.adds.column(name)
    return values.cast(pa.timestamp("us")) if pa.types.is_temporal(values.type) else values


def paths_of(adds: pa.Table) -> list[str]:
    return adds.column("path").to_pylist() if adds.num_rows else []


_IN_ZONE = re.compile(r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$")
"""How the text of a time ends that names its zone."""


@dataclass(frozen=True)
class Rewrite:
    """A commit of an engine that writes all of its files in one encoding."""

    version: int
    written: tuple[str, ...]
    """One of its new data files, and one of its feed's, as far as it has any."""
    removed: tuple[str, ...]
    """The files whose rows it may have carried over."""


def rewrites_of(
    version: int, adds: Sequence[Action], removes: Sequence[Action], feed: Sequence[Action]
) -> list[Rewrite]:
    """A commit as a rewrite, if it may be one. A file that gets a vector is not rewritten."""
    came, went, fed = ([unquote(each["path"]) for each in some] for some in (adds, removes, feed))
    gone = set(went)
    new = [path for path in came if path not in gone]
    written = (*new[:1], *fed[:1])
    return [Rewrite(version, written, tuple(went))] if went and written else []


def misreads(log: TableLog, before: int, rewritten: Collection[str]) -> bool:
    """Whether delta-rs rewrote files that it may misread: with far times by the log and such an
    encoding, or deleted by now."""
    first = log.at(before) if rewritten and time_columns(log) else None
    if first is None:
        return False
    found = (encodings_of(first, path) for path in sorted(set(rewritten) - _near_files(first)))
    return any(each is None or not each.isdisjoint(_MISREAD) for each in found)


def _near_files(log: TableLog) -> set[str]:
    """The files whose times are the same in all encodings, except milliseconds."""
    far = set(far_files(log, time_columns(log)))
    return {unquote(path) for path in paths_of(log.adds) if path not in far}


def cuts_times(log: TableLog, rewrites: Sequence[Rewrite]) -> bool:
    """Whether a rewrite may have lost times by its encoding.

    The footers of the removed files are read only if a written file is in an encoding without all
    times. A written file that is gone counts as being in all such encodings, a removed one as being
    in none.
    """
    if not rewrites or not time_columns(log):
        return False
    written = list(dict.fromkeys(path for each in rewrites for path in each.written))
    found = dict(zip(written, _losing(log, written, gone=_LOSING), strict=True))
    for each in rewrites:
        losing = frozenset[str]().union(*(found[path] for path in each.written))
        if losing and _loses(log, each, losing):
            return True
    return False


def _loses(log: TableLog, rewrite: Rewrite, losing: frozenset[str]) -> bool:
    """Whether a removed file was not in an encoding that loses some of its times."""
    removed = rewrite.removed
    if MILLISECONDS not in losing:
        before = log.at(rewrite.version - 1)
        near = set[str]() if before is None else _near_files(before)
        removed = tuple(path for path in removed if path not in near)
    parts = (removed[at : at + _AT_ONCE] for at in range(0, len(removed), _AT_ONCE))
    return any(losing - had for part in parts for had in _losing(log, part, gone=frozenset()))


def _losing(log: TableLog, paths: Sequence[str], gone: frozenset[str]) -> list[frozenset[str]]:
    """The encodings of each file that lose times; `gone` for a missing file."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda path: encodings_of(log, path), paths)
        return [gone if each is None else each & _LOSING for each in found]


def loses_empty_texts(adds: Sequence[Action], removes: Sequence[Action]) -> bool:
    """Whether rows of the partition of the empty text may have moved to the partition of NULL, as
    after OPTIMIZE by either engine, or UPDATE of another row by Spark."""
    came, went = map(_partitions_of, (adds, removes))
    empty = {name for values in went for name, value in values.items() if value == ""}
    return any(values.get(name) is None for values in came for name in empty)


def moves_times(written: Sequence[Action], removes: Sequence[Action]) -> bool:
    """Whether rows, or their copies in the feed, may have another partition time for a reader.

    The columns are not looked up: a text that looks like a time but is none never changes its form,
    so both forms occur only if other rows were written.
    """
    came, went = map(_forms, (written, removes))
    return any(len(came[name] | went[name]) > 1 for name in came.keys() & went.keys())


def _forms(actions: Sequence[Action]) -> dict[str, set[bool]]:
    """Partition column → whether its values name a zone."""
    found: dict[str, set[bool]] = {}
    for values in _partitions_of(actions):
        for name, value in values.items():
            if value is not None:
                found.setdefault(name, set()).add(bool(_IN_ZONE.search(value)))
    return found


def _partitions_of(actions: Sequence[Action]) -> list[Mapping[str, str | None]]:
    return [each.get("partitionValues") or {} for each in actions]
