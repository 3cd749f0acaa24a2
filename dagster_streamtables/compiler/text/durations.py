"""Lengths of time, as texts of numbers and units, in microseconds."""

from __future__ import annotations

import re

_SECOND = 1_000_000
_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": 86_400 * _SECOND,
    "week": 7 * 86_400 * _SECOND,
}
_PART = re.compile(r"\s*([+-]?\d+)\s+([a-z]+?)s?(?=\s|$)")


def microseconds(text: str) -> int | None:
    """
    >>> microseconds("10 minutes"), microseconds("interval 1 hour 30 minutes"), microseconds("-5")
    (600000000, 5400000000, None)

    Returns:
        None if it is no length of time. A month has none, since months differ.
    """
    rest, total = text.strip().lower().removeprefix("interval "), 0
    if not rest:
        return None
    while rest:
        part = _PART.match(rest)
        if part is None or part[2] not in _UNITS:
            return None
        total += int(part[1]) * _UNITS[part[2]]
        rest = rest[part.end() :]
    return total
