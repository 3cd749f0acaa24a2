"""Instants and the clocks of zones, which Spark treats otherwise when a clock is changed.

24 hours are a day in Spark, which moves the clock; in Postgres and DuckDB they are hours. A
difference of instants is the difference of their clocks in Spark, of the instants in Postgres, and
in DuckDB whole days of the clock and then hours. Of the two instants at which a clock shows the
same time, Java takes the earlier one, and both databases take the later one.
"""

from __future__ import annotations

import datetime
import zoneinfo
from functools import cache

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.kinds.kind_inference import results
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    change_sides,
    from_template,
    literal_text,
    sides_of,
)

DIFFERENCE = "MAKE_DT_INTERVAL"
"""The function of Spark that makes the difference of two instants."""
_TIMES = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_DAY = 86400
DAYS = "Spark counts 24 hours as a day of the clock"
_UTC_MICROS = "UNIX_MICROS(CAST(CONCAT(CAST({} AS STRING), 'Z') AS TIMESTAMP))"
_MICROS = {
    Kind.INSTANT: "UNIX_MICROS(_x)",
    Kind.DATE: "CAST(DATEDIFF(_x, DATE '1970-01-01') AS BIGINT) * 86400000000",
    Kind.LOCAL: _UTC_MICROS.format("_x"),
}


def micros(node: exp.Expr, kind: Kind) -> exp.Expr:
    """The microseconds since 1970, of a timestamp without a zone as if it were in UTC."""
    return from_template(_MICROS[kind], x=node)


def seconds(node: exp.Expr, query: Query) -> exp.Expr:
    """Of a difference of dates and timestamps, of which neither is a difference itself."""
    a, b = (micros(side, query.kind(side)) for side in (node.this, node.expression))
    return from_template("CAST((_a - _b) * 0.000001 AS DECIMAL(18, 6))", a=a, b=b)


def local(value: exp.Expr, zone: str) -> exp.Expr:
    """The clock of a zone at an instant; without a zone, of the session."""
    if not zone:
        return from_template("CAST(_x AS TIMESTAMP_NTZ)", x=value)
    seconds = "CAST(UNIX_MICROS(_x) * 0.000001 AS DECIMAL(18, 6))"
    utc = f"(TIMESTAMP_NTZ '1970-01-01 00:00:00' + MAKE_DT_INTERVAL(0, 0, 0, {seconds}))"
    if zone == "UTC":
        return exp.paren(from_template(utc, x=value).unnest())
    return from_template(f"CONVERT_TIMEZONE('UTC', '{zone}', {utc})", x=value)


def instant(value: exp.Expr, zone: str) -> exp.Expr:
    """The instant at which a zone's clock shows a time, the later one of two; without a zone, the
    clock of the session."""
    if not zone:
        return later(from_template("CAST(_x AS TIMESTAMP)", x=value))
    if zone == "UTC":
        return from_template("CAST(CONCAT(CAST(_x AS STRING), 'Z') AS TIMESTAMP)", x=value)
    first = f"CONVERT_TIMEZONE('{zone}', 'UTC', _x)"
    day = f"({first} + INTERVAL '1' DAY)"
    later_ = f"(_x - (CONVERT_TIMEZONE('UTC', '{zone}', {day}) - {day}))"
    shown = f"CONVERT_TIMEZONE('UTC', '{zone}', {later_})"
    chosen = f"CASE WHEN {shown} = _x THEN {later_} ELSE {first} END"
    return from_template(f"CAST(CONCAT(CAST({chosen} AS STRING), 'Z') AS TIMESTAMP)", x=value)


def later(value: exp.Expr) -> exp.Expr:
    """The later instant at which the session's clock shows the same time as at this one: after a
    change of the clock, the offset is the one of a day later."""
    day = "TIMESTAMP_MICROS(UNIX_MICROS(_x) + 86400000000)"
    offset = f"({_UTC_MICROS.format(f'CAST({day} AS TIMESTAMP_NTZ)')} - UNIX_MICROS({day}))"
    clock = "CAST(_x AS TIMESTAMP_NTZ)"
    other = f"TIMESTAMP_MICROS({_UTC_MICROS.format(clock)} - {offset})"
    chosen = f"CASE WHEN CAST({other} AS TIMESTAMP_NTZ) = {clock} THEN {other} ELSE _x END"
    return from_template(chosen, x=value)


