"""Intervals as the texts that Postgres shows, in its style `postgres`: ``1 year 2 days``."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.rules.made import from_template

_HOUR = 3_600_000_000
DAY = 24 * _HOUR
"""Microseconds."""


def compute_once(fields: str, result: str) -> str:
    """A template in which fields of one row are computed once, and read as ``st_r.name``.

    >>> compute_once("'n', a + b", "st_r.n * st_r.n")
    "GET(TRANSFORM(ARRAY(NAMED_STRUCT('n', a + b)), st_r -> st_r.n * st_r.n), 0)"
    """
    return f"GET(TRANSFORM(ARRAY(NAMED_STRUCT({fields})), st_r -> {result}), 0)"


def _unit(value: str, word: str) -> str:
    plural = f"CASE WHEN {value} = 1 THEN ' {word}' ELSE ' {word}s' END"
    return f"CASE WHEN {value} <> 0 THEN CONCAT(CAST({value} AS STRING), {plural}) END"


def _time() -> str:
    """Hours, minutes and seconds; a plus tells that only the days before it are negative."""
    sign = "CASE WHEN st_r.t < 0 THEN '-' WHEN st_r.d < 0 THEN '+' ELSE '' END"
    hours = f"(ABS(st_r.t) DIV {_HOUR})"
    pad = f"CASE WHEN {hours} < 10 THEN '0' ELSE '' END"
    rest = f"CAST((ABS(st_r.t) % {_HOUR}) * 0.000001 AS DECIMAL(18, 6))"
    clock = f"TIMESTAMP_NTZ '1970-01-01 00:00:00' + MAKE_DT_INTERVAL(0, 0, 0, {rest})"
    shown = (
        f"CONCAT({sign}, {pad}, CAST({hours} AS STRING), SUBSTRING(CAST({clock} AS STRING), 14))"
    )
    return f"CASE WHEN st_r.t <> 0 OR st_r.m = 0 AND st_r.d = 0 THEN {shown} END"


_YEAR, _MONTH = _unit("(st_r.m DIV 12)", "year"), _unit("(st_r.m % 12)", "mon")
SHOWN = f"CONCAT_WS(' ', {_YEAR}, {_MONTH}, {_unit('st_r.d', 'day')}, {_time()})"
"""Of ``st_r.m``, whole months, ``st_r.d``, whole days of the same sign, and ``st_r.t``,
microseconds of any number and sign."""


def interval_text(days: exp.Expr, time: exp.Expr) -> exp.Expr:
    """The text of an interval without months; NULL where a part is NULL.

    Args:
        days: Whole days.
        time: Microseconds, which may be more than a day, and of another sign than the days.
    """
    shown = f"CASE WHEN st_r.d IS NOT NULL AND st_r.t IS NOT NULL THEN {SHOWN} END"
    return from_template(compute_once("'m', 0, 'd', _d, 't', _t", shown), d=days, t=time)
