"""What must be true of every stored row, whatever the sources hold.

    bag        the first n rows of an order are no more than n
    regroup    one row for each key
    fold       one row for each key; counts are counts, and the rest follows from the state

A stored table that breaks one of these was damaged, or was folded wrongly; that it breaks none does
not prove that it equals its query. To look costs one pass over the stored table; the query is not
run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dagster_streamtables.compiler.maintain.bag import root_of_bag
from dagster_streamtables.compiler.maintain.fold import Fold
from dagster_streamtables.compiler.maintain.groups import Groups
from dagster_streamtables.compiler.maintain.strategy import STORED, Entry, FoldStrategy
from dagster_streamtables.compiler.operators import Expand, Moment, Scan, Top, column
from dagster_streamtables.compiler.plan.plan import Plan
from dagster_streamtables.compiler.text.spark import DIALECT
from dagster_streamtables.compiler.text.types import type_from

_ZERO = exp.Literal.number(0)
_TOLERANCE = exp.Literal.number("1e-9")
"""Relative difference of two floats that counts as none."""
_FLOATS = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)


@dataclass(frozen=True)
class Rule:
    """What must be true of each stored row by itself."""

    says: str
    broken: exp.Expr
    """True of a row that breaks it, over the stored columns."""


@dataclass(frozen=True)
class Invariants:
    """What must be true of a stored table, and the SQL that asks whether it is."""

    plan: Plan
    stored: Mapping[str, str]
    """The columns of the stored table and their types in Spark's words."""

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """What must be true of each row."""
        return tuple(_rules(self.plan, self.stored))

    @property
    def most_rows(self) -> int | None:
        """How many rows the table has at most; None where nothing bounds them."""
        if self.plan.key == ():
            return 1
        top = root_of_bag(self.plan.view) if self.plan.entry is Entry.BAG else None
        if isinstance(top, Top) and isinstance(top.limit, exp.Literal) and top.limit.is_int:
            return int(top.limit.this)
        return None

    def counts_sql(self, relation: str) -> str:
        """How many rows there are, and how many break each rule, in one row.

        Args:
            relation: The stored table, as it stands in FROM.
        """
        ones = [f"COUNT(CASE WHEN {_sql(rule)} THEN 1 END)" for rule in self.rules]
        return f"SELECT {', '.join(['COUNT(*)', *ones])} FROM {relation}"

    def rows_sql(self, relation: str, *, limit: int) -> str:
        """Some of the rows that break a rule, with the numbers of the rules in a first column."""
        numbered = enumerate(self.rules)
        which = ", ".join(f"CASE WHEN {_sql(rule)} THEN '{n}' END" for n, rule in numbered)
        any_ = " OR ".join(f"({_sql(rule)})" for rule in self.rules)
        return (
            f"SELECT CONCAT_WS(',', {which}) AS __broken, * FROM {relation} "
            f"WHERE {any_} LIMIT {limit}"
        )

    def copies_sql(self, relation: str, *, limit: int) -> str | None:
        """Some of the keys that have several rows, with their number and the number of such keys;
        None where a row has no key."""
        if not self.plan.key:
            return None
        keys = ", ".join(column(name).sql(DIALECT) for name in self.plan.key)
        return (
            f"SELECT {keys}, COUNT(*) AS __copies, COUNT(*) OVER () AS __keys FROM {relation} "
            f"GROUP BY {keys} HAVING COUNT(*) > 1 LIMIT {limit}"
        )


def _rules(plan: Plan, stored: Mapping[str, str]) -> list[Rule]:
    if not isinstance(plan.strategy, FoldStrategy):
        return []
    groups = plan.strategy.groups
    counts = {call.this: name for name, call in groups.states if isinstance(call, exp.Count)}
    found = [*_of_counts(groups, counts), *_of_measures(groups, counts)]
    return found if plan.timed else [*found, *_of_the_visible(groups, stored, found)]


def _of_counts(groups: Groups, counts: Mapping[exp.Expr, str]) -> Iterator[Rule]:
    rows = column(counts[exp.Star()])
    # The one group of a query without keys, and the total of grouping sets, may have no rows.
    may_be_empty = not groups.key or isinstance(groups.aggregate.input, Expand)
    least = exp.Literal.number(0 if may_be_empty else 1)
    wrong = exp.LT(this=rows.copy(), expression=least)
    says = f"{rows.name}, the number of its rows, is {least.this} or more"
    yield Rule(says, exp.or_(_null(rows), wrong))
    for argument, name in counts.items():
        if not isinstance(argument, exp.Star):
            some = column(name)
            outside = exp.or_(
                exp.LT(this=some.copy(), expression=_ZERO.copy()),
                exp.GT(this=some.copy(), expression=rows.copy()),
            )
            says = f"{name}, a count, is from 0 to the number of its rows"
            yield Rule(says, exp.or_(_null(some), outside))


def _of_measures(groups: Groups, counts: Mapping[exp.Expr, str]) -> Iterator[Rule]:
    for name, call in groups.states:
        of_what = counts.get(call.this)
        if isinstance(call, exp.Count) or of_what is None:
            continue
        nothing = exp.EQ(this=column(of_what), expression=_ZERO.copy())
        says = f"{name} is NULL where {of_what}, the count of its values, is 0, and only there"
        yield Rule(
            says, exp.NEQ(this=exp.paren(nothing), expression=exp.paren(_null(column(name))))
        )


def _of_the_visible(
    groups: Groups, stored: Mapping[str, str], state_is_wrong: Sequence[Rule]
) -> Iterator[Rule]:
    """What the user sees is what the state comes to; not asked of a state that cannot be."""
    types = {name: type_from(type_) for name, type_ in stored.items()}
    old = Scan(STORED, tuple(types.items()), Moment.BEFORE)
    visible = Fold(old, groups, old.columns).visible
    names = {key: name for name, key in groups.key}
    held = {name for name, _ in groups.states} | {name for name, _ in groups.key}
    wrong = exp.or_(*(rule.broken.copy() for rule in state_is_wrong))

    def stored_name(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return column(names.get(node.name, node.name.removeprefix("new.")))
        return node

    for name, value in visible.items():
        if name in held or any(isinstance(each, exp.Null) for each in value.find_all(exp.Null)):
            continue  # itself of the state; or of a sum that is too wide to be divided here
        value = exp.cast(value.transform(stored_name), types[name])
        same = _same(column(name), value, floats=types[name].this in _FLOATS)
        broken = exp.Case().when(wrong.copy(), exp.false()).else_(exp.Not(this=exp.paren(same)))
        yield Rule(f"{name} is what the state of its group comes to", broken)


def _same(one: exp.Expr, other: exp.Expr, *, floats: bool) -> exp.Expr:
    same = exp.NullSafeEQ(this=one.copy(), expression=other.copy())
    if not floats:
        return same
    apart = exp.Abs(this=exp.paren(exp.Sub(this=one.copy(), expression=other.copy())))
    size = exp.Greatest(this=exp.Abs(this=one), expressions=[exp.Abs(this=other)])
    most = exp.Mul(this=size, expression=_TOLERANCE.copy())
    close = exp.Coalesce(this=exp.LTE(this=apart, expression=most), expressions=[exp.false()])
    return exp.or_(same, close)


def _null(of: exp.Expr) -> exp.Expr:
    return exp.Is(this=of.copy(), expression=exp.null())


def _sql(rule: Rule) -> str:
    return rule.broken.sql(DIALECT)
