"""Dates, timestamps and intervals of Postgres: parts, steps, differences, and zones.

An interval is a constant of months, days and seconds. An instant is made, moved and cut on the
clock of a zone, or of the session.
"""

from __future__ import annotations

import re
import zoneinfo
from functools import partial

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import DATES, MOMENTS, WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres import time_differences, times_of_day
from dagster_streamtables.compiler.dialect.postgres.time_differences import (
    CAST_IT,
    NEEDS_DATE,
    is_part_of_extract,
    part_of_interval,
    require_alike,
)
from dagster_streamtables.compiler.dialect.rules import datetimes, instants
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.function_rules import typed
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    Rule,
    call,
    from_template,
    literal_int,
    literal_text,
    outer_node,
    template_rule,
)

Parts = tuple[int, int, int]
"""Months, days and seconds."""
_SIZES: dict[str, Parts] = {
    **dict.fromkeys(("mon", "month"), (1, 0, 0)), "quarter": (3, 0, 0),
    **dict.fromkeys(("y", "yr", "year"), (12, 0, 0)), "decade": (120, 0, 0),
    "century": (1200, 0, 0), **dict.fromkeys(("d", "day"), (0, 1, 0)),
    **dict.fromkeys(("w", "week"), (0, 7, 0)), **dict.fromkeys(("s", "sec", "second"), (0, 0, 1)),
    **dict.fromkeys(("m", "min", "minute"), (0, 0, 60)),
    **dict.fromkeys(("h", "hr", "hour"), (0, 0, 3600)),
}  # fmt: skip
_NEEDS_INSTANT = (Kind.INSTANT,), "this needs an instant", "cast it to TIMESTAMPTZ"
_MOVE = ("date_add", "date_subtract")
_PART = re.compile(r"([+-]?)\s*(\d+)\s*([a-z]+)")
_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d)(?::(\d\d))?")
_T = exp.DataType.Type
_PARTS = {
    "ISOYEAR": "EXTRACT(YEAROFWEEK FROM _x)",
    "DECADE": "FLOOR(YEAR(_x) / 10)",
    "CENTURY": "(YEAR(_x) + 99) DIV 100",
    "MILLENNIUM": "(YEAR(_x) + 999) DIV 1000",
    **datetimes.DAYS_OF_WEEK,
    "MILLISECONDS": "EXTRACT(SECOND FROM _x) * 1000",
    "MICROSECONDS": "CAST(EXTRACT(SECOND FROM _x) * 1000000 AS INT)",
}
_WITH_OFFSET = r"(\S+[ T]\d\d?:\d\d)(:\d\d(?:\.\d+)?)?\s*([+-]\d\d)(:\d\d)?"
_PLURALS = {"YEARS": "YEAR", "MONTHS": "MONTH", "DAYS": "DAY", "HOURS": "HOUR",
            "MINUTES": "MINUTE", "SECONDS": "SECOND", "WEEKS": "WEEK"}  # fmt: skip
_FIRST_YEARS = {
    "DECADE": "YEAR(_x) DIV 10 * 10",
    "CENTURY": "(YEAR(_x) - 1) DIV 100 * 100 + 1",
    "MILLENNIUM": "(YEAR(_x) - 1) DIV 1000 * 1000 + 1",
}
"""A century begins with a year that ends in 01, a decade with one that ends in 0."""


def parts_of(text: str) -> Parts | None:
    """The parts of an interval; None if it has others, such as fractions of seconds.

    >>> parts_of("1 year 2 days"), parts_of("1 day 02:30"), parts_of("0.5 day")
    ((12, 2, 0), (0, 1, 9000), None)
    """
    months = days = seconds = 0
    rest = text.lower()
    if re.sub(r"[\s,]", "", _CLOCK.sub("", _PART.sub("", rest))):
        return None
    for sign, hours, minutes, last in _CLOCK.findall(rest):
        size = int(hours) * 3600 + int(minutes) * 60 + int(last or 0)
        seconds += -size if sign == "-" else size
    for sign, digits, unit in _PART.findall(_CLOCK.sub("", rest)):
        number = int(digits) * (-1 if sign == "-" else 1)
        one = _SIZES.get(unit)
        if one is None and len(unit) > 2:  # "ms" are milliseconds
            one = _SIZES.get(unit.removesuffix("s"))
        if one is None:
            return None
        months, days = months + number * one[0], days + number * one[1]
        seconds += number * one[2]
    return months, days, seconds


def text_of(node: exp.Expr | None) -> str:
    """The words of a constant interval: of a literal, a cast or INTERVAL; '' for anything else."""
    if isinstance(node, exp.Cast | exp.Paren):
        return text_of(node.this)
    if isinstance(node, exp.Interval):
        number = literal_int(node.this)
        value = literal_text(node.this) if number is None else str(number)
        unit = node.args.get("unit")
        return f"{value or ''} {unit.name if unit is not None else ''}".strip()
    return literal_text(node) or ""


