"""Reading the message of an error that somebody else wrote."""

from __future__ import annotations

import re

_PLACE = re.compile(r"[;.]?\s*\(?line \d+,? pos \d+\)?[;.]*\s*$")
_CAUSE = re.compile(r"\s*(?:\x1b\[\d+m)*↳(?:\x1b\[\d+m)*\s*")
_ANSWER = re.compile(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", re.DOTALL)
"""What S3 and its like answer, in XML."""
_PATH = re.compile(r"(?<![\w.])(?:file:)?/[\w.][^\s'\"()#]+")


def first_line(message: str) -> str:
    """The first line that says something; of a chain of causes, as delta-rs has it, each.

    >>> first_line("Generic S3 error\\n ↳ Error performing GET http://s3/lake\\n ↳ 403 Forbidden")
    'Generic S3 error: Error performing GET http://s3/lake: 403 Forbidden'

    Without Spark's place, which is one in the SQL that it was handed, not in its author's:

    >>> first_line("[X] no column `a`. SQLSTATE: 42703; line 1 pos 7;\\n'Project")
    '[X] no column `a`. SQLSTATE: 42703'
    """
    return ": ".join(dict.fromkeys(map(_first_line, _CAUSE.split(message))))


def _first_line(message: str) -> str:
    answer = _ANSWER.search(message)
    if answer is not None:
        return f"{answer[1]}, {answer[2]}"
    line = next((line.strip() for line in message.splitlines() if line.strip()), message)
    return _PLACE.sub("", line)


def line_of(message: str, pattern: re.Pattern[str]) -> str | None:
    """The line in which the pattern is found, without the names of Java's classes before it."""
    found = next((line for line in message.splitlines() if pattern.search(line)), None)
    return None if found is None else re.sub(r"^.*?(?=[^:]*: [^:]*$)", "", found.strip()).strip()


def place_in(message: str) -> str:
    """The first path in a message.

    >>> place_in("Error while reading file:///lake/part-1.parquet. SQLSTATE: KD001")
    '/lake/part-1.parquet'
    """
    found = _PATH.search(message)
    return found.group().rstrip(".,:;") if found else ""
