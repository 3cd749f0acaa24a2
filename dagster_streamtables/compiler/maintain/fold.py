"""Fold: add the change to the stored groups, without reading the source.

    Partial    Σ over ΔR, by key     Δcount = Σ w,  Δsum = Σ x·w,  the extremes inserted and deleted
    Match      partial ⟕ stored      by key; NULL equals NULL
    Fold       count' = count + Δcount,  sum' = sum + Δsum,  min' = least(min, least inserted)

Sums and counts of weighted rows are ordinary sums, so the partial needs no old state. For MIN it
has the least inserted and the least deleted value. ``min'`` is right unless a value was deleted
that is not above it: a copy of a value below all deleted ones still exists. This also holds for
values inserted and deleted within the change. For a sum, the partial has a flag for rows that
cannot be added: a deleted float, or several copies of a decimal too wide to multiply.

The match has one row per touched key. The columns of the partial are named ``p.…``, and those of
the stored row ``s.…``; the latter are NULL if no row is stored.

The fold returns at most one row per key: the stored columns, and in the weight column the action:

     1    store this row, replacing the stored row of its key if any
    -1    delete the stored row of this key
     0    the group is *lost* to the fold: recompute it from the source (see `strategy`)
  NULL    the group would have a negative number of rows: the stored state is wrong
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.maintain.root_groups import RootGroups, null_safe, same_value
from dagster_streamtables.compiler.operators.algebra import Schema, Step
from dagster_streamtables.compiler.operators.sql_builders import (
    as_column,
    as_weight,
    column,
    is_null,
    map_columns,
    select,
    table,
    weight_column,
)

_ZERO = exp.Literal.number(0)


@dataclass(frozen=True, eq=False)
class Fold(Step):
    matched: Step
    """The result of `Match`."""
    groups: RootGroups
    types: tuple[tuple[str, exp.DataType], ...]
    """The stored columns."""

    @property
    def schema(self) -> Schema:
        return dict(self.types)

    weighted: ClassVar[bool] = True

    def explain(self) -> str:
        return "Fold: the stored groups plus the partial sums"

    def select(self, *inputs: str) -> exp.Query:
        sums = self._select_states(*inputs).subquery("a", copy=False)
        new = select(exp.Star(), *self._outputs()).from_(sums, copy=False).subquery("b", copy=False)
        rows = [as_column(column(f"row.{name}"), name) for name in self.schema]
        query = select(*rows, as_weight(self._action())).from_(new, copy=False)
        return query.where(self._something_to_do(), copy=False)

    def _select_states(self, matched: str) -> exp.Select:
        """For each touched key: the old row, the new state, and whether the group is lost."""
        keys = [as_column(column(partial_column(key)), key) for _, key in self.groups.key]
        old = [as_column(column(stored_column(name)), f"old.{name}") for name in self.schema]
        states = [as_column(self._new_state(n, call), f"new.{n}") for n, call in self.groups.states]
        losses = [loss for n, call in self.groups.states for loss in self._losses(n, call)]
        lost = as_column(exp.or_(exp.false(), *losses), "lost")
        known = as_column(exp.Not(this=is_null(column(stored_column(self._rows)))), "known")
        return select(*keys, *old, *states, lost, known).from_(table(matched), copy=False)

    @property
    def _rows(self) -> str:
        """The stored column with the number of rows of the group."""
        return next(n for n, call in self.groups.states if isinstance(call.this, exp.Star))

    def _count_of(self, argument: exp.Expr) -> str:
        return self._state(exp.Count(this=argument))

    def _state(self, call: exp.Expr) -> str:
        """The stored column with an aggregate."""
        return next(name for name, each in self.groups.states if each == call)

    def _new_state(self, name: str, call: exp.Expr) -> exp.Expr:
        old, change = column(stored_column(name)), column(partial_column(f"d.{name}"))
        if isinstance(call, exp.Count):
            return _plus(old, change)
        if isinstance(call, exp.Sum):
            return self._new_sum(name, call, old, change)
        return _extreme(call, old, change)

    def _new_sum(self, name: str, call: exp.Sum, old: exp.Expr, change: exp.Expr) -> exp.Expr:
        type_ = self.schema[name]
        adding = Adding.of(type_, self.groups)
        if adding is Adding.NEVER:
            return exp.cast(exp.null(), type_)
        if adding is Adding.INTEGER:
            # The change may exceed a BIGINT even if the sum does not.
            old = exp.cast(old, "DECIMAL(38, 0)")
        count = self._count_of(call.this)
        present = _plus(column(stored_column(count)), column(partial_column(f"d.{count}")))
        nothing = exp.EQ(this=present, expression=_ZERO.copy())
        total = exp.cast(_plus(old, change), type_)
        return exp.Case().when(nothing, exp.cast(exp.null(), type_)).else_(total)

    def _losses(self, name: str, call: exp.Expr) -> list[exp.Expr]:
        deleted = column(partial_column(f"x.{name}"))
        if isinstance(call, exp.Count):
            return []
        if isinstance(call, exp.Sum):
            adding = Adding.of(self.schema[name], self.groups)
            if adding is Adding.NEVER or (adding is Adding.WIDE and self._has_average(call)):
                return [exp.true()]
            return [deleted.eq(1)] if adding in (Adding.FLOAT, Adding.WIDE) else []
        best = _extreme(call, column(stored_column(name)), column(partial_column(f"d.{name}")))
        worse = deleted > best if isinstance(call, exp.Min) else deleted < best
        stands = exp.Coalesce(this=worse, expressions=[exp.false()])
        return [exp.and_(exp.Not(this=is_null(deleted)), exp.Not(this=stands))]

    def _has_average(self, call: exp.Sum) -> bool:
        measures = (measure for _, measure in self.groups.aggregate.measures)
        return any(isinstance(each, exp.Avg) and each.this == call.this for each in measures)

    def _outputs(self) -> list[exp.Expr]:
        """The new stored row: keys, visible columns, and state."""
        keys, visible = dict(self.groups.key), self.visible
        states = {name: column(f"new.{name}") for name, _ in self.groups.internal_states}
        row = visible | {n: column(k) for n, k in keys.items()} | states
        return [
            as_column(self._value_in_group(n, row[n], n in keys), f"row.{n}") for n in self.schema
        ]

    @property
    def visible(self) -> dict[str, exp.Expr]:
        """The user's columns, over the keys and the state in columns ``new.…``."""
        measures = {name: self._measure(call) for name, call in self.groups.aggregate.measures}

        def settle(each: exp.Column) -> exp.Expr:
            return exp.paren(measures[each.name].copy()) if each.name in measures else each

        return {n: map_columns(e, settle) for n, e in self.groups.outputs}

    def _value_in_group(self, name: str, value: exp.Expr, is_key: bool) -> exp.Expr:
        """`value`, computed only if the group exists: its division might fail."""
        typed = exp.cast(value, self.schema[name])
        exists = exp.and_(exp.Not(this=exp.paren(self._empty())), exp.Not(this=column("lost")))
        return typed if is_key else exp.Case().when(exists, typed)

    def _measure(self, call: exp.Expr) -> exp.Expr:
        if isinstance(call, exp.Avg):
            name = self._state(exp.Sum(this=call.this))
            count = column(f"new.{self._count_of(call.this)}")
            value: exp.Expr = column(f"new.{name}")
            adding = Adding.of(self.schema[name], self.groups)
            if adding in (Adding.WIDE, Adding.NEVER):
                return exp.null()
            if adding is not Adding.DECIMAL:
                value = exp.cast(value, "DOUBLE")
            return exp.Case().when(count.neq(0), exp.Div(this=value, expression=count))
        return column(f"new.{self._state(call)}")

    def _empty(self) -> exp.Expr:
        """Whether the group has no rows left; without keys, the group always exists."""
        return column(f"new.{self._rows}").eq(0) if self.groups.key else exp.false()

    def _action(self) -> exp.Expr:
        return (
            exp.Case()
            .when(column(f"new.{self._rows}") < 0, exp.null())
            .when(self._empty(), exp.Literal.number(-1))
            .when(column("lost"), exp.Literal.number(0))
            .else_(exp.Literal.number(1))
        )

    def _something_to_do(self) -> exp.Expr:
        keys = {stored for stored, _ in self.groups.key}
        same = [
            same_value(column(f"row.{n}"), column(f"old.{n}"), type_)
            for n, type_ in self.schema.items()
            if n not in keys
        ]
        never_stored = exp.and_(self._empty(), exp.Not(this=column("known")))
        stays = exp.and_(exp.true(), *same)
        unchanged = exp.and_(column("known"), exp.Not(this=column("lost")), stays)
        return exp.Not(this=exp.paren(exp.or_(never_stored, unchanged)))


