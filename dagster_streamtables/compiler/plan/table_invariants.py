"""Invariants of a stored table, whatever the sources contain.

    bag        a query with LIMIT n has at most n rows
    regroup    one row per key
    fold       one row per key; counts are valid, and the visible columns follow from the state

A stored table that violates one was damaged, or was folded wrongly. A table that violates none need
not equal its query. Checking costs one pass over the stored table; the query does not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dagster_streamtables.compiler.maintain.fold import Fold
from dagster_streamtables.compiler.maintain.root_groups import RootGroups
from dagster_streamtables.compiler.maintain.strategy import (
    STORED,
    FoldStrategy,
    StrategyKind,
    root_of_bag,
)
from dagster_streamtables.compiler.operators.algebra import Moment
from dagster_streamtables.compiler.operators.keyed import Expand, Top
from dagster_streamtables.compiler.operators.leaves import Scan
from dagster_streamtables.compiler.operators.sql_builders import column, is_null, map_columns
from dagster_streamtables.compiler.plan.plan import Plan
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, type_from

_TOLERANCE = exp.Literal.number("1e-9")
"""The relative difference below which two floats count as equal."""
_FLOATS = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)


@dataclass(frozen=True)
class RowInvariant:
    says: str
    broken: exp.Expr
    """A condition over the stored columns that is true for rows that violate the rule."""


@dataclass(frozen=True)
class Invariants:
    """The invariants of a stored table, and the SQL that checks them."""

    plan: Plan
    stored: Mapping[str, str]
    """The columns of the stored table and their types in Spark's spelling."""

    @cached_property
    def rules(self) -> tuple[RowInvariant, ...]:
        return tuple(_rules(self.plan, self.stored))

    @property
    def most_rows(self) -> int | None:
        """The most rows that the table can have; None if unbounded."""
        if self.plan.key == ():
            return 1
        top, _ = root_of_bag(self.plan.view)
        limit = top.limit if isinstance(top, Top) else None
        if self.plan.strategy_kind is not StrategyKind.BAG or not isinstance(limit, exp.Literal):
            return None
        return int(limit.this) if limit.is_int else None

    def counts_sql(self, relation: str) -> str:
        """SQL for the number of rows of a stored table, given as SQL for FROM, and the number that
        violate each rule, in one row."""
        ones = [f"COUNT(CASE WHEN {_sql(rule)} THEN 1 END)" for rule in self.rules]
        return f"SELECT {', '.join(['COUNT(*)', *ones])} FROM {relation}"

    def rows_sql(self, relation: str, *, limit: int) -> str:
        """SQL for some rows that violate rules, with the rules' numbers in the first column."""
        numbered = enumerate(self.rules)
        which = ", ".join(f"CASE WHEN {_sql(rule)} THEN '{n}' END" for n, rule in numbered)
        any_ = " OR ".join(f"({_sql(rule)})" for rule in self.rules)
        return (
            f"SELECT CONCAT_WS(',', {which}) AS __broken, * FROM {relation} "
            f"WHERE {any_} LIMIT {limit}"
        )

    def copies_sql(self, relation: str, *, limit: int) -> str | None:
        """SQL for some keys with several rows, with the number of their rows and of such keys; None
        if rows have no key."""
        if not self.plan.key:
            return None
        keys = ", ".join(column(name).sql(DIALECT) for name in self.plan.key)
        return (
            f"SELECT {keys}, COUNT(*) AS __copies, COUNT(*) OVER () AS __keys FROM {relation} "
            f"GROUP BY {keys} HAVING COUNT(*) > 1 LIMIT {limit}"
        )


def _rules(plan: Plan, stored: Mapping[str, str]) -> list[RowInvariant]:
    if not isinstance(plan.strategy, FoldStrategy):
        return []
    groups = plan.strategy.groups
    counts = {call.this: name for name, call in groups.states if isinstance(call, exp.Count)}
    found = [*_of_counts(groups, counts), *_of_measures(groups, counts)]
    return found if plan.is_time_dependent else [*found, *_of_the_visible(groups, stored, found)]


def _of_counts(groups: RootGroups, counts: Mapping[exp.Expr, str]) -> Iterator[RowInvariant]:
    rows = column(counts[exp.Star()])
    # The one group of a query without keys, and the total of grouping sets, may be empty.
    may_be_empty = not groups.key or isinstance(groups.aggregate.input, Expand)
    least = 0 if may_be_empty else 1
    says = f"{rows.name}, the number of its rows, is {least} or more"
    yield RowInvariant(says, exp.or_(is_null(rows), rows < least))
    for argument, name in counts.items():
        if not isinstance(argument, exp.Star):
            some = column(name)
            says = f"{name}, a count, is between 0 and the number of its rows"
            yield RowInvariant(says, exp.or_(is_null(some), exp.or_(some < 0, some > rows)))


def _of_measures(groups: RootGroups, counts: Mapping[exp.Expr, str]) -> Iterator[RowInvariant]:
    for name, call in groups.states:
        of_what = counts.get(call.this)
        if isinstance(call, exp.Count) or of_what is None:
            continue
        nothing = column(of_what).eq(0)
        says = f"{name} is NULL exactly if {of_what}, the count of its values, is 0"
        unset = exp.paren(is_null(column(name)))
        yield RowInvariant(says, exp.NEQ(this=exp.paren(nothing), expression=unset))


def _of_the_visible(
    groups: RootGroups, stored: Mapping[str, str], state_is_wrong: Sequence[RowInvariant]
) -> Iterator[RowInvariant]:
    """The visible columns must follow from the state; skipped if the state itself is invalid."""
    types = {name: type_from(type_) for name, type_ in stored.items()}
    old = Scan(STORED, tuple(types.items()), Moment.BEFORE)
    visible = Fold(old, groups, old.columns).visible
    names = {key: name for name, key in groups.key}
    held = {name for name, _ in groups.states} | {name for name, _ in groups.key}
    wrong = exp.or_(*(rule.broken.copy() for rule in state_is_wrong))

    def stored_name(each: exp.Column) -> exp.Expr:
        return column(names.get(each.name, each.name.removeprefix("new.")))

    for name, value in visible.items():
        if name in held or any(isinstance(each, exp.Null) for each in value.find_all(exp.Null)):
            continue  # it is part of the state, or needs a sum that is too wide to divide here
        value = exp.cast(map_columns(value, stored_name), types[name])
        same = _same(column(name), value, floats=types[name].this in _FLOATS)
        broken = exp.Case().when(wrong.copy(), exp.false()).else_(exp.Not(this=exp.paren(same)))
        yield RowInvariant(f"{name} follows from the state of its group", broken)


def _same(one: exp.Expr, other: exp.Expr, *, floats: bool) -> exp.Expr:
    same = exp.NullSafeEQ(this=one.copy(), expression=other.copy())
    if not floats:
        return same
    apart = exp.Abs(this=exp.paren(exp.Sub(this=one.copy(), expression=other.copy())))
    size = exp.Greatest(this=exp.Abs(this=one), expressions=[exp.Abs(this=other)])
    most = exp.Mul(this=size, expression=_TOLERANCE.copy())
    close = exp.Coalesce(this=exp.LTE(this=apart, expression=most), expressions=[exp.false()])
    return exp.or_(same, close)


def _sql(rule: RowInvariant) -> str:
    return rule.broken.sql(DIALECT)
