"""Timestamps without a zone, cut and shown: by Spark, through the session's zone.

`DATE_TRUNC` and `DATE_FORMAT` make an instant of such a timestamp first, so one that the session's
clock never shows (02:30, where it is set forward at 02:00) becomes another. Its date and its time
of day are read without a zone.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules.made import from_template, string
from dagster_streamtables.compiler.dialect.rules.query import call

_SECOND = "EXTRACT(SECOND FROM _x)"
_PAST = {"HOUR": f"MINUTE(_x) * 60 + {_SECOND}", "MINUTE": _SECOND, "SECOND": f"{_SECOND} % 1"}
_TIME = (
    f"TIMESTAMP_NTZ '2000-01-01 00:00:00' + MAKE_DT_INTERVAL(0, HOUR(_x), MINUTE(_x), {_SECOND})"
)
"""No clock of any zone was set on that day."""
_PIECE = re.compile(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']+")
_OF_TIME = "ahHkKmsS"


def truncate_local(value: exp.Expr, unit: str) -> exp.Expr:
    """The beginning of the unit, also a timestamp without a zone.

    Args:
        value: A timestamp without a zone.
        unit: SECOND to YEAR, in upper case.
    """
    if unit in _PAST:
        return from_template("_x - MAKE_DT_INTERVAL(0, 0, 0, _p)", x=value, p=past(value, unit))
    if unit == "DAY":
        return from_template("CAST(CAST(_x AS DATE) AS TIMESTAMP_NTZ)", x=value)
    return from_template(f"CAST(TRUNC(CAST(_x AS DATE), '{unit}') AS TIMESTAMP_NTZ)", x=value)


def past(value: exp.Expr, unit: str) -> exp.Expr:
    """The seconds since the beginning of an hour, minute or second, of the timestamp."""
    return from_template(_PAST[unit], x=value)


def date_of(value: exp.Expr) -> exp.Expr:
    """The date that a timestamp without a zone shows."""
    return from_template("CAST(_x AS DATE)", x=value)


def time_of(value: exp.Expr) -> exp.Expr:
    """The time of day that a timestamp without a zone shows, on a day of the year 2000."""
    return from_template(_TIME, x=value)


def format_local(value: exp.Expr, format_: str) -> exp.Expr:
    """A timestamp without a zone as a string.

    Args:
        value: The timestamp.
        format_: In the letters of Spark's `DATE_FORMAT`, none of which is a zone.
    """
    parts = [
        call("DATE_FORMAT", (time_of if of_time else date_of)(value), string(text))
        for of_time, text in _runs(format_)
    ]
    return parts[0] if len(parts) == 1 else call("CONCAT", *parts)


def _runs(format_: str) -> list[tuple[bool, str]]:
    """Letters of the date and of the time apart, each with the texts after them.

    >>> _runs("yyyy-MM-dd'T'HH:mm")
    [(False, "yyyy-MM-dd'T'"), (True, 'HH:mm')]
    """
    runs: list[tuple[bool, str]] = []
    for piece in _PIECE.finditer(format_):
        letter, text = piece[1], piece[0]
        of_time = letter in _OF_TIME if letter else bool(runs and runs[-1][0])
        if runs and runs[-1][0] is of_time:
            text = runs.pop()[1] + text
        runs.append((of_time, text))
    return runs
