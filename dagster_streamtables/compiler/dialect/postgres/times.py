"""Dates and timestamps of Postgres: parts, differences, zones, and steps."""

from __future__ import annotations

import re
import zoneinfo

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import MOMENTS, WHOLE, Kind
from dagster_streamtables.compiler.dialect.postgres import ages, interval_outputs, times_of_day
from dagster_streamtables.compiler.dialect.postgres.durations import (
    CAST_IT,
    DATES,
    is_part_of_extract,
    part_of_interval,
    require_alike,
)
from dagster_streamtables.compiler.dialect.postgres.intervals import (
    add_interval,
    interval,
    parts_of,
    text_of,
)
from dagster_streamtables.compiler.dialect.rules import clocks, datetimes, instants
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.functions import typed
from dagster_streamtables.compiler.dialect.rules.made import from_template
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule, call, literal_text

_T = exp.DataType.Type
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_PARTS = {
    "ISOYEAR": "EXTRACT(YEAROFWEEK FROM _x)",
    "DECADE": "FLOOR(YEAR(_x) / 10)",
    "CENTURY": "(YEAR(_x) + 99) DIV 100",
    "MILLENNIUM": "(YEAR(_x) + 999) DIV 1000",
    "DOW": "DAYOFWEEK(_x) - 1",
    "ISODOW": "WEEKDAY(_x) + 1",
    "MILLISECONDS": "EXTRACT(SECOND FROM _x) * 1000",
    "MICROSECONDS": "CAST(EXTRACT(SECOND FROM _x) * 1000000 AS INT)",
}
_WITH_OFFSET = r"(\S+[ T]\d\d?:\d\d)(:\d\d(?:\.\d+)?)?\s*([+-]\d\d)(:\d\d)?"
_PLURALS = {"YEARS": "YEAR", "MONTHS": "MONTH", "DAYS": "DAY", "HOURS": "HOUR",
            "MINUTES": "MINUTE", "SECONDS": "SECOND", "WEEKS": "WEEK"}  # fmt: skip


def extract_part(node: exp.Expr, query: Query) -> exp.Expr | None:
    written = str(node.this.name).upper()
    part = _PLURALS.get(written, written)
    value = node.expression.unnest()
    if query.kind(node.expression) is Kind.INTERVAL:
        whole = ages.age_part if ages.is_age(value) else part_of_interval
        return whole(node, part, value, query)
    if query.kind(node.expression) is Kind.TIME:
        return times_of_day.extract_time_of_day(node, part, query)
    kind = query.require(node, node.expression, DATES, "this needs a date", CAST_IT)
    if part == "EPOCH":
        seconds = "CAST(_m * 0.000001 AS DECIMAL(20, 6))"
        found = from_template(seconds, m=instants.micros(node.expression, kind))
        return found if kind is not Kind.DATE else from_template("CAST(_x AS BIGINT)", x=found)
    if part == "JULIAN" and kind is Kind.DATE:
        return from_template("DATEDIFF(_x, DATE '1970-01-01') + 2440588", x=node.expression)
    if part in _PARTS:
        return exp.paren(from_template(_PARTS[part], x=node.expression))
    node.set("this", exp.var(part))
    return datetimes.extraction()(node, query)


def make_interval(node: exp.Expr, query: Query) -> exp.Expr:
    """``make_interval(days => n)``."""
    parts = [each for each in node.expressions if isinstance(each, exp.Kwarg | exp.PropertyEQ)]
    if len(parts) != 1 or len(node.expressions) != 1:
        raise query.refusal(node, "only one named unit is translated",
                            "write make_interval(days => n), and add several")  # fmt: skip
    unit = {"MINS": "MINUTE", "SECS": "SECOND"}.get(parts[0].name.upper())
    unit = unit or _PLURALS.get(parts[0].this.name.upper(), "")
    unit = {"MINS": "MINUTE", "SECS": "SECOND"}.get(parts[0].this.name.upper(), unit)
    if not unit:
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
        value = node.expression
        value = typed(value.copy(), _T.TIMESTAMPNTZ) if right is Kind.DATE else value
        return add_interval(node, value, node.this, right, query)
    if right is Kind.INTERVAL and left is not Kind.INTERVAL:
        kind = query.require(node, node.this, DATES, "an interval is added to dates", CAST_IT)
        value = typed(node.this.copy(), _T.TIMESTAMPNTZ) if kind is Kind.DATE else node.this
        return add_interval(node, value, node.expression, kind, query)
    if left is right is Kind.DATE:
        return call("DATEDIFF", node.this.copy(), node.expression.copy())
    if Kind.INSTANT in (left, right) and {left, right} <= set(DATES):
        require_alike(node, [left, right], query)
    if left is right is Kind.INSTANT and not is_part_of_extract(node):
        return instants.difference(node, query)
    return None


