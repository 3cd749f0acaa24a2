"""Reading the message of an error that somebody else wrote."""

from __future__ import annotations

import re

_PLACE = re.compile(r"[;.]?\s*\(?line \d+,? pos \d+\)?[;.]*\s*$")
_PATH = re.compile(r"(?<![\w.])(?:file:)?/[\w.][^\s'\"()#]+")


def first_line(message: str) -> str:
    """The first line that says something.

    Without Spark's place, which is one in the SQL that it was handed, not in its author's:

    >>> first_line("[X] no column `a`. SQLSTATE: 42703; line 1 pos 7;\\n'Project")
    '[X] no column `a`. SQLSTATE: 42703'
    """
    line = next((line.strip() for line in message.splitlines() if line.strip()), message)
    return _PLACE.sub("", line)


def line_of(message: str, pattern: re.Pattern[str]) -> str | None:
    """The line in which the pattern is found, without the names of Java's classes before it."""
    found = next((line for line in message.splitlines() if pattern.search(line)), None)
    return None if found is None else re.sub(r"^.*?(?=[^:]*: [^:]*$)", "", found.strip()).strip()


def place_in(message: str) -> str:
    """The first path in a message."""
    found = _PATH.search(message)
    return found.group() if found else ""
