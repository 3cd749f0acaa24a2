"""How numbers read in every text of the product: counts, durations, shares."""

from __future__ import annotations

from itertools import pairwise

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def count(number: int, noun: str) -> str:
    """A number of things, each named by a noun with a regular plural.

    >>> count(1, "changed row"), count(0, "row"), count(24_000, "file")
    ('1 changed row', '0 rows', '24,000 files')
    """
    return f"{number:,} {noun}" + "s" * (number != 1)


def duration(seconds: float | None) -> str:
    """A duration in its two largest units; empty if there is none.

    >>> duration(0.1234), duration(59.4), duration(125), duration(7300), duration(100_000)
    ('0.12 s', '59 s', '2 min 5 s', '2 h 1 min', '1 d 3 h')
    """
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.2f} s"
    for (large, many), (small, few) in pairwise(_UNITS):
        if seconds >= many:
            whole, rest = divmod(int(seconds), many)
            return f"{whole} {large} {rest // few} {small}"
    return f"{int(seconds)} s"


def share(part: float) -> str:
    """A part of a whole.

    >>> share(0.05), share(0.00123), share(1.0), share(0.9999), share(0.0)
    ('5%', '0.12%', '100%', '99.99%', '0%')
    """
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"
