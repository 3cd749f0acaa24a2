"""Joins: inner joins are bilinear; outer, semi and anti joins are left-linear.

    Δ (L ⋈ R) = ΔL ⋈ R⁺ + L⁻ ⋈ ΔR          L⁻ before the change, R⁺ after it

The weight of a pair is the product of its rows' weights, so ⋈ multiplies out like a product:

    (L⁻ + ΔL) ⋈ (R⁻ + ΔR)  -  L⁻ ⋈ R⁻  =  ΔL ⋈ R⁻ + L⁻ ⋈ ΔR + ΔL ⋈ ΔR

and ``R⁺ = R⁻ + ΔR`` folds the first and the last term into one. Reading both sides *after* would
count the pairs of two new rows twice; reading both *before* would miss them. Delta tables keep the
version before the change readable, so ``L⁻`` is a scan, not a reconstruction.

Left-linear operators compute each left row from the right side:

    Δ f(L, R) = f(ΔL − K, R⁺) + f(L⁺ ⋉ K, R⁺) − f(L⁻ ⋉ K, R⁻)

K are the left rows that ΔR touches, and − K are the others. f is linear in L, and a row that ΔR
does not touch has the same result before and after:

    f(L⁺ − K, R⁺) − f(L⁻ − K, R⁻)  =  f(L⁺ − K, R⁺) − f(L⁻ − K, R⁺)  =  f(ΔL − K, R⁺)

The touched rows are computed before and after. No row meets a right side that it never coexisted
with, so a change fails only where the query itself does: a scalar subquery that has two rows only
between the changes of two tables, where no reader sees it, is never evaluated in that state.

With several right sides, such as two subqueries of one expression, a row is touched if a change of
any of them touches it, and the law keeps its three terms.

The key is what the condition's equalities compare. It is also evaluated for rows that the rest of
the condition would exclude, so an expression that can fail (a division, a cast) is no key. Without
a key, any change on the right recomputes every left row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    Link,
    Operator,
    Pair,
    Restriction,
    Schema,
    Step,
    weight_items,
)
from dagster_streamtables.compiler.operators.net import Net, cannot_fail
from dagster_streamtables.compiler.operators.sql_builders import (
    all_of,
    as_weight,
    broadcast,
    column,
    column_names,
    map_columns,
    select,
    table,
    weight_column,
)


@dataclass(frozen=True, eq=False)
class Join(Operator):
    left: Operator
    right: Operator
    condition: exp.Expr
    small: str = ""
    """The side that is known to have few rows, ``l`` or ``r``; empty if neither is."""

    law: ClassVar[str] = "bilinear"
    cost: ClassVar[str] = "the change, joined with the other side"

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, **self.right.schema}

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return equalities(self.condition, self.left.schema, self.right.schema)

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return len(inputs) == 1

    def empty_if(self, *inputs: bool) -> bool:
        return any(inputs)

    def delta(self) -> Operator:
        left, right = self.left, self.right
        return self.over(left.change, right.after) + self.over(left.before, right.change)

    def select(self, *inputs: str) -> exp.Query:
        left, right = inputs
        sides = zip("lr", (self.left, self.right), strict=True)
        weights = [weight_column(side) for side, operator in sides if operator.has_weight_column]
        columns = [column(name) for name in self.schema]
        if weights:
            # At most one: the rule pairs a change with a table, never with another change.
            [weight] = weights
            columns = [*columns, as_weight(weight)]
        query = select(*(columns or [exp.Literal.number(1)])).from_(table(left, "l"), copy=False)
        query = query.join(table(right, "r"), on=self.condition.copy(), copy=False)
        return broadcast(query, self.small) if self.small else query

    def explain(self) -> str:
        return f"Join on {self.condition.sql('spark')}"


@dataclass(frozen=True, eq=False)
class LeftLinear(Operator):
    left: Operator

    law: ClassVar[str] = "left-linear"
    cost: ClassVar[str] = "the change and the rows it touches, before and after"

    @property
    @abstractmethod
    def sides(self) -> tuple[tuple[Operator, Link], ...]:
        """Each right side, and which left rows a row of it touches."""

    @property
    def has_weight_column(self) -> bool:
        return self.left.has_weight_column

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return list(inputs) == [self.left]

    def empty_if(self, *inputs: bool) -> bool:
        return inputs[0]

    def delta(self) -> Operator:
        rights, links = zip(*self.sides, strict=True)
        # Netted if each touches all left rows, so that cancelled ones do not.
        touched = tuple(
            right.change if link.pairs and not link.loose else Net(right.change)
            for right, link in self.sides
        )
        left, after, before = self.left, [r.after for r in rights], [r.before for r in rights]
        same = Restriction(left.change, touched, links, keep=False)
        now, then = (Restriction(side, touched, links) for side in (left.after, left.before))
        new, old = self.with_inputs(now, after), self.with_inputs(then, before)
        return self.with_inputs(same, after) + new - old

    def with_inputs(self, left: Operator, rights: Sequence[Operator]) -> Operator:
        return self.over(left, *rights)


@dataclass(frozen=True, eq=False)
class ConditionalJoin(LeftLinear):
    """A left-linear operator over one right side and a condition on pairs."""

    right: Operator
    condition: exp.Expr
    small: bool = field(default=False, kw_only=True)
    """The right side is known to have few rows."""

    @property
    def sides(self) -> tuple[tuple[Operator, Link], ...]:
        return ((self.right, Link(self.pairs)),)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return equalities(self.condition, self.left.schema, self.right.schema)


def join_in_order(tables: Sequence[Operator], conditions: Sequence[exp.Expr]) -> Operator:
    """The inner joins of tables in an order, with each condition where its columns exist."""
    rows, *others = tables
    left = list(conditions)
    for other in others:
        there = {*rows.schema, *other.schema}
        now = [each for each in left if column_names(each) <= there]
        left = [each for each in left if not column_names(each) <= there]
        rows = Join(rows, other, exp.and_(*now) if now else exp.true())
    return rows


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The AND-connected parts of a condition, without their parentheses."""
    condition = condition.unnest()
    if not isinstance(condition, exp.And):
        return [condition]
    return [part for side in (condition.left, condition.right) for part in conjuncts(side)]


