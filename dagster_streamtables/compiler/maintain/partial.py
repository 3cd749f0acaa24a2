"""Partial: what a change adds to each touched group.

    Σ over ΔR, by key        Δcount = Σ w,  Δsum = Σ x·w,  and the extremes inserted and deleted

Sums and counts of weighted rows are ordinary sums, so they need no old state. Extremes do not add
up: for MIN the partial has the least inserted and the least deleted value, from which `fold`
decides whether the stored minimum is still right. For a sum it has a flag for rows that `fold`
cannot add: a deleted float, or several copies of a decimal too wide to be multiplied.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.maintain.groups import RootGroups
from dagster_streamtables.compiler.operators import (
    Schema,
    Step,
    as_column,
    column,
    select,
    table,
    weight_column,
)

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


@dataclass(frozen=True)
class Partial(Step):
    """What a change adds to each group: weighted sums, and the extremes inserted and deleted."""

    input: Step
    groups: RootGroups
    types: tuple[tuple[str, exp.DataType], ...]

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        keys = {name: self.input.schema[name] for name in self.groups.aggregate.keys}
        unknown = exp.DataType.build("UNKNOWN")
        return keys | {name: unknown for name, _ in self._parts()}

    @property
    def has_weight_column(self) -> bool:
        return False

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
        gone = exp.LT(this=weight_column(), expression=exp.Literal.number(0))
        here = exp.GT(this=weight_column(), expression=exp.Literal.number(0))
        for name, call in self.groups.states:
            argument = call.this
            match call:
                case exp.Count():
                    parts.append((f"d.{name}", _weights(argument)))
                case exp.Sum():
                    adding = Adding.of(types[name], self.groups)
                    parts.append((f"d.{name}", _total(argument, adding)))
                    odd = _several() if adding is Adding.WIDE else gone
                    parts.append((f"x.{name}", _any(exp.and_(_present(argument), odd))))
                case _:
                    kind = type(call)
                    came = exp.Case().when(here.copy(), argument.copy())
                    went = exp.Case().when(gone.copy(), argument.copy())
                    parts.append((f"d.{name}", kind(this=came)))
                    parts.append((f"x.{name}", kind(this=went)))
        return parts

    def explain(self) -> str:
        return f"Partial sums of the change by ({', '.join(self.groups.aggregate.keys)})"


def _if_any(rows: str) -> exp.Query:
    """One row if there are any rows: they touch the one group of a query without GROUP BY."""
    count = exp.Count(this=exp.Star())
    some = exp.GT(this=count.copy(), expression=exp.Literal.number(0))
    return select(as_column(count, "any")).from_(table(rows), copy=False).having(some, copy=False)


def _present(argument: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=argument.copy(), expression=exp.null()))


def _weights(argument: exp.Expr) -> exp.Expr:
    """COUNT over weighted rows."""
    weight: exp.Expr = weight_column()
    if not isinstance(argument, exp.Star):
        weight = exp.Case().when(_present(argument), weight)
    total = exp.Coalesce(this=exp.Sum(this=weight), expressions=[exp.Literal.number(0)])
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
            came = exp.GT(this=weight, expression=exp.Literal.number(0))
            signed = exp.Case().when(came, value).else_(exp.Neg(this=value.copy()))
            return exp.Sum(this=signed)
        case Adding.NEVER:
            return exp.null()
    return exp.Sum(this=exp.Mul(this=value, expression=weight))


def _several() -> exp.Expr:
    return exp.NEQ(this=exp.Abs(this=weight_column()), expression=exp.Literal.number(1))


def _any(condition: exp.Expr) -> exp.Expr:
    """1 or 0; 0 for no rows, over which a query without GROUP BY aggregates, too."""
    zero = exp.Literal.number(0)
    one = exp.Case().when(condition, exp.Literal.number(1)).else_(zero)
    return exp.Coalesce(this=exp.Max(this=one), expressions=[zero.copy()])