def intervals_of(parts: Parts) -> list[exp.Expr]:
    """Intervals of Spark, whose units cannot be mixed, in the order in which they are added."""
    months, days, seconds = parts
    found: list[tuple[int, str]] = [(months, "MONTH"), (days, "DAY"), (seconds, "SECOND")]
    whole = [(n, unit) for n, unit in found if n] or [(0, "DAY")]
    return [exp.Interval(this=exp.Literal.string(str(n)), unit=exp.var(unit)) for n, unit in whole]


def interval(node: exp.Expr, query: Query) -> exp.Expr:
    """A constant interval; one of several units is taken apart by the sum around it."""
    parts = parts_of(text_of(node))
    if parts is None:
        raise query.refusal(node, "Spark's intervals are constants of whole units",
                            "multiply INTERVAL '1 day' by the number")  # fmt: skip
    found = intervals_of(parts)
    if len(found) == 1:
        return found[0]
    around = outer_node(node, exp.Cast)
    called = isinstance(around, exp.Anonymous) and around.name.lower() in _MOVE
    if not called and not isinstance(around, exp.Add | exp.Sub):
        raise query.refusal(node, "Spark cannot multiply months together with days",
                            "multiply two intervals, and add both")  # fmt: skip
    return exp.Tuple(expressions=found)


def add_interval(
    node: exp.Expr, value: exp.Expr, interval_: exp.Expr, kind: Kind, query: Query
) -> exp.Expr:
    """A time of some kind plus or minus an interval, one unit after the other."""
    inner = interval_.unnest()
    steps = inner.expressions if isinstance(inner, exp.Tuple) else [interval_]
    found = typed(value.copy(), _T.TIMESTAMPNTZ) if kind is Kind.DATE else value
    for step in steps:
        if kind is Kind.INSTANT:
            found = instants.shift_instant(node, found, step, query)
        else:
            found = type(node)(this=found.copy(), expression=step.copy())
    return found


def extract_part(node: exp.Expr, query: Query) -> exp.Expr | None:
    written = str(node.this.name).upper()
    part = _PLURALS.get(written, written)
    value = node.expression.unnest()
    if query.kind(node.expression) is Kind.INTERVAL:
        whole = time_differences.age_part if time_differences.is_age(value) else part_of_interval
        return whole(node, part, value, query)
    if query.kind(node.expression) is Kind.TIME:
        return times_of_day.extract_time_of_day(node, part, query)
    kind = query.require(node, node.expression, *NEEDS_DATE)
    if part == "EPOCH":
        seconds = "CAST(_m * 0.000001 AS DECIMAL(20, 6))"
        found = from_template(seconds, m=instants.micros(node.expression, kind))
        return found if kind is not Kind.DATE else from_template("CAST(_x AS BIGINT)", x=found)
    if part == "JULIAN" and kind is Kind.DATE:
        return from_template("DATEDIFF(_x, DATE '1970-01-01') + 2440588", x=node.expression)
    if part in _PARTS:
        return exp.paren(from_template(_PARTS[part], x=node.expression))
    node.set("this", exp.var(part))
    return datetimes.extraction(node, query)


def make_interval(node: exp.Expr, query: Query) -> exp.Expr:
    """``make_interval(days => n)``."""
    parts = [each for each in node.expressions if isinstance(each, exp.Kwarg | exp.PropertyEQ)]
    if len(parts) != 1 or len(node.expressions) != 1:
        raise query.refusal(node, "only one named unit is translated",
                            "write make_interval(days => n), and add several")  # fmt: skip
    units = {**_PLURALS, "MINS": "MINUTE", "SECS": "SECOND"}
    unit = units.get(parts[0].this.name.upper())
    if unit is None:
        raise query.refusal(node, "Spark has no such unit", "use years, months, weeks, days, hours")
    return from_template(f"INTERVAL '1' {unit} * _n", n=parts[0].expression)


def interval_of_count(node: exp.Expr, text: exp.DPipe, query: Query) -> exp.Expr:
    """``(n || ' days')::interval``."""
    unit = (literal_text(text.expression) or "").strip().upper()
    unit = _PLURALS.get(unit, unit)
    if unit not in _PLURALS.values() or query.kind(text.this) not in WHOLE:
        raise query.refusal(node, "Spark's intervals are of a whole number and a known unit",
                            "multiply INTERVAL '1 day' by the number")  # fmt: skip
    return from_template(f"INTERVAL '1' {unit} * _n", n=text.this)


