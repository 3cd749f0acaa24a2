"""Where the values of a column of local rows lie, so that of other tables only that is read.

A few ranges rather than one: a change is often of the newest keys and of some old ones, and all
that lies between the two need not be read.
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
"""Ranges; each is one more comparison for every row that is read."""
_WIDE = 20
"""A gap of less than this part of the whole is too narrow to leave a file unread."""
_EPOCH = date(1970, 1, 1)
_LONG = 200
"""Characters of a text that a statement should not repeat. Nor one that Spark, in a session that is
handed in, would put a setting into: it does so in all of a statement, in quotes, too."""
_DAYS = (-719_162, 2_932_896)
"""The years from 1 to 9999, which are those that a literal can have, as days since 1970."""


def bounds(values: pa.ChunkedArray) -> Bounds | None:
    """The ranges of the values; None where the type has no order that every reader shares."""
    import pyarrow as pa

    if pa.types.is_integer(values.type):
        ends = [(exp.convert(low), exp.convert(high)) for low, high in _ranges(_distinct(values))]
    elif pa.types.is_date32(values.type):
        days = _ranges(_distinct(values.cast(pa.int32())))
        if days and (days[0][0] < _DAYS[0] or days[-1][1] > _DAYS[1]):
            return None
        ends = [(_date(low), _date(high)) for low, high in days]
    elif pa.types.is_string(values.type):
        texts = _texts(values)
        if any(len(each) > _LONG or "${" in each for pair in texts for each in pair):
            return None
        ends = [(exp.Literal.string(low), exp.Literal.string(high)) for low, high in texts]
    else:
        return None
    return Bounds(tuple(ends), values.null_count > 0)


def condition(column: exp.Column, values: pa.ChunkedArray) -> str | None:
    """That a column lies in the ranges of the values, as delta-rs reads it; None without ranges."""
    known = bounds(values)
    return None if known is None else known.holds(column).sql("postgres")


def _distinct(values: pa.ChunkedArray) -> np.ndarray:
    import numpy as np
    import pyarrow as pa

    return np.unique(values.drop_null().cast(pa.int64()).to_numpy())


def _ranges(ordered: np.ndarray) -> list[tuple[int, int]]:
    """Few numbers each by itself, more in a few ranges, apart where the gaps are widest.

    >>> import numpy as np
    >>> _ranges(np.array([1, 2, 3, 500]))
    [(1, 1), (2, 2), (3, 3), (500, 500)]
    >>> _ranges(np.array([*range(10), 500, 501]))
    [(0, 9), (500, 501)]
    """
    import numpy as np

    if not len(ordered):
        return []
    # Without a sign, the widest gap of all fits as well.
    gaps = np.diff(ordered.view(np.uint64))
    wide = (int(ordered[-1]) - int(ordered[0])) // _WIDE if len(ordered) > _MOST else 0
    apart = np.flatnonzero(gaps > np.uint64(wide))
    apart = np.sort(apart[np.argsort(gaps[apart])[1 - _MOST :]])
    lows, highs = ordered[[0, *(apart + 1)]], ordered[[*apart, -1]]
    return list(zip(lows.tolist(), highs.tolist(), strict=True))


def _texts(values: pa.ChunkedArray) -> list[tuple[str, str]]:
    """Few texts each by itself, or the first and the last."""
    import pyarrow.compute as pc

    some = pc.unique(values).drop_null()
    if len(some) <= _MOST:
        return [(each, each) for each in some.sort().to_pylist()]
    ends = pc.min_max(some).as_py()
    return [(ends["min"], ends["max"])]


def _date(days: int) -> exp.Expr:
    return exp.cast(exp.Literal.string(str(_EPOCH + timedelta(days))), "DATE")
