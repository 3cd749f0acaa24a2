"""Intervals that a query of Postgres puts out: no Delta table can hold one, so the text that
Postgres shows of it is stored.

A difference of timestamps has days and a time of one sign, and no months; so equal differences have
equal texts. Ages, and sums and means of differences, of which Postgres adds days and times each on
their own, are equal by the length of a month or a day where their texts differ; so they are put out
only, and not told apart. Constants are refused: 24 hours are a day in Spark.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.kinds.inferred_types import results
from dagster_streamtables.compiler.dialect.postgres import ages, interval_texts
from dagster_streamtables.compiler.dialect.postgres.durations import DATES, is_part_of_extract
from dagster_streamtables.compiler.dialect.rules import instants
from dagster_streamtables.compiler.dialect.rules.aggregated import mark_aggregate, mark_composite
from dagster_streamtables.compiler.dialect.rules.made import from_template, string
from dagster_streamtables.compiler.dialect.rules.query import Query, literal_int

_NOTE = "an interval is stored as the text that PostgreSQL shows"
# Spark shows a difference as INTERVAL '-1 02:03:04.5' DAY TO SECOND.
_STEPS = (
    ("^INTERVAL '(-?)([0-9]+) ([^']*)' DAY TO SECOND$", "$1$2 days $1$3"),
    ("^-?0 days ", ""),
    (" -?00:00:00$", ""),
    ("^1 days", "1 day"),
)


def text_of(value: exp.Expr, query: Query) -> exp.Expr | None:
    """An interval as the text that Postgres shows; None where no rule makes it one."""
    if value.meta.get(_UNORDERED):
        return value.copy()
    if ages.is_age(value):
        query.note(_NOTE)
        return ages.age_text(value, query)
    return _text_of_difference(value, query) if is_difference(value, query) else None


def _text_of_difference(value: exp.Expr, query: Query) -> exp.Expr:
    query.note(_NOTE)
    found = from_template("CAST(_i AS STRING)", i=value)
    for pattern, replacement in _STEPS:
        found = from_template(
            "REGEXP_REPLACE(_s, _p, _r)", s=found, p=string(pattern), r=string(replacement)
        )
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
    """The least or the greatest difference: that of its seconds, which a table can keep."""
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


_JUSTIFIED = interval_texts.compute_once(
    "'m', EXTRACT(DAY FROM _i) DIV 30, 'd', EXTRACT(DAY FROM _i) % 30, "
    "'t', EXTRACT(HOUR FROM _i) * 3600000000 + CAST(EXTRACT(MINUTE FROM _i) AS BIGINT) * 60000000 "
    "+ CAST(EXTRACT(SECOND FROM _i) * 1000000 AS BIGINT)",
    f"CASE WHEN st_r.d IS NOT NULL THEN {interval_texts.SHOWN} END",
)


def justify_days(node: exp.Expr, query: Query) -> exp.Expr:
    """``justify_days`` and ``justify_interval``: of each 30 days of a difference, a month."""
    value = node.expressions[0]
    if not is_difference(value.unnest(), query) or not _is_put_out(node, query):
        raise _no_storage_error(node, query)
    query.note(_NOTE)
    return _mark_without_order(from_template(_JUSTIFIED, i=value))


def rewrite_age(node: exp.Expr, query: Query) -> exp.Expr | None:
    """``age``: what is around it takes a part of it, or its text; else it is put out as a text."""
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    if ages.is_age(node) and isinstance(around, exp.Extract | exp.Cast):
        return None
    if not ages.is_age(node) or not _is_put_out(node, query):
        raise _no_storage_error(node, query)
    query.note(_NOTE)
    return _mark_without_order(ages.age_text(node, query))


def _argument_seconds(node: exp.Expr, query: Query) -> exp.Expr | None:
    """The seconds of the difference that an aggregate is over; None where it is over no single
    one, or where a number is taken out of the aggregate."""
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
    query.note(_NOTE)
    micros = from_template("CAST(_s * 1000000 AS BIGINT)", s=seconds)
    parts = (f"_m {operator} {interval_texts.DAY}" for operator in ("DIV", "%"))
    days, time = (mark_aggregate(exp.Sum(this=from_template(each, m=micros))) for each in parts)
    if isinstance(node, exp.Avg):
        count = mark_aggregate(exp.Count(this=micros.copy(), big_int=True))
        days, time = _mean(days, time, count)
    return _mark_without_order(mark_composite(interval_texts.interval_text(days, time)))


def _mean(days: exp.Expr, time: exp.Expr, count: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Days and times are divided each on their own, and what is left of the days is time
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
    around = node.parent
    while isinstance(around, exp.Paren | exp.Alias | exp.Filter | exp.Window):
        around = around.parent
    if isinstance(around, exp.Cast):
        return True
    return isinstance(around, exp.Select) and around.parent is None and query.stored


def _no_storage_error(node: exp.Expr, query: Query) -> Exception:
    return query.refusal(
        node, "a Delta table cannot store an interval",
        "take a part of it: extract(year from age(a, b)), or extract(epoch from a - b)",
    )  # fmt: skip


def _mark_without_order(text: exp.Expr) -> exp.Expr:
    """A text that is not the same for all equal intervals, nor ordered as they are."""
    text.meta[_UNORDERED] = True
    return text


_UNORDERED = "unordered"


def show_differences(select: exp.Select, query: Query) -> None:
    """Make the differences among the outputs of a stored query texts; their order stays that of
    the differences."""
    if select.parent is not None or not query.stored:
        return
    order = select.args.get("order")
    for number, output in enumerate(select.selects, 1):
        value = output.unalias()
        if value.meta.get(_UNORDERED):
            _require_no_order(select, number, output, query)
        elif query.kind(value) is Kind.INTERVAL and not is_difference(value, query):
            raise _no_storage_error(value, query)
        if not is_difference(value, query):
            continue
        for term in order.expressions if order is not None else ():
            by = term.this
            if not _names(by, number, output):
                continue
            if select.args.get("distinct") is not None:
                raise query.refusal(value, "its text, which is stored, has another order",
                                    "order by extract(epoch from …), and GROUP BY")  # fmt: skip
            by.replace(value.copy())
        value.replace(_text_of_difference(value, query))


def _names(term: exp.Expr, number: int, output: exp.Expr) -> bool:
    """Whether an item of ORDER BY or GROUP BY is an output."""
    named = isinstance(term, exp.Column) and not term.table and term.name == output.alias
    return named or literal_int(term) == number


def _require_no_order(select: exp.Select, number: int, output: exp.Expr, query: Query) -> None:
    order, group = select.args.get("order"), select.args.get("group")
    terms = [each.this for each in order.expressions] if order is not None else []
    terms += group.expressions if group is not None else []
    told = any(_names(term, number, output) for term in terms)
    if told or select.args.get("distinct") is not None:
        raise query.refusal(output.unalias(), "its text, which is stored, is neither ordered nor "
                            "told apart as an interval is", "use extract(epoch from …) for that",
                            called="an age, a sum or a mean of intervals")  # fmt: skip
