"""Read the message of an error that another library wrote."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_WHOLE = re.compile(r"\s*\[[A-Z][\w.]*\] .*?SQLSTATE: \w{5}", re.DOTALL)
"""Spark's message for a condition of its list, which may have several lines."""
_WRAPPED = re.compile(
    r"\s*(?:\([\w.$]+\) (?:[\w.$]+: )?|\[TASK_WRITE_FAILED\].*?\nCaused by: [\w.$]+: )(?=\[[A-Z])",
    re.DOTALL,
)
"""The text before the condition of an error inside another one, of a broadcast or a write."""
_CONDITION = re.compile(r"\[([A-Z][\w.]*)\] .*?SQLSTATE: (\w{5})", re.DOTALL)
_PLACE = re.compile(r"[;.]?\s*\(?line \d+,? pos \d+\)?[;.]*\s*$")
_CAUSE = re.compile(r"\s*(?:\x1b\[\d+m)*↳(?:\x1b\[\d+m)*\s*")
_ANSWER = re.compile(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", re.DOTALL)
"""The XML answer of S3 and similar stores."""
_OS = re.compile(r'(?:Error: )?Os \{ code: (\d+), kind: \w+, message: "([^"]*)" \}')
"""An error of the operating system as Rust prints it for its programmers."""
_PATH = re.compile(r"(?<![\w.])(?:file:)?/[\w.][^\s'\"()#]+")


def first_line(message: str) -> str:
    """The first line that is not empty; of a chain of causes of delta-rs, one for each.

    >>> first_line("Generic S3 error\\n ↳ Error performing GET http://s3/lake\\n ↳ 403 Forbidden")
    'Generic S3 error: Error performing GET http://s3/lake: 403 Forbidden'

    Without Spark's position, which is not in the author's SQL:

    >>> first_line("[X] no column `a`. SQLSTATE: 42703; line 1 pos 7;\\n'Project")
    '[X] no column `a`. SQLSTATE: 42703'

    With the whole message of a condition:

    >>> first_line("[X.Y] It may differ:\\nuse EXTRACT. SQLSTATE: 42K0B\\n\\nJVM stacktrace:\\n")
    '[X.Y] It may differ: use EXTRACT. SQLSTATE: 42K0B'
    """
    return ": ".join(dict.fromkeys(map(_first_line, _CAUSE.split(plain_words(message)))))


def _first_line(message: str) -> str:
    answer = _ANSWER.search(message)
    if answer is not None:
        return f"{answer[1]}, {answer[2]}"
    whole = _WHOLE.match(_WRAPPED.sub("", message, count=1))
    if whole is not None:
        return " ".join(line.strip() for line in whole[0].splitlines() if line.strip())
    line = next((line.strip() for line in message.splitlines() if line.strip()), message)
    return _PLACE.sub("", line)


def condition_of(error: PySparkException) -> str:
    """The condition of Spark's list; for an error in another one, the condition inside."""
    return _inside(error, 1) or error.getCondition() or ""


def sqlstate_of(error: PySparkException) -> str:
    """The SQLSTATE, found in the same way."""
    return _inside(error, 2) or error.getSqlState() or ""


def _inside(error: PySparkException, group: int) -> str:
    wrapped = _WRAPPED.match(str(error))
    found = wrapped and _CONDITION.match(str(error), wrapped.end())
    return found[group] if found else ""


def plain_words(message: str) -> str:
    """The message with errors of the operating system in its own words."""
    return _OS.sub(r"\2 (os error \1)", message)


def line_of(message: str, pattern: re.Pattern[str]) -> str | None:
    """The first line with the pattern, without the names of Java's classes before it.

    >>> os_error = 'Os { code: 20, kind: NotADirectory, message: "Not a directory" }'
    >>> line_of(f"Could not create /x/y\\nError: {os_error}", re.compile("Not a directory"))
    'Not a directory (os error 20)'
    """
    message = plain_words(message)
    found = next((line for line in message.splitlines() if pattern.search(line)), None)
    return None if found is None else re.sub(r"^.*?(?=[^:]*: [^:]*$)", "", found.strip()).strip()


def place_in(message: str) -> str:
    """The first path in a message.

    >>> place_in("Error while reading file:///lake/part-1.parquet. SQLSTATE: KD001")
    '/lake/part-1.parquet'
    """
    found = _PATH.search(message)
    return found.group().rstrip(".,:;") if found else ""
