"""Differences of dates and timestamps of Postgres, and ``age()``.

No Delta table can hold an interval. A part of one is a number; an interval that a query puts out is
stored as the text that Postgres shows, in its style `postgres`: ``1 year 2 days``.

A difference of timestamps has days and a time of one sign, and no months; so equal differences have
equal texts. An age has months, and Postgres adds the days and the times of a sum or a mean each on
their own; such intervals may be equal, by the length of a month or a day, although their texts
differ. So they are put out only, and never compared or ordered. Constants are refused: 24 hours are
a day in Spark.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import DATES, Kind
from dagster_streamtables.compiler.dialect.kinds.kind_inference import results
from dagster_streamtables.compiler.dialect.rules import instants
from dagster_streamtables.compiler.dialect.rules.aggregation import mark_aggregate, mark_composite
from dagster_streamtables.compiler.dialect.rules.instants import micros
from dagster_streamtables.compiler.dialect.rules.orders import order_items
from dagster_streamtables.compiler.dialect.rules.rule import (
    Query,
    from_template,
    literal_int,
    outer_node,
)

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
    """Hours, minutes and seconds; a plus means that only the days before it are negative."""
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
_INTERVAL_TEXT = compute_once(
    "'m', 0, 'd', _d, 't', _t",
    f"CASE WHEN st_r.d IS NOT NULL AND st_r.t IS NOT NULL THEN {SHOWN} END",
)
"""The text of an interval of whole days and microseconds, which may be more than a day and of
another sign."""
CAST_IT = "cast it to DATE, TIMESTAMP or TIMESTAMPTZ"
NEEDS_DATE = DATES, "this needs a date", CAST_IT
_ROUNDED = "the mean of differences is rounded to a microsecond once, in Postgres twice"
_OF_DIFFERENCE = {
    "DAY": "_m DIV 86400000000",
    "HOUR": "_m DIV 3600000000 % 24",
    "MINUTE": "_m DIV 60000000 % 60",
    "SECOND": "CAST(_m % 60000000 * 0.000001 AS DECIMAL(20, 6))",
    "EPOCH": "CAST(_m * 0.000001 AS DECIMAL(20, 6))",
}


def is_part_of_extract(node: exp.Expr) -> bool:
    """Whether a number is taken out of a difference, or of an aggregate of differences."""
    return isinstance(outer_node(node, exp.Sum, exp.Avg, exp.Min, exp.Max), exp.Extract)


def part_of_interval(node: exp.Expr, part: str, value: exp.Expr, query: Query) -> exp.Expr:
    """A part of a difference."""
    if isinstance(value, exp.Sum | exp.Avg | exp.Min | exp.Max) and part == "EPOCH":
        return _epoch_of_aggregate(node, value, query)
    passed = _micros_between(node, value, query)
    if passed is None or part not in _OF_DIFFERENCE:
        raise query.refusal(
            node, "only parts of a difference of two timestamps are translated",
            f"use one of {', '.join(_OF_DIFFERENCE)} of a difference, or YEAR or MONTH of age()",
        )  # fmt: skip
    return from_template(_OF_DIFFERENCE[part], m=passed)


def _micros_between(node: exp.Expr, value: exp.Expr, query: Query) -> exp.Sub | None:
    """The microseconds of a difference of two dates or timestamps; None for anything else."""
    sides = value.args.get("this"), value.args.get("expression")
    kinds = [query.kind(each) for each in sides]
    if not isinstance(value, exp.Sub) or not set(kinds) <= DATES:
        return None
    require_alike(node, kinds, query)
    a, b = (micros(side, kind) for side, kind in zip(sides, kinds, strict=True) if side)
    return exp.Sub(this=a, expression=b)


def _epoch_of_aggregate(node: exp.Expr, value: exp.Expr, query: Query) -> exp.Expr:
    """``extract(epoch from avg(a - b))``, and of a sum, the least or the greatest."""
    passed = _micros_between(node, value.this.unnest(), query)
    if passed is None:
        raise query.refusal(node, "only differences of two timestamps are aggregated",
                            "aggregate extract(epoch from …)")  # fmt: skip
    # Postgres rounds the days and the times of a mean separately.
    if isinstance(value, exp.Avg):
        query.note(_ROUNDED)
        total = mark_aggregate(exp.Sum(this=passed.copy()))
        count = mark_aggregate(exp.Count(this=passed, big_int=True))
        mean = "CAST(ROUND(CAST(_t AS DECIMAL(22, 0)) / NULLIF(_n, 0), 0) AS DECIMAL(22, 0))"
        found = from_template(f"CAST({mean} * 0.000001 AS DECIMAL(28, 6))", t=total, n=count)
    else:
        value = mark_aggregate(type(value)(this=passed))
        found = from_template("CAST(_m * 0.000001 AS DECIMAL(28, 6))", m=value)
    return mark_composite(found)


def require_alike(node: exp.Expr, kinds: list[Kind], query: Query) -> None:
    if Kind.INSTANT in kinds and set(kinds) != {Kind.INSTANT}:
        raise query.refusal(
            node, "a timestamp with a zone and one without are compared in the session's zone",
            "cast both to TIMESTAMPTZ or both to TIMESTAMP",
        )  # fmt: skip


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
    kinds = [query.require(node, each, *NEEDS_DATE) for each in ends]
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
    from is the month of the earlier one (`timestamp_age` in PostgreSQL's timestamp.c).
    """
    a, b = (from_template("CAST(_x AS TIMESTAMP_NTZ)", x=each) for each in _ends(age, age, query))
    later, earlier = (
        from_template(compute_once(_FIELDS, _BORROWED), s=sign, x=late, y=early,
             t=micros(late, Kind.LOCAL), u=micros(early, Kind.LOCAL))
        for sign, late, early in ((1, a, b), (-1, b, a))
    )  # fmt: skip
    return from_template(
        "CASE WHEN _a >= _b THEN _l WHEN _a < _b THEN _e END", a=a, b=b, l=later, e=earlier
    )


