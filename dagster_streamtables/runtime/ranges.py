"""Where the values of a column of local rows lie, so that of other tables only that is read.

A few ranges rather than one: a change is often of the newest keys and of some old ones, and all
that lies between the two need not be read.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes the functions of pyarrow.compute when it is imported, where no checker sees them.

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.compiler import Bounds

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 8
"""Ranges; each is one more comparison for every row that is read."""
_WIDE = 20
"""A gap of less than this part of the whole is too narrow to leave a file unread."""
_EPOCH = date(1970, 1, 1)
_LONG = 200
"""Characters of a text that a statement should not repeat."""
_DAYS = (-719_162, 2_932_896)
"""The years from 1 to 9999, which are those that a literal can have, as days since 1970."""


def bounds(values: pa.ChunkedArray) -> Bounds | None:
    """The ranges of the values; None where the type has no order that every reader shares."""
    import pyarrow as pa
    import pyarrow.compute as pc

    some = pc.unique(values).drop_null().sort()
    null = values.null_count > 0
    if pa.types.is_integer(values.type):
        ends = _ranges(some.cast(pa.int64()).to_pylist())
        return Bounds(tuple((_number(low), _number(high)) for low, high in ends), null)
    if pa.types.is_date32(values.type):
        days = some.cast(pa.int32()).to_pylist()
        if days and (days[0] < _DAYS[0] or days[-1] > _DAYS[1]):
            return None
        return Bounds(tuple((_date(low), _date(high)) for low, high in _ranges(days)), null)
    if pa.types.is_string(values.type):
        texts = some.to_pylist()
        listed = (
            [(each, each) for each in texts] if len(texts) <= _MOST else [(texts[0], texts[-1])]
        )
        if any(len(each) > _LONG for pair in listed for each in pair):
            return None
        return Bounds(tuple((_text(low), _text(high)) for low, high in listed), null)
    return None


def _ranges(ordered: list[int]) -> list[tuple[int, int]]:
    """Few numbers each by itself, more in a few ranges, apart where the gaps are widest.

    >>> _ranges([1, 2, 3, 500])
    [(1, 1), (2, 2), (3, 3), (500, 500)]
    >>> _ranges([*range(10), 500, 501])
    [(0, 9), (500, 501)]
    """
    if not ordered:
        return []
    steps = list(pairwise(ordered))
    if len(ordered) > _MOST:
        wide = (ordered[-1] - ordered[0]) // _WIDE
        apart = sorted(steps, key=lambda step: step[0] - step[1])[: _MOST - 1]
        steps = sorted(step for step in apart if step[1] - step[0] > wide)
    lows = [ordered[0], *(after for _, after in steps)]
    highs = [*(before for before, _ in steps), ordered[-1]]
    return list(zip(lows, highs, strict=True))


def _number(value: int) -> exp.Expr:
    return exp.convert(value)


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _date(days: int) -> exp.Expr:
    return exp.cast(exp.Literal.string(str(_EPOCH + timedelta(days))), "DATE")