def difference(node: exp.Expr, query: Query) -> exp.Expr:
    """The time between two instants."""
    return from_template(f"{DIFFERENCE}(0, 0, 0, _s)", s=seconds(node, query))


def shift_instant(node: exp.Expr, value: exp.Expr, step: exp.Expr, query: Query) -> exp.Expr:
    """An instant plus or minus an interval of one unit: hours are not counted by the clock."""
    constant = _seconds(step)
    if constant is not None:
        if not is_long(step):  # Spark adds it as it is
            return type(node)(this=value.copy(), expression=step.copy())
        more = constant * (-1_000_000 if isinstance(node, exp.Sub) else 1_000_000)
        return from_template(f"TIMESTAMP_MICROS(UNIX_MICROS(_x) + {more})", x=value)
    units = {
        each.unit.name.upper().removesuffix("S")
        for each in step.find_all(exp.Interval)
        if each.unit
    }
    if not units & _TIMES.keys():
        return type(node)(this=value.copy(), expression=step.copy())
    if not units <= _TIMES.keys() or step.find(exp.Add, exp.Sub):
        raise query.refusal(node, DAYS, "add days and hours one after the other")
    there = type(node)(this=local(value, "UTC"), expression=exp.paren(step.copy()))
    return instant(there, "UTC")


def is_long(step: exp.Expr) -> bool:
    """Whether it is a constant of hours, minutes or seconds that has a day or more."""
    return abs(_seconds(step) or 0) >= _DAY


def _seconds(step: exp.Expr) -> int | None:
    """Of a constant of hours, minutes or seconds; None for anything else."""
    inner = step.unnest()
    if not isinstance(inner, exp.Interval) or not inner.unit:
        return None
    number, unit = inner.this.name, _TIMES.get(inner.unit.name.upper().removesuffix("S"))
    if unit is None or not number.lstrip("-").isdigit():
        return None
    return int(number) * unit


def compare_instants(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Instants next to timestamps without a zone, or texts, which are in the zone of the session;
    also BETWEEN and IN. None if nothing changes."""
    if not any(query.kind(each) is Kind.INSTANT for each in sides_of(node)):
        return None
    found = change_sides(node, lambda each: as_instant(each, query))
    return found if found != node else None


def as_instant(value: exp.Expr, query: Query) -> exp.Expr:
    """The instant that a value next to one stands for."""
    if _is_local(value, query.kind(value)):
        return instant(value, "")
    return value.copy()


def _is_local(value: exp.Expr, kind: Kind) -> bool:
    """Whether it has no zone, or is a text of a time that a clock shows twice."""
    return kind is Kind.LOCAL or (kind is Kind.STRING and is_shown_twice(literal_text(value) or ""))


def one_of(node: exp.Expr, query: Query) -> None:
    """CASE, COALESCE and their like over timestamps with a zone and without."""
    values = results(node)
    unsure = any(_is_local(each, query.kind(each)) for each in values)
    if unsure and any(query.kind(each) is Kind.INSTANT for each in values):
        raise query.refusal(node, "a time without a zone becomes one in the session's zone",
                            "cast it to TIMESTAMPTZ")  # fmt: skip


def needs_choice(value: exp.Expr, kind: Kind) -> bool:
    """Whether a time that becomes an instant may be one that the session's clock shows twice."""
    return kind in (Kind.LOCAL, Kind.DATE) or is_shown_twice(literal_text(value) or "")


@cache
def is_shown_twice(text: str) -> bool:
    """Whether the clock of any zone shows a time twice.

    >>> is_shown_twice("2024-10-27 02:30"), is_shown_twice("2024-10-27 12:30")
    (True, False)
    """
    try:
        at = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    if at.tzinfo is not None or not 1 < at.year < 9999:
        return False
    return any(_is_fold(at, zoneinfo.ZoneInfo(name)) for name in zoneinfo.available_timezones())


def _is_fold(at: datetime.datetime, zone: zoneinfo.ZoneInfo) -> bool:
    first, second = (zone.utcoffset(at.replace(fold=fold)) for fold in (0, 1))
    return first is not None and second is not None and first > second
