"""The ranges of the values in a column of local rows, to read only those of other tables.

Several ranges, not one: a change often has the newest keys and some old ones, and the rows between
need not be read.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.compiler import Bounds

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_MOST = 8
"""Number of ranges; each adds a comparison for every row that is read."""
_WIDE = 20
"""A gap of less than one in this many parts of the whole is too narrow to skip a file."""
_EPOCH = date(1970, 1, 1)
_LONG = 200
"""Characters of a text that a statement should not contain. Neither should it contain a ``${``,
which Spark, in a user's session, replaces by a setting, even in quotes."""
_DAYS = (-719_162, 2_932_896)
"""The years 1 to 9999, which a literal can have, as days since 1970."""
_SKIPPED = (-141_437, -141_428)
"""The days 5 to 14 of October 1582, which the old calendar does not have."""


def bounds(values: pa.ChunkedArray) -> Bounds | None:
    """The ranges of the values; None if the type has no order that all readers share."""
    import pyarrow as pa

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
    """That a column lies in the ranges of the values, for delta-rs; None without ranges."""
    known = bounds(values)
    return None if known is None else known.holds(column).sql("postgres")


def _distinct(values: pa.ChunkedArray) -> np.ndarray:
    import numpy as np
    import pyarrow as pa

    return np.unique(values.drop_null().cast(pa.int64()).to_numpy())


def _ranges(ordered: np.ndarray) -> list[tuple[int, int]]:
    """A few numbers become single values; more become a few ranges, split at the widest gaps.

    >>> import numpy as np
    >>> _ranges(np.array([1, 2, 3, 500]))
    [(1, 1), (2, 2), (3, 3), (500, 500)]
    >>> _ranges(np.array([*range(10), 500, 501]))
    [(0, 9), (500, 501)]
    """
    import numpy as np

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
    import pyarrow.compute as pc

    some = pc.unique(values).drop_null()
    if len(some) <= _MOST:
        return [(each, each) for each in some.sort().to_pylist()]
    ends = pc.min_max(some).as_py()
    return [(ends["min"], ends["max"])]


def _lowest_day(low: int) -> int:
    """The lowest day for Spark, which makes the 15th of a skipped day where it reads Parquet.

    `d = DATE '1582-10-10'` skips all of a file's rows then, though one of them has that day; as the
    highest day, it only reads more. (`spark.sql.datetime.java8API.enabled` would mend it, but Delta
    fails with that.)
    """
    return _SKIPPED[0] - 1 if _SKIPPED[0] <= low <= _SKIPPED[1] else low


def _date(days: int) -> exp.Expr:
    return exp.cast(exp.Literal.string(str(_EPOCH + timedelta(days))), "DATE")
