"""``age()`` of Postgres: the years, months, days and the time between two clocks."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.postgres.durations import CAST_IT, DATES, require_alike
from dagster_streamtables.compiler.dialect.postgres.interval_texts import DAY, SHOWN, compute_once
from dagster_streamtables.compiler.dialect.rules.instants import micros
from dagster_streamtables.compiler.dialect.rules.made import from_template, number
from dagster_streamtables.compiler.dialect.rules.query import Query

_MONTHS = "(YEAR({0}) - YEAR({1})) * 12 + MONTH({0}) - MONTH({1})"
_REST = "DATE_FORMAT({}, 'ddHHmmssSSSSSS')"
_FIELDS = (
    f"'e', _y, 's', _s, 'm', {_MONTHS.format('_x', '_y')}, "
    f"'d', DAY(_x) - DAY(_y), 't', PMOD(_t, {DAY}) - PMOD(_u, {DAY})"
)
_BORROWED = compute_once(
    f"'s', st_r.s, 'b', DAY(LAST_DAY(st_r.e)), 'm', st_r.m, 't', PMOD(st_r.t, {DAY}), "
    "'d', st_r.d - CASE WHEN st_r.t < 0 THEN 1 ELSE 0 END",
    compute_once(
        "'m', st_r.s * (st_r.m - CASE WHEN st_r.d < 0 THEN 1 ELSE 0 END), "
        "'d', st_r.s * (st_r.d + CASE WHEN st_r.d < 0 THEN st_r.b ELSE 0 END), "
        "'t', st_r.s * st_r.t",
        SHOWN,
    ),
)
"""Time is borrowed from the days, and days from the months."""


def is_age(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "age"


def _ends(node: exp.Expr, age: exp.Expr, query: Query) -> tuple[exp.Expr, exp.Expr]:
    """The end and the beginning; without an end, it is today's midnight."""
    ends = list(age.expressions)
    kinds = [query.require(node, each, DATES, "this needs a date", CAST_IT) for each in ends]
    require_alike(node, kinds, query)
    return (from_template("CURRENT_DATE"), ends[0]) if len(ends) == 1 else (ends[0], ends[1])


def age_part(node: exp.Expr, name: str, age: exp.Expr, query: Query) -> exp.Expr:
    """The whole years or months between two dates, whose days and times decide about the last."""
    if name not in ("YEAR", "MONTH"):
        raise query.refusal(
            node, "an age has days of months that differ in length",
            "take YEAR or MONTH of age(), or EPOCH or DAY of a difference",
        )  # fmt: skip
    a, b = _ends(node, age, query)
    less = f"{_REST.format('{0}')} < {_REST.format('{1}')}"
    months = f"({_MONTHS} - CASE WHEN {less} THEN 1 ELSE 0 END)"
    template = (
        f"CASE WHEN _a >= _b THEN {months.format('_a', '_b')} "
        f"WHEN _a < _b THEN -{months.format('_b', '_a')} END"
    )
    return from_template(
        "_m DIV 12" if name == "YEAR" else "_m % 12", m=from_template(template, a=a, b=b)
    )


def age_text(age: exp.Expr, query: Query) -> exp.Expr:
    """An age as the text that Postgres shows.

    The earlier clock is taken from the later one field by field; a month that days are borrowed
    from is that of the earlier one (`timestamp_age` in PostgreSQL's timestamp.c).
    """
    a, b = (from_template("CAST(_x AS TIMESTAMP_NTZ)", x=each) for each in _ends(age, age, query))
    later, earlier = (
        from_template(compute_once(_FIELDS, _BORROWED), s=number(sign), x=late, y=early,
             t=micros(late, Kind.LOCAL), u=micros(early, Kind.LOCAL))
        for sign, late, early in ((1, a, b), (-1, b, a))
    )  # fmt: skip
    return from_template(
        "CASE WHEN _a >= _b THEN _l WHEN _a < _b THEN _e END", a=a, b=b, l=later, e=earlier
    )
