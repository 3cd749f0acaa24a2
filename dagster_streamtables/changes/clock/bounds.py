"""Where a subscription begins and ends: versions, milliseconds, or dates and times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from dagster_streamtables.errors import RefusedOperation

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class AtLeast:
    """Begin at a time, or at the oldest one that can still be read, if that is later."""

    time: int | datetime


Bound = int | datetime
AsOf = Bound | AtLeast | None
"""None: the newest time that can be read."""


class EmptyBoundsWarning(UserWarning):
    """A subscription begins where it ends, so it is empty."""


def as_of_bound(given: Any) -> AsOf:
    """
    Args:
        given: An int, a date or time, either as text, `AtLeast` of one, "latest" or None.

    Raises:
        RefusedOperation: It is none of these.
    """
    if given is None or given == "latest":
        return None
    if isinstance(given, AtLeast):
        return AtLeast(bound(given.time, "as_of"))
    return bound(given, "as_of")


def bound(given: Any, name: str) -> Bound:
    """
    Args:
        given: A number of the clock, or a date or time; without a zone it is in UTC.
        name: The name of the argument, for the error.

    Raises:
        RefusedOperation: It is neither.
    """
    found = _read(given)
    if found is None or (isinstance(found, int) and found < 0):
        raise RefusedOperation(
            f"{name}={given!r} is not a time",
            why="a time is a version, a number of milliseconds since 1970, or a date and time",
            fix=f"write {name}=12, or {name}=datetime(2026, 11, 23, tzinfo=UTC)",
        )
    return found


def _read(given: Any) -> Bound | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, int):
        return given
    if isinstance(given, datetime):
        return given if given.tzinfo is not None else given.replace(tzinfo=UTC)
    if isinstance(given, date):
        return datetime(given.year, given.month, given.day, tzinfo=UTC)
    if isinstance(given, str):
        return _from_text(given.strip())
    return None


def _from_text(text: str) -> Bound | None:
    if _NUMBER.fullmatch(text):
        return int(text)
    try:
        return _read(datetime.fromisoformat(text))
    except ValueError:
        return None


def _seconds(bound: Bound) -> float:
    return bound if isinstance(bound, int) else bound.timestamp()


def milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def require_order(as_of: Bound, up_to: Bound) -> None:
    """
    Raises:
        RefusedOperation: A subscription would end before it begins.
    """
    if _seconds(up_to) < _seconds(as_of):
        raise RefusedOperation(
            f"the subscription would end at {up_to}, before it begins at {as_of}",
            why="as_of is the first time, and up_to the first that is left out",
            fix="give an up_to after as_of, or leave it out",
        )
