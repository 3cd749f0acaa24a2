"""What came of one query of the corpus."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from dagster_streamtables.errors import StreamTablesError

_STREAM_TABLE = re.compile(r'^stream table "[^"]*": ')
_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|'[^']*'")
_CALLED = re.compile(r"\b\w+\(\)")
_NUMBER = re.compile(r"\b\d+\b")


class Outcome(enum.StrEnum):
    EXACT = "exact"
    """After the first refresh and every window, the rows of plain Spark."""
    ACCEPTED = "accepted"
    """Compiled, and not refreshed, since the run has no windows."""
    REFUSED = "refused"
    """By an error of the product, with its reason."""
    REFUSED_BY_SPARK = "refused by Spark"
    """Plain Spark does not run the text."""
    REFUSED_BY_POSTGRES = "refused by PostgreSQL"
    """PostgreSQL does not take the text."""
    NOT_STORABLE = "not storable"
    """Delta has no such columns."""
    NOT_LOADED = "not loaded"
    """A table of the query cannot be made here."""
    ARBITRARY = "arbitrary"
    """Plain Spark itself has other rows when its inputs are in another order."""
    WRONG = "wrong"
    """Other rows, names or types than those of plain Spark."""
    FELL_BACK = "in full"
    """Recomputed, though its change should have been computed."""
    RAW = "raw"
    """An exception that is no error of the product."""
    SLOW = "too slow"
    """Longer than the limit."""
    UNFINISHED = "unfinished"
    """A defect of the harness ended its file early."""


DEFECTS = (Outcome.WRONG, Outcome.FELL_BACK, Outcome.RAW)
ASKED = (Outcome.EXACT, Outcome.ACCEPTED, Outcome.REFUSED, *DEFECTS, Outcome.SLOW)
"""Queries that Spark runs, Delta stores, and that have one answer."""


@dataclass
class Result:
    file: str
    number: int
    text: str
    """As it was given to the product and to plain Spark."""
    outcome: Outcome = Outcome.UNFINISHED
    reason: str = ""
    """Without what differs from one query to the next."""
    windows: int = 0
    """How many windows were compared, the first refresh not counted."""
    changed: bool = False
    """Whether a window changed rows of the stream table."""
    detail: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.file}:{self.number}"


def reason_of(error: BaseException) -> str:
    """The kind of an error: its words without names and numbers.

    >>> from dagster_streamtables.errors import UnsupportedQuery
    >>> reason_of(UnsupportedQuery('stream table "st_7": "a.b" has 12 columns'))
    'UnsupportedQuery: "…" has N columns'
    """
    if isinstance(error, StreamTablesError):
        what = _STREAM_TABLE.sub("", error.what)
    else:
        what = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {without_names(what)}"


def without_names(what: str) -> str:
    return _NUMBER.sub("N", _CALLED.sub("…()", _QUOTED.sub('"…"', what)))[:200]
