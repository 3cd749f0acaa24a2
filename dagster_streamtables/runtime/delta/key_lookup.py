"""Read the stored rows of some keys in this process, by the ranges of the keys.

Spark would have to build a snapshot of a new version; delta-rs has it, and skips most files by
statistics. Several ranges, not one: a change often has the newest keys and some old ones, and the
rows between need not be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

from sqlglot import exp

from dagster_streamtables.compiler import Bounds
from dagster_streamtables.runtime.delta.arrow import np, pa, pc, plain_schema
from dagster_streamtables.runtime.delta.data_files import (
    UNTOLD,
    OnlySpark,
    alike,
    live_files,
    read_by_delta_rs,
)
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.table_schema import delta_rs_name, has_variants

_MOST = 8
"""Number of ranges; each adds a comparison for every row."""
_WIDE = 20
"""A gap of less than one in this many parts of the whole is too narrow to skip a file."""
_EPOCH = date(1970, 1, 1)
_LONG = 200
"""Maximum characters of a text in a statement. Nor may it contain ``${``, which Spark in a user's
session replaces by a setting, even in quotes."""
_DAYS = (-719_162, 2_932_896)
"""The years 1 to 9999 of literals, as days since 1970."""
_SKIPPED = (-141_437, -141_428)
"""The days 5 to 14 of October 1582, which the old calendar lacks."""


def bounds(values: pa.ChunkedArray) -> Bounds | None:
    """The ranges of the values; None if the type has no order that all readers share."""
    if pa.types.is_integer(values.type):
        ends = [(exp.convert(low), exp.convert(high)) for low, high in _ranges(_distinct(values))]
    elif pa.types.is_date32(values.type):
        days = _ranges(_distinct(values.cast(pa.int32())))
        if days and (days[0][0] < _DAYS[0] or days[-1][1] > _DAYS[1]):
            return None
        ends = [(_date(_lowest_day(low)), _date(high)) for low, high in days]
    elif pa.types.is_string(values.type):
        texts = _texts(values)
        if any(len(each) > _LONG or "${" in each for pair in texts for each in pair):
            return None
        ends = [(exp.Literal.string(low), exp.Literal.string(high)) for low, high in texts]
    else:
        return None
    return Bounds(tuple(ends), values.null_count > 0)


def condition(column: exp.Column, values: pa.ChunkedArray) -> str | None:
    """SQL: a column lies in the ranges of the values, for delta-rs; None without ranges."""
    known = bounds(values)
    return None if known is None else known.holds(column).sql("postgres")


def _distinct(values: pa.ChunkedArray) -> np.ndarray:
    return np.unique(values.drop_null().cast(pa.int64()).to_numpy())


def _ranges(ordered: np.ndarray) -> list[tuple[int, int]]:
    """A few numbers become single values; more become a few ranges, split at the widest gaps.

    >>> _ranges(np.array([*range(10), 500, 501]))
    [(0, 9), (500, 501)]
    """
    if not len(ordered):
        return []
    # Unsigned, even the widest possible gap fits.
    gaps = np.diff(ordered.view(np.uint64))
    wide = (int(ordered[-1]) - int(ordered[0])) // _WIDE if len(ordered) > _MOST else 0
    apart = np.flatnonzero(gaps > np.uint64(wide))
    apart = np.sort(apart[np.argsort(gaps[apart])[1 - _MOST :]])
    lows, highs = ordered[[0, *(apart + 1)]], ordered[[*apart, -1]]
    return list(zip(lows.tolist(), highs.tolist(), strict=True))


def _texts(values: pa.ChunkedArray) -> list[tuple[str, str]]:
    """A few texts become single values; more become the range from the first to the last."""
    some = pc.unique(values).drop_null()
    if len(some) <= _MOST:
        return [(each, each) for each in some.sort().to_pylist()]
    ends = pc.min_max(some).as_py()
    return [(ends["min"], ends["max"])]


def _lowest_day(low: int) -> int:
    """The lowest day for Spark, which takes a skipped day for the 15th when it reads Parquet.

    So it would miss that day in files; as the highest day, it only reads more.
    (`spark.sql.datetime.java8API.enabled` would fix it, but Delta fails with that.)
    """
    return _SKIPPED[0] - 1 if _SKIPPED[0] <= low <= _SKIPPED[1] else low


def _date(days: int) -> exp.Expr:
    return exp.cast(exp.Literal.string(str(_EPOCH + timedelta(days))), "DATE")


# Features of tables that delta-rs's engine cannot read.
_UNREADABLE = frozenset({"columnMapping", "typeWidening", "vacuumProtocolCheck"})
_LISTED = 2_000
"""Up to this many key values are listed one by one; more become ranges."""


def read_stored_rows(
    log: TableLog,
    keys: Mapping[str, pa.ChunkedArray],
    columns: Sequence[str],
    *,
    limit: int,
) -> pa.Table | None:
    """The stored rows of some keys, and perhaps of others, with `columns` in that order; None if
    Spark has to read them, or for more rows than `limit`.

    `keys`: key column → the values to find; empty for all rows.
    """
    if not _is_readable(log, columns, whole=not keys):
        return None
    listed = ", ".join(delta_rs_name(name) for name in columns)
    where = " AND ".join(among(name, values) for name, values in keys.items()) or "true"
    sql = f"SELECT {listed} FROM t WHERE {where} LIMIT {limit + 1}"
    try:
        with read_by_delta_rs():
            rows = pa.table(log.query(sql))
    except OnlySpark:
        return None
    rows = rows.cast(plain_schema(rows.schema))
    return rows if rows.num_rows <= limit else None


def among(name: str, values: pa.ChunkedArray) -> str:
    """A condition on a single key column, which a file's statistics can answer."""
    type_ = values.type
    if not (pa.types.is_integer(type_) or pa.types.is_string(type_) or pa.types.is_date(type_)):
        return "true"
    wanted = pc.unique(values).drop_null()
    null = f"{delta_rs_name(name)} IS NULL"
    if not len(wanted):
        return null
    if len(wanted) > _LISTED:
        return condition(exp.column(name, quoted=True), values) or "true"
    try:
        listed = ", ".join(map(_literal, wanted.to_pylist()))
    except OverflowError:  # Python has no day after 9999
        return "true"
    found = f"{delta_rs_name(name)} IN ({listed})"
    return f"({found} OR {null})" if values.null_count else f"({found})"


def _literal(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("'", "''")
    return f"DATE '{text}'" if isinstance(value, date) else f"'{text}'"


def stream_rows(log: TableLog, columns: Sequence[str]) -> Iterator[pa.Table] | None:
    """All rows of a table, a batch at a time; None if Spark has to read them."""
    if not _is_readable(log, columns, whole=True):
        return None
    if any(UNTOLD in file.partition.values() for file in live_files(log).values()):
        return None
    listed = ", ".join(map(delta_rs_name, columns))
    reader = pa.RecordBatchReader.from_stream(log.query(f"SELECT {listed} FROM t"))
    plain = plain_schema(reader.schema)
    return (pa.Table.from_batches([batch]).cast(plain) for batch in reader)


def _is_readable(log: TableLog, columns: Sequence[str], *, whole: bool) -> bool:
    """Whether delta-rs's engine reads these columns as Spark does.

    Only tables that are written here are not read as a whole.
    """
    if log.features & _UNREADABLE or log.maps_columns:
        return False
    return alike(log, every=whole) and not has_variants(log.columns[name] for name in columns)