def equalities(
    condition: exp.Expr, left: Collection[str], right: Collection[str]
) -> tuple[Pair, ...]:
    """The conjuncts of `condition` that equate an expression of each side.

    Equalities by a collation are left out: values that it equates differ in bytes, by which keys
    are grouped, bounded and looked up.
    """
    pairs: list[Pair] = []
    for conjunct in conjuncts(condition):
        if not isinstance(conjunct, exp.EQ | exp.NullSafeEQ):
            continue
        a, b = conjunct.this, conjunct.expression
        if _is_key(a, left) and _is_key(b, right):
            pairs.append((a, b))
        elif _is_key(b, left) and _is_key(a, right):
            pairs.append((b, a))
    return tuple(pairs)


def _is_key(expression: exp.Expr, side: Collection[str]) -> bool:
    names = column_names(expression)
    types = expression.find_all(exp.DataType)
    collates = bool(expression.find(exp.Collate)) or any(t.args.get("collate") for t in types)
    return bool(names) and names.issubset(side) and cannot_fail(expression) and not collates


@dataclass(frozen=True, eq=False)
class OuterJoin(ConditionalJoin):
    """L ⟕ R: pair the rows, and keep the left rows that find no partner, padded.

    The rule joins each touched left row with the right side after and before. That inserts the
    padded row of one that loses its last partner, and deletes it when the first partner arrives.

    ``RIGHT`` is this with the sides swapped, and ``FULL`` this plus the padded rows of the anti
    `SemiJoin` in the other direction.
    """

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, **self.right.schema}

    def explain(self) -> str:
        return f"Left outer join on {self.condition.sql('spark')}"

    def select(self, *inputs: str) -> exp.Query:
        left, right = inputs
        columns = [*map(column, self.schema), *weight_items(self, "l")]
        query = select(*(columns or [exp.Literal.number(1)])).from_(table(left, "l"), copy=False)
        on = self.condition.copy()
        query = query.join(table(right, "r"), on=on, join_type="left", copy=False)
        return broadcast(query, "r") if self.small else query


@dataclass(frozen=True, eq=False)
class SemiJoin(ConditionalJoin):
    """L ⋉ R, L ▷ R: the left rows with a partner, or the others, each once.

    A condition that is NULL is no match, as in EXISTS and unlike IN.
    """

    anti: bool = False

    @property
    def schema(self) -> Schema:
        return self.left.schema

    def explain(self) -> str:
        return f"{'Anti' if self.anti else 'Semi'} join on {self.condition.sql('spark')}"

    def select(self, *inputs: str) -> exp.Query:
        left, right = inputs
        names = frozenset(self.left.schema)
        condition = map_columns(
            self.condition, lambda each: column(each.name, "l" if each.name in names else "r")
        )
        found = select(exp.Literal.number(1)).from_(table(right, "r"), copy=False)
        found = found.where(condition, copy=False)
        partner = exp.Exists(this=broadcast(found, "r") if self.small else found)
        rows = select(all_of("l")).from_(table(left, "l"), copy=False)
        return rows.where(exp.Not(this=partner) if self.anti else partner, copy=False)
