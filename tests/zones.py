"""Rows about the changes of clocks, for tests of the zone of a session."""

from __future__ import annotations

from itertools import cycle

INSTANTS = [
    "2024-03-30 22:30:00", "2024-03-31 00:30:00", "2024-03-31 00:59:59.5", "2024-03-31 01:00:00",
    "2024-03-31 01:30:00", "2024-03-31 23:30:00", "2024-10-26 23:30:00", "2024-10-27 00:30:00",
    "2024-10-27 01:30:00", "2024-10-27 02:30:00", "2024-03-10 06:30:00", "2024-03-10 07:30:00",
    "2024-11-03 05:30:00", "2024-11-03 06:30:00", "2024-02-29 12:00:00", "2024-04-30 22:10:00",
    "1999-12-31 23:59:59.999999",
]  # fmt: skip
"""In UTC, about the changes of the clocks of Berlin and New York."""
CLOCKS = [
    "2024-03-31 02:30", "2024-10-27 02:30", "2024-03-31 00:00", "2024-10-27 00:00",
    "2024-03-10 02:30", "2024-11-03 01:30", "2024-10-26 02:30", "1970-01-31 10:00:00.25",
]  # fmt: skip
"""Times that a clock never shows, or shows twice."""
COLUMNS = {"z": {"id": "int", "a": "timestamp", "b": "timestamp", "ts": "timestamp_ntz",
                 "d": "date", "n": "int"}}  # fmt: skip
Row = tuple[int, str, str, str, str, int]


def _rows() -> list[Row]:
    clocks, found = cycle(CLOCKS), list[Row]()
    for place, instant in enumerate(INSTANTS):
        for step in (1, 5, 8, 11):
            other, clock, number = (
                INSTANTS[(place + step) % len(INSTANTS)],
                next(clocks),
                len(found),
            )
            found.append((number, instant, other, clock, clock[:10], number % 9 * 7 - 21))
    return found


ROWS = _rows()