_UNORDERED = "unordered"
_NOTE = "an interval is stored as the text that PostgreSQL shows"
# Spark shows a difference as INTERVAL '-1 02:03:04.5' DAY TO SECOND.
_STEPS = (
    ("^INTERVAL '(-?)([0-9]+) ([^']*)' DAY TO SECOND$", "$1$2 days $1$3"),
    ("^-?0 days ", ""),
    (" -?00:00:00$", ""),
    ("^1 days", "1 day"),
)


def text_of(value: exp.Expr, query: Query) -> exp.Expr | None:
    """An interval as the text that Postgres shows; None if no rule makes it one."""
    if value.meta.get(_UNORDERED):
        return value.copy()
    if is_age(value):
        query.note(_NOTE)
        return age_text(value, query)
    return _text_of_difference(value, query) if is_difference(value, query) else None


def _text_of_difference(value: exp.Expr, query: Query) -> exp.Expr:
    query.note(_NOTE)
    found = from_template("CAST(_i AS STRING)", i=value)
    for pattern, replacement in _STEPS:
        found = from_template("REGEXP_REPLACE(_s, _p, _r)", s=found, p=pattern, r=replacement)
    return found


def is_difference(node: exp.Expr | None, query: Query) -> bool:
    """Whether a translated expression is a difference of timestamps, or one of several."""
    if isinstance(node, exp.Paren | exp.Nullif | exp.Window | exp.Filter):
        return is_difference(node.this, query)
    if isinstance(node, exp.Case | exp.Coalesce | exp.Greatest | exp.Least):
        some = [each for each in results(node) if not isinstance(each, exp.Null)]
        return bool(some) and all(is_difference(each, query) for each in some)
    if isinstance(node, exp.Anonymous):
        return node.name == instants.DIFFERENCE
    if not isinstance(node, exp.Sub) or query.kind(node) is not Kind.INTERVAL:
        return False
    return all(query.kind(side) in DATES for side in (node.this, node.expression))


