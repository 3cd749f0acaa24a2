"""Durations as texts: a number and a unit."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_in(text: str) -> float | None:
    """The seconds of a duration; None if it is not one.

    >>> seconds_in("10s"), seconds_in("1.5"), seconds_in("500ms"), seconds_in("7d"), seconds_in("x")
    (10.0, 1.5, 0.5, 604800.0, None)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)", text.strip())
    return None if found is None else float(found[1]) * _UNITS[found[2]]
