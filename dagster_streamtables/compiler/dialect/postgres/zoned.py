"""Instants of Postgres that are made, moved and cut on the clock of a zone, or of the session."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import MOMENTS, Kind
from dagster_streamtables.compiler.dialect.postgres import times
from dagster_streamtables.compiler.dialect.postgres.durations import CAST_IT, DATES
from dagster_streamtables.compiler.dialect.postgres.intervals import intervals_of, parts_of
from dagster_streamtables.compiler.dialect.rules import instants
from dagster_streamtables.compiler.dialect.rules.dialect import Rules
from dagster_streamtables.compiler.dialect.rules.made import from_template
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule, literal_text

_FIRST_YEARS = {
    "DECADE": "YEAR(_x) DIV 10 * 10",
    "CENTURY": "(YEAR(_x) - 1) DIV 100 * 100 + 1",
    "MILLENNIUM": "(YEAR(_x) - 1) DIV 1000 * 1000 + 1",
}
"""A century begins with a year that ends in 01, a decade with one that ends in 0."""
_LOCAL = "CAST(_x AS TIMESTAMP_NTZ)"


def _instant(local: exp.Expr, zone: exp.Expr | None, node: exp.Expr, query: Query) -> exp.Expr:
    """The instant of a zone's clock; without a zone, of the session's."""
    if zone is not None:
        return instants.instant(local, times.zone_of(node, zone, query))
    return instants.later(from_template("CAST(_x AS TIMESTAMP)", x=local))


def _make_timestamptz(node: exp.Expr, query: Query) -> exp.Expr:
    """``make_timestamptz(year, month, day, hour, minute, seconds, zone)``."""
    clock, zone = node.expressions[:6], node.expressions[6:]
    if len(clock) < 6 or len(zone) > 1:
        raise query.refusal(node, "it has six or seven arguments", "name all six parts of the time")
    parts = exp.Anonymous(this="make_timestamp", expressions=[each.copy() for each in clock])
    return _instant(times.make_timestamp(parts, query), zone[0] if zone else None, node, query)


def _shift(operation: type[exp.Add | exp.Sub]) -> Rule:
    """``date_add(instant, interval, zone)``, one unit after the other: months and days by the clock
    of the zone, and hours as hours."""

    def rule(node: exp.Expr, query: Query) -> exp.Expr:
        found, step, *rest = node.expressions
        query.require(node, found, (Kind.INSTANT,), "this needs an instant",
                      "cast it to TIMESTAMPTZ")  # fmt: skip
        zone = times.zone_of(node, rest[0], query) if rest else None
        for each in _steps(node, step, query):
            found = _once(operation(this=found.copy(), expression=each), zone, query)
        return found

    return rule


def _steps(node: exp.Expr, step: exp.Expr, query: Query) -> list[exp.Expr]:
    text = literal_text(step)
    parts = parts_of(text) if text is not None else None
    if parts is not None:
        return intervals_of(parts)
    inner = step.unnest()
    if query.kind(step) is not Kind.INTERVAL:
        raise query.refusal(node, "this needs an interval", "write INTERVAL '1 day'")
    return [each.copy() for each in inner.expressions] if isinstance(inner, exp.Tuple) else [step]


def _once(moved: exp.Add | exp.Sub, zone: str | None, query: Query) -> exp.Expr:
    """A step of days or months that is 0 moves nothing: of a time that a clock shows twice, the
    earlier instant stays."""
    units = {each.unit.name.upper() for each in moved.expression.find_all(exp.Interval)}
    if not units or not units <= {"YEAR", "MONTH", "DAY"}:
        return instants.shift_instant(moved, moved.this, moved.expression, query)
    begin = moved.this
    if zone is None:
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


def _at_zone(node: exp.Expr, query: Query) -> exp.Expr:
    """``AT TIME ZONE``, and ``AT LOCAL``, which is the zone of the session."""
    if not isinstance(node.args["zone"], exp.Var):
        return times.at_zone(node, query)
    kind = query.require(
        node, node.this, MOMENTS, "this needs a timestamp", "cast it to TIMESTAMP or TIMESTAMPTZ"
    )
    return from_template(_LOCAL, x=node.this) if kind is Kind.INSTANT else _instant(
        node.this, None, node, query)  # fmt: skip


def _truncate_to_years(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``date_trunc`` to a decade, a century or a millennium; `times` has the other units."""
    year = _FIRST_YEARS.get(node.args["unit"].name.upper())
    zone = node.args.get("zone")
    if year is None or query.kind(node.this) is Kind.INTERVAL:
        return times.truncate_time(node, query)
    kinds = (Kind.INSTANT,) if zone is not None else DATES
    kind = query.require(node, node.this, kinds, "this needs a date", CAST_IT)
    value = node.this
    if zone is not None:
        value = instants.local(value, times.zone_of(node, zone, query))
    local = from_template(f"CAST(MAKE_DATE({year}, 1, 1) AS TIMESTAMP_NTZ)", x=value)
    return local if kind is Kind.LOCAL else _instant(local, zone, node, query)


ZONE_RULES: Rules = {exp.AtTimeZone: _at_zone, exp.TimestampTrunc: _truncate_to_years}
ZONE_CALLS: dict[str, Rule] = {
    "make_timestamptz": _make_timestamptz, "date_add": _shift(exp.Add),
    "date_subtract": _shift(exp.Sub),
}  # fmt: skip