def _plus(old: exp.Expr, change: exp.Expr) -> exp.Expr:
    old, change = (exp.Coalesce(this=e, expressions=[_ZERO.copy()]) for e in (old, change))
    return exp.Add(this=old, expression=change)


def _extreme(call: exp.Expr, old: exp.Expr, change: exp.Expr) -> exp.Expr:
    # Spark's LEAST and GREATEST ignore NULL, as MIN and MAX do.
    kind = exp.Least if isinstance(call, exp.Min) else exp.Greatest
    return kind(this=old, expressions=[change], ignore_nulls=True)


def partial_column(name: str) -> str:
    """The name of a column of the partial in a `Match`."""
    return f"p.{name}"


def stored_column(name: str) -> str:
    """The name of a column of the stored row in a `Match`."""
    return f"s.{name}"


@dataclass(frozen=True, eq=False)
class Match(Step):
    partial: Step
    stored: Step
    key: tuple[tuple[str, str], ...]
    """Pairs of a stored key column and the partial's."""

    @property
    def schema(self) -> Schema:
        partial = {partial_column(name): type_ for name, type_ in self.partial.schema.items()}
        return partial | {stored_column(name): type_ for name, type_ in self.stored.schema.items()}

    weighted: ClassVar[bool] = False

    def select(self, *inputs: str) -> exp.Query:
        partial, stored = inputs
        same = [null_safe(column(s, "s"), column(p, "p")) for s, p in self.key] or [exp.true()]
        left = [as_column(column(n, "p"), partial_column(n)) for n in self.partial.schema]
        right = [as_column(column(n, "s"), stored_column(n)) for n in self.stored.schema]
        query = select(*left, *right).from_(table(partial, "p"), copy=False)
        on = exp.and_(*same)
        return query.join(table(stored, "s"), on=on, join_type="left", copy=False)

    def explain(self) -> str:
        return "Match: each touched group, and its stored row"


