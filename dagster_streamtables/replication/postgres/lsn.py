"""Positions in a server's log, as numbers and as PostgreSQL writes them."""

from __future__ import annotations


def lsn_of(text: str) -> int:
    """
    >>> lsn_of("1/16B3748")
    4318771016
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(lsn: int) -> str:
    """
    >>> lsn_text(4318771016)
    '1/16B3748'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
