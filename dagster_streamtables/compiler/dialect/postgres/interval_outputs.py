"""Differences of timestamps that a query of Postgres puts out: no Delta table can hold an interval,
so the text that Postgres shows of it is stored.

A difference has days and a time of one sign, and no months; so equal differences have equal texts,
and a text can be cast back. What has another form in Postgres than in Spark is left to be refused:
constants (24 hours are a day in Spark), sums and means (of which Postgres adds days and times each
on their own), and ages.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.kinds.function_kinds import Kind
from dagster_streamtables.compiler.dialect.kinds.inferred_types import results
from dagster_streamtables.compiler.dialect.postgres.durations import DATES, is_read
from dagster_streamtables.compiler.dialect.rules import instants
from dagster_streamtables.compiler.dialect.rules.aggregated import aggregate, composed
from dagster_streamtables.compiler.dialect.rules.made import made, string
from dagster_streamtables.compiler.dialect.rules.query import Query, literal_int

_NOTE = "an interval is stored as the text that PostgreSQL shows"
# Spark shows a difference as INTERVAL '-1 02:03:04.5' DAY TO SECOND.
_STEPS = (
    ("^INTERVAL '(-?)([0-9]+) ([^']*)' DAY TO SECOND$", "$1$2 days $1$3"),
    ("^-?0 days ", ""),
    (" -?00:00:00$", ""),
    ("^1 days", "1 day"),
)


def text_of(value: exp.Expr, query: Query) -> exp.Expr:
    """A difference, already translated, as the text that Postgres shows."""
    query.note(_NOTE)
    found = made("CAST(_i AS STRING)", i=value)
    for pattern, replacement in _STEPS:
        found = made(
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
    inner = node.this.unnest()
    if is_read(node) or not is_difference(inner, query):
        return None
    if isinstance(inner, exp.Anonymous):
        seconds = inner.expressions[-1]
    elif isinstance(inner, exp.Sub):
        seconds = instants.seconds(inner, query)
    else:
        return None
    found = aggregate(type(node)(this=seconds.copy()))
    return composed(made(f"{instants.DIFFERENCE}(0, 0, 0, _s)", s=found))


def spell_out(select: exp.Select, query: Query) -> None:
    """Make the differences among the outputs of a stored query texts; their order stays that of
    the differences."""
    if select.parent is not None or not query.stored:
        return
    order = select.args.get("order")
    for number, output in enumerate(select.selects, 1):
        value = output.unalias()
        if not is_difference(value, query):
            continue
        for term in order.expressions if order is not None else ():
            by = term.this
            named = isinstance(by, exp.Column) and not by.table and by.name == output.alias
            if not named and literal_int(by) != number:
                continue
            if select.args.get("distinct") is not None:
                raise query.refusal(value, "its text, which is stored, has another order",
                                    "order by extract(epoch from …), and GROUP BY")  # fmt: skip
            by.replace(value.copy())
        value.replace(text_of(value, query))