_WEIGHED = 27
"""Most digits of a stored sum whose values can be multiplied by a weight within 38 digits."""
_KEPT = 6
"""Digits after the point that Spark's + keeps for two decimals of 38 digits."""


class Adding(enum.Enum):
    """How a change is added to a sum, depending on the type in which Spark stores it."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    WIDE = "wide"
    """A decimal that cannot be multiplied by a weight, only added or subtracted once."""
    FLOAT = "float"
    NEVER = "never"

    @classmethod
    def of(cls, stored: exp.DataType, groups: RootGroups) -> Adding:
        """SUM of DECIMAL(p, s) is stored as DECIMAL(p + 10, s); a weight adds 11 digits."""
        if stored.is_type(*exp.DataType.INTEGER_TYPES):
            return cls.INTEGER
        if stored.is_type(*exp.DataType.FLOAT_TYPES):
            return cls.NEVER if groups.exact else cls.FLOAT
        if stored.is_type(exp.DataType.Type.DECIMAL) and stored.expressions:
            precision, scale = (int(each.name) for each in stored.expressions)
            if precision <= _WEIGHED:
                return cls.DECIMAL
            return cls.WIDE if scale <= _KEPT else cls.NEVER
        return cls.NEVER


@dataclass(frozen=True, eq=False)
class Partial(Step):
    """What a change adds to each group: weighted sums, and the extremes inserted and deleted."""

    input: Step
    groups: RootGroups
    types: tuple[tuple[str, exp.DataType], ...]

    @property
    def schema(self) -> Schema:
        keys = {name: self.input.schema[name] for name in self.groups.aggregate.keys}
        unknown = exp.DataType.build("UNKNOWN")
        return keys | {name: unknown for name, _ in self._parts()}

    weighted: ClassVar[bool] = False

    def select(self, *inputs: str) -> exp.Query:
        keys = [column(key) for key in self.groups.aggregate.keys]
        parts = [as_column(e, n) for n, e in self._parts()]
        if not keys and not parts:
            return _if_any(inputs[0])
        query = select(*keys, *parts).from_(table(inputs[0]), copy=False)
        return query.group_by(*(key.copy() for key in keys), copy=False) if keys else query

    def _parts(self) -> list[tuple[str, exp.Expr]]:
        parts: list[tuple[str, exp.Expr]] = []
        types = dict(self.types)
        inserted, deleted = weight_column() > 0, weight_column() < 0
        for name, call in self.groups.states:
            argument = call.this
            match call:
                case exp.Count():
                    parts.append((f"d.{name}", _weights(argument)))
                case exp.Sum():
                    adding = Adding.of(types[name], self.groups)
                    parts.append((f"d.{name}", _total(argument, adding)))
                    several = exp.Abs(this=weight_column()).neq(1)
                    odd = several if adding is Adding.WIDE else deleted
                    some = exp.Not(this=is_null(argument))
                    parts.append((f"x.{name}", _any(exp.and_(some, odd))))
                case _:
                    for part, sign in (("d", inserted), ("x", deleted)):
                        values = exp.Case().when(sign.copy(), argument.copy())
                        parts.append((f"{part}.{name}", type(call)(this=values)))
        return parts

    def explain(self) -> str:
        return f"Partial sums of the change by ({', '.join(self.groups.aggregate.keys)})"


def _if_any(rows: str) -> exp.Query:
    """One row if there are any rows: they touch the one group of a query without GROUP BY."""
    count = exp.Count(this=exp.Star())
    query = select(as_column(count, "any")).from_(table(rows), copy=False)
    return query.having(count > 0, copy=False)


def _weights(argument: exp.Expr) -> exp.Expr:
    """COUNT over weighted rows."""
    weight: exp.Expr = weight_column()
    if not isinstance(argument, exp.Star):
        weight = exp.Case().when(exp.Not(this=is_null(argument)), weight)
    total = exp.Coalesce(this=exp.Sum(this=weight), expressions=[_ZERO.copy()])
    return exp.cast(total, "BIGINT")


def _total(argument: exp.Expr, adding: Adding) -> exp.Expr:
    """SUM over weighted rows, in a type that holds every product exactly."""
    value, weight = argument.copy(), weight_column()
    match adding:
        case Adding.INTEGER:
            value = exp.cast(value, "DECIMAL(19, 0)")
            weight = exp.cast(weight, "DECIMAL(10, 0)")
        case Adding.DECIMAL:
            weight = exp.cast(weight, "DECIMAL(10, 0)")
        case Adding.FLOAT:
            weight = exp.cast(weight, "DOUBLE")
        case Adding.WIDE:
            negative = exp.Neg(this=value.copy())
            return exp.Sum(this=exp.Case().when(weight > 0, value).else_(negative))
        case Adding.NEVER:
            return exp.null()
    return exp.Sum(this=exp.Mul(this=value, expression=weight))


def _any(condition: exp.Expr) -> exp.Expr:
    """1 or 0; 0 for no rows, over which a query without GROUP BY also aggregates."""
    one = exp.Case().when(condition, exp.Literal.number(1)).else_(_ZERO.copy())
    return exp.Coalesce(this=exp.Max(this=one), expressions=[_ZERO.copy()])