def extreme(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The least or the greatest difference, by its seconds, which a table can keep."""
    seconds = _argument_seconds(node, query)
    if seconds is None:
        return None
    found = mark_aggregate(type(node)(this=seconds.copy()))
    return mark_composite(from_template(f"{instants.DIFFERENCE}(0, 0, 0, _s)", s=found))


def justify_hours(node: exp.Expr, query: Query) -> exp.Expr:
    """``justify_hours``: a difference has whole days already."""
    value = node.expressions[0]
    if not is_difference(value.unnest(), query):
        raise _no_storage_error(node, query)
    return value.copy()


_JUSTIFIED = compute_once(
    "'m', EXTRACT(DAY FROM _i) DIV 30, 'd', EXTRACT(DAY FROM _i) % 30, "
    "'t', EXTRACT(HOUR FROM _i) * 3600000000 + CAST(EXTRACT(MINUTE FROM _i) AS BIGINT) * 60000000 "
    "+ CAST(EXTRACT(SECOND FROM _i) * 1000000 AS BIGINT)",
    f"CASE WHEN st_r.d IS NOT NULL THEN {SHOWN} END",
)


def justify_days(node: exp.Expr, query: Query) -> exp.Expr:
    """``justify_days`` and ``justify_interval``: of each 30 days of a difference, a month."""
    value = node.expressions[0]
    if not is_difference(value.unnest(), query) or not _is_put_out(node, query):
        raise _no_storage_error(node, query)
    return _without_order(from_template(_JUSTIFIED, i=value), query)


def rewrite_age(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``age``: the node around it takes a part of it, or its text; else it is put out as a text."""
    if isinstance(outer_node(node), exp.Extract | exp.Cast):
        return None
    if not _is_put_out(node, query):
        raise _no_storage_error(node, query)
    return _without_order(age_text(node, query), query)


def _argument_seconds(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The seconds of the difference that is aggregated; None if no single difference is, or if a
    number is taken out of the aggregate."""
    inner = node.this.unnest()
    if is_part_of_extract(node) or not is_difference(inner, query):
        return None
    if isinstance(inner, exp.Anonymous):
        return inner.expressions[-1]
    return instants.seconds(inner, query) if isinstance(inner, exp.Sub) else None


def total_differences(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The sum or the mean of differences, put out as a text; None for any other."""
    seconds = _argument_seconds(node, query)
    if seconds is None or not _is_put_out(node, query):
        return None
    micros = from_template("CAST(_s * 1000000 AS BIGINT)", s=seconds)
    parts = (f"_m {operator} {DAY}" for operator in ("DIV", "%"))
    days, time = (mark_aggregate(exp.Sum(this=from_template(each, m=micros))) for each in parts)
    if isinstance(node, exp.Avg):
        count = mark_aggregate(exp.Count(this=micros.copy(), big_int=True))
        days, time = _mean(days, time, count)
    text = mark_composite(from_template(_INTERVAL_TEXT, d=days, t=time))
    return _without_order(text, query)


def _mean(days: exp.Expr, time: exp.Expr, count: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Days and times are divided separately, and what is left of the days is time
    (`interval_div` in PostgreSQL's timestamp.c), in floats as there."""
    n = from_template("CAST(NULLIF(_n, 0) AS DOUBLE)", n=count)
    each = from_template("CAST(_d AS DOUBLE) / _n", d=days, n=n)
    whole = from_template("CAST(_d AS INT)", d=each)
    rest = from_template("RINT((_d - CAST(_w AS DOUBLE)) * 86400E0 * 1E6) / 1E6", d=each, w=whole)
    of_time = from_template(
        "CAST(RINT(CAST(_t AS DOUBLE) / _n + _r * 1E6) AS BIGINT)", t=time, n=n, r=rest
    )
    return whole, of_time


def _is_put_out(node: exp.Expr, query: Query) -> bool:
    """Whether it is an output of the query whose rows are stored, or made a text."""
    around = outer_node(node, exp.Alias, exp.Filter, exp.Window)
    if isinstance(around, exp.Cast):
        return True
    return isinstance(around, exp.Select) and around.parent is None and query.stored


def _no_storage_error(node: exp.Expr, query: Query) -> Exception:
    return query.refusal(
        node, "a Delta table cannot store an interval",
        "take a part of it: extract(year from age(a, b)), or extract(epoch from a - b)",
    )  # fmt: skip


def _without_order(text: exp.Expr, query: Query) -> exp.Expr:
    """A text that is put out, differs for some equal intervals, and is not ordered as they are."""
    query.note(_NOTE)
    text.meta[_UNORDERED] = True
    return text


def show_differences(select: exp.Select, query: Query) -> None:
    """Make the differences among the outputs of a stored query texts, ordered as before."""
    if select.parent is not None or not query.stored:
        return
    for place, output in enumerate(select.selects, 1):
        value = output.unalias()
        if value.meta.get(_UNORDERED):
            _require_no_order(select, place, output, query)
        elif query.kind(value) is Kind.INTERVAL and not is_difference(value, query):
            raise _no_storage_error(value, query)
        if not is_difference(value, query):
            continue
        for term in order_items(select):
            by = term.this
            if not _names(by, place, output):
                continue
            if select.args.get("distinct") is not None:
                raise query.refusal(value, "its text, which is stored, has another order",
                                    "order by extract(epoch from …), and GROUP BY")  # fmt: skip
            by.replace(value.copy())
        value.replace(_text_of_difference(value, query))


def _names(term: exp.Expr, place: int, output: exp.Expr) -> bool:
    """Whether an item of ORDER BY or GROUP BY is an output."""
    named = isinstance(term, exp.Column) and not term.table and term.name == output.alias
    return named or literal_int(term) == place


def _require_no_order(select: exp.Select, number: int, output: exp.Expr, query: Query) -> None:
    group = select.args.get("group")
    terms: list[exp.Expr] = [each.this for each in order_items(select)]
    terms += group.expressions if group is not None else []
    ordered = any(_names(term, number, output) for term in terms)
    if ordered or select.args.get("distinct") is not None:
        raise query.refusal(output.unalias(), "its text, which is stored, is neither ordered nor "
                            "told apart as an interval is", "use extract(epoch from …) for that",
                            called="an age, a sum or a mean of intervals")  # fmt: skip