def compare_times(node: exp.Expr, query: Query) -> exp.Expr | None:
    """Timestamps, with a zone and without; months are not compared with a difference."""
    sides = node.this, node.expression
    kinds = [query.kind(each) for each in sides]
    months = any(isinstance(each, exp.Interval) and _has_months(each) for each in sides)
    if months and Kind.INTERVAL in kinds:
        raise query.refusal(node, "Spark cannot compare months with days",
                            "write 30 days, as Postgres counts a month there")  # fmt: skip
    return instants.compare_instants(node, query)


def _has_months(interval_: exp.Interval) -> bool:
    return interval_.unit is not None and interval_.unit.name.upper() in ("YEAR", "MONTH")


def zone_of(node: exp.Expr, zone: exp.Expr | None, query: Query) -> str:
    """A zone that means the same in both: UTC, or a region and a city.

    Raises:
        InvalidDefinition: Abbreviations and offsets are read differently by Postgres and Java.
    """
    name = literal_text(zone) or ""
    if name.upper() in ("UTC", "GMT"):
        return "UTC"
    if "/" not in name or name not in zoneinfo.available_timezones():
        raise query.refusal(
            node, "abbreviations and offsets of zones are read differently by Postgres and Java",
            "write UTC or the name of a region, such as Europe/Berlin",
        )  # fmt: skip
    return name


def at_zone(node: exp.Expr, query: Query) -> exp.Expr:
    """``AT TIME ZONE``: to the zone's clock, or from it, depending on the operand's type."""
    return _in_zone(node, node.this, node.args["zone"], query)


def zone_call(node: exp.Expr, query: Query) -> exp.Expr:
    """``timezone(zone, x)``."""
    return _in_zone(node, node.expressions[1], node.expressions[0], query)


def _in_zone(node: exp.Expr, value: exp.Expr, zone: exp.Expr, query: Query) -> exp.Expr:
    name = zone_of(node, zone, query)
    kind = query.require(
        node, value, MOMENTS, "this needs a timestamp", "cast it to TIMESTAMP or TIMESTAMPTZ"
    )
    if kind is Kind.INSTANT:
        return instants.local(value, name)
    return instants.instant(value, name)


def truncate_time(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``date_trunc(unit, instant, zone)``: on the clock of that zone."""
    zone = node.args.get("zone")
    if query.kind(node.this) is Kind.INTERVAL:
        raise query.refusal(node, "Spark truncates no intervals",
                            "truncate extract(epoch from …), a number")  # fmt: skip
    if zone is None or node.args["unit"].name.upper() not in _UNITS:
        return datetimes.truncation(_UNITS)(node, query)
    query.require(node, node.this, (Kind.INSTANT,), "this needs an instant", "cast it")
    name = zone_of(node, zone, query)
    clock, unit = instants.local(node.this, name), node.args["unit"].name.upper()
    if unit in ("HOUR", "MINUTE", "SECOND"):  # also of an hour that the clock shows twice
        micros = from_template("CAST(_p * 1000000 AS BIGINT)", p=clocks.past(clock, unit))
        return from_template("TIMESTAMP_MICROS(UNIX_MICROS(_x) - _m)", x=node.this, m=micros)
    return instants.instant(clocks.truncate_local(clock, unit), name)


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


def make_timestamp(node: exp.Expr, query: Query) -> exp.Expr:
    """``make_timestamp(year, month, day, hour, minute, seconds)``."""
    *parts, seconds = [each.copy() for each in node.expressions]
    return call(
        "MAKE_TIMESTAMP_NTZ", *parts, from_template("CAST(_s AS DECIMAL(16, 6))", s=seconds)
    )


def finite(node: exp.Expr, query: Query) -> exp.Expr:
    return from_template("CASE WHEN _x IS NOT NULL THEN TRUE END", x=node.expressions[0])


RULES: Rules = {
    exp.Add: shift_time, exp.Sub: shift_time, exp.Interval: interval, exp.Extract: extract_part,
}  # fmt: skip
CALLS: dict[str, Rule] = {
    "age": interval_outputs.rewrite_age, "make_interval": make_interval, "timezone": zone_call,
    "date_bin": bin_time, "make_timestamp": make_timestamp, "isfinite": finite,
    "justify_hours": interval_outputs.justify_hours,
    **dict.fromkeys(("justify_days", "justify_interval"), interval_outputs.justify_days),
}  # fmt: skip