def shift_time(node: exp.Expr, query: Query) -> exp.Expr | None:
    """A date plus an interval is a timestamp; in Spark it may be a date."""
    left, right = query.kind(node.this), query.kind(node.expression)
    if Kind.TIME in (left, right):
        return times_of_day.add_time_of_day(node, query)
    if left is Kind.INTERVAL and right in DATES and isinstance(node, exp.Add):
        return add_interval(node, node.expression, node.this, right, query)
    if right is Kind.INTERVAL and left is not Kind.INTERVAL:
        kind = query.require(node, node.this, DATES, "an interval is added to dates", CAST_IT)
        return add_interval(node, node.this, node.expression, kind, query)
    if left is right is Kind.DATE:
        return call("DATEDIFF", node.this.copy(), node.expression.copy())
    if Kind.INSTANT in (left, right) and {left, right} <= DATES:
        require_alike(node, [left, right], query)
    if left is right is Kind.INSTANT and not is_part_of_extract(node):
        return instants.difference(node, query)
    return None


def compare_times(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Times of day, and timestamps with a zone and without; months are not compared with a
    difference."""
    found = times_of_day.compare_times_of_day(node, query)
    if found is not None:
        return found
    sides = node.this, node.expression
    kinds = [query.kind(each) for each in sides]
    units = [each.unit for each in sides if isinstance(each, exp.Interval)]
    months = any(each is not None and each.name.upper() in ("YEAR", "MONTH") for each in units)
    if months and Kind.INTERVAL in kinds:
        raise query.refusal(node, "Spark cannot compare months with days",
                            "write 30 days, as Postgres counts a month there")  # fmt: skip
    return instants.compare_instants(node, query)


def zone_of(node: exp.Expr, zone: exp.Expr | None, query: Query) -> str:
    """A zone that means the same in both: UTC, or a region and a city."""
    name = literal_text(zone) or ""
    if name.upper() in ("UTC", "GMT"):
        return "UTC"
    if "/" not in name or name not in zoneinfo.available_timezones():
        raise query.refusal(
            node, "abbreviations and offsets of zones are read differently by Postgres and Java",
            "write UTC or the name of a region, such as Europe/Berlin",
        )  # fmt: skip
    return name


def _convert_zone(node: exp.Expr, query: Query) -> exp.Expr:
    """``AT TIME ZONE``, ``timezone(zone, x)`` and ``AT LOCAL``, in the zone of the session: to
    the zone's clock, or from it, depending on the operand's type."""
    zone, value = node.expressions or (node.args["zone"], node.this)
    name = "" if isinstance(zone, exp.Var) else zone_of(node, zone, query)
    kind = query.require(
        node, value, MOMENTS, "this needs a timestamp", "cast it to TIMESTAMP or TIMESTAMPTZ"
    )
    convert = instants.local if kind is Kind.INSTANT else instants.instant
    return convert(value, name)


def _truncate(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``date_trunc(unit, time, zone)``, on the clock of that zone; also to a decade, a century or a
    millennium."""
    unit, zone = node.args["unit"].name.upper(), node.args.get("zone")
    if query.kind(node.this) is Kind.INTERVAL:
        raise query.refusal(node, "Spark truncates no intervals",
                            "truncate extract(epoch from …), a number")  # fmt: skip
    year = _FIRST_YEARS.get(unit)
    if year is None and (zone is None or unit not in datetimes.UNITS):
        return datetimes.truncation(node, query)
    if zone is None:
        kind, name, clock = query.require(node, node.this, *NEEDS_DATE), "", node.this
    else:
        kind = query.require(node, node.this, *_NEEDS_INSTANT)
        name = zone_of(node, zone, query)
        clock = instants.local(node.this, name)
    if year is not None:
        local = from_template(f"CAST(MAKE_DATE({year}, 1, 1) AS TIMESTAMP_NTZ)", x=clock)
        return local if kind is Kind.LOCAL else instants.instant(local, name)
    if unit in ("HOUR", "MINUTE", "SECOND"):  # also of an hour that the clock shows twice
        micros = from_template("CAST(_p * 1000000 AS BIGINT)", p=datetimes.past(clock, unit))
        return from_template("TIMESTAMP_MICROS(UNIX_MICROS(_x) - _m)", x=node.this, m=micros)
    return instants.instant(datetimes.truncate_local(clock, unit), name)


def bin_time(node: exp.Expr, query: Query) -> exp.Expr:
    """``date_bin``: the beginning of the step that holds a time, counted from an origin."""
    stride, value, origin = node.expressions
    months, days, rest = parts_of(text_of(stride)) or (1, 0, 0)
    seconds = days * 86400 + rest
    if months or seconds <= 0:
        raise query.refusal(node, "the steps must have one length, which is known",
                            "write a constant, such as '15 minutes'")  # fmt: skip
    kind = query.require(node, value, MOMENTS, "this needs a timestamp", "cast it to TIMESTAMP")
    type_ = "TIMESTAMP" if kind is Kind.INSTANT else "TIMESTAMP_NTZ"
    if query.kind(origin) not in (kind, Kind.STRING):
        raise query.refusal(node, "the origin has another type", "cast it to the same type")
    origin = moment_literal(origin)
    start = instants.micros(from_template(f"CAST(_o AS {type_})", o=origin), kind)
    past = exp.Sub(this=instants.micros(value, kind), expression=start)
    into = f"PMOD(_p, {seconds * 1_000_000})"
    if kind is Kind.INSTANT:
        return from_template(f"TIMESTAMP_MICROS(UNIX_MICROS(_x) - {into})", x=value, p=past)
    template = f"_x - MAKE_DT_INTERVAL(0, 0, 0, CAST({into} * 0.000001 AS DECIMAL(18, 6)))"
    return exp.paren(from_template(template, x=value, p=past).unnest())


def moment_literal(value: exp.Expr) -> exp.Expr:
    """A text of a timestamp with its offset as Spark reads it: ``+02`` is ``+02:00``."""
    text = literal_text(value)
    found = re.fullmatch(_WITH_OFFSET, (text or "").strip())
    if found is None:
        return value
    return exp.Literal.string(f"{found[1]}{found[2] or ':00'}{found[3]}{found[4] or ':00'}")


_make_timestamp = template_rule(
    "MAKE_TIMESTAMP_NTZ(_a, _b, _c, _d, _e, CAST(_f AS DECIMAL(16, 6)))", "abcdef"
)


def _make_timestamptz(node: exp.Expr, query: Query) -> exp.Expr:
    """``make_timestamptz(year, month, day, hour, minute, seconds, zone)``."""
    clock, zone = node.expressions[:6], node.expressions[6:]
    if len(clock) < 6 or len(zone) > 1:
        raise query.refusal(node, "it has six or seven arguments", "name all six parts of the time")
    name = zone_of(node, zone[0], query) if zone else ""
    parts = call("make_timestamp", *[each.copy() for each in clock])
    return instants.instant(_make_timestamp(parts, query), name)


def _shift(node: exp.Expr, query: Query, *, operation: type[exp.Add | exp.Sub]) -> exp.Expr:
    """``date_add(instant, interval, zone)``, one unit after the other: months and days by the clock
    of the zone, and hours as hours."""
    found, step, *rest = node.expressions
    query.require(node, found, *_NEEDS_INSTANT)
    zone = zone_of(node, rest[0], query) if rest else ""
    for each in _steps(node, step, query):
        found = _once(operation(this=found.copy(), expression=each), zone, query)
    return found


def _steps(node: exp.Expr, step: exp.Expr, query: Query) -> list[exp.Expr]:
    text = literal_text(step)
    parts = parts_of(text) if text is not None else None
    if parts is not None:
        return intervals_of(parts)
    inner = step.unnest()
    if query.kind(step) is not Kind.INTERVAL:
        raise query.refusal(node, "this needs an interval", "write INTERVAL '1 day'")
    return [each.copy() for each in inner.expressions] if isinstance(inner, exp.Tuple) else [step]


def _once(moved: exp.Add | exp.Sub, zone: str, query: Query) -> exp.Expr:
    """A step of days or months that is 0 moves nothing: of a time that a clock shows twice, the
    earlier instant stays."""
    units = {each.unit.name.upper() for each in moved.expression.find_all(exp.Interval)}
    if not units or not units <= {"YEAR", "MONTH", "DAY"}:
        return instants.shift_instant(moved, moved.this, moved.expression, query)
    begin = moved.this
    if not zone:
        there, found = moved, instants.later(exp.paren(moved))
    else:
        begin = instants.local(begin, zone)
        step = exp.paren(moved.expression.copy())
        there = type(moved)(this=begin.copy(), expression=step)
        found = instants.instant(exp.paren(there), zone)
    if isinstance(moved.expression.unnest(), exp.Interval):
        return found
    return from_template(
        "CASE WHEN _t = _b THEN _x ELSE _f END", t=there, b=begin, x=moved.this, f=found
    )


RULES: Rules = {
    exp.Add: shift_time, exp.Interval: interval, exp.Extract: extract_part,
    exp.AtTimeZone: _convert_zone, exp.TimestampTrunc: _truncate,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "age": time_differences.rewrite_age, "make_interval": make_interval, "timezone": _convert_zone,
    "date_bin": bin_time, "make_timestamp": _make_timestamp,
    "isfinite": template_rule("CASE WHEN _x IS NOT NULL THEN TRUE END"),
    "justify_hours": time_differences.justify_hours,
    "make_timestamptz": _make_timestamptz, "date_add": partial(_shift, operation=exp.Add),
    "date_subtract": partial(_shift, operation=exp.Sub),
    **dict.fromkeys(("justify_days", "justify_interval"), time_differences.justify_days),
}  # fmt: skip
