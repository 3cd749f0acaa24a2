"""What a server offers: the relations that its operator lists, and the limits of a reader."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from dagster_streamtables.errors import RefusedOperation, one_line
from dagster_streamtables.runtime.lake import Lake

_GIVEN = re.compile(r"(?P<name>[^\s=]+)=(?P<text>.+)", re.DOTALL)
_NAME = re.compile(r"[^\s=/?#%\x00-\x20\x7f-\x9f]+")


@dataclass(frozen=True)
class Limits:
    """What readers may take.

    A batch is read when the one before was sent, so a reader that is slow holds no more than one.
    """

    connections: int = 100
    rows_per_second: int | None = 100_000
    """Of each connection."""
    seconds_unread: float = 60.0
    """A reader that takes nothing for so long is disconnected."""
    most_rows: int = 8_192
    """Of one event."""
    body_bytes: int = 65_536
    """The longest query."""

    @property
    def batch_rows(self) -> int:
        """At most the rows of a second, so that a pause between two batches is short."""
        return min(self.most_rows, self.rows_per_second or self.most_rows)


@dataclass(frozen=True)
class ServerConfig:
    """What is served, and to whom."""

    lake: Lake
    relations: dict[str, str]
    """Name → table, path or SELECT."""
    queries: bool = False
    """Whether readers may send a SELECT of their own."""
    token: str | None = None
    """What a reader must know; None for no token."""
    hosts: frozenset[str] | None = None
    """The names by which it may be addressed; None for any."""
    limits: Limits = field(default_factory=Limits)
    keep_alive: float = 15.0
    """Seconds of silence after which a comment is sent."""


def relations_of(given: Iterable[str]) -> dict[str, str]:
    """``mart.revenue``, or ``name=SELECT …`` → name and relation.

    >>> relations_of(["mart.revenue", "big=SELECT * FROM t WHERE a = 1"])
    {'mart.revenue': 'mart.revenue', 'big': 'SELECT * FROM t WHERE a = 1'}

    Raises:
        RefusedOperation: A name cannot stand in an address, or is given twice.
    """
    found: dict[str, str] = {}
    for each in given:
        parts = _GIVEN.fullmatch(each.strip())
        name, text = (parts["name"], parts["text"]) if parts else (each.strip(), each.strip())
        if not _NAME.fullmatch(name):
            raise RefusedOperation(
                f'"{one_line(name[:80])}" cannot be the name of a served relation',
                why="the name is a part of its address: it has no spaces, and none of / ? # %",
                fix='give it a name, as in --relation "big_orders=SELECT …"',
            )
        if name in found:
            raise RefusedOperation(
                f'two served relations are called "{one_line(name)}"',
                fix='give one of them another name, as in --relation "other=SELECT …"',
            )
        found[name] = text
    return found
