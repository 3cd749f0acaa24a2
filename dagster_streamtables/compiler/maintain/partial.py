"""Partial: what a change adds to each touched group.

    Σ over ΔR, by key        Δcount = Σ w,  Δsum = Σ x·w,  and the extremes that came and that went

Sums and counts of weighted rows are ordinary sums, so they need no old state. Extremes do not add
up: of a MIN the partial keeps the least value that came and the least that went, and `fold` decides
from the two whether the stored minimum still stands. Of a sum it keeps whether a row came or went
that `fold` cannot add: a float that went, or several copies of a decimal too wide to be multiplied.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.maintain.groups import Groups
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
"""Digits of a stored sum whose values can be multiplied by a weight within 38."""
_KEPT = 6
"""Digits behind the point that Spark's + keeps of two decimals of 38."""


class Adding(enum.Enum):
    """How a sum follows its change; decided by the type in which Spark stores it."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    WIDE = "wide"
    """A decimal that cannot be multiplied by a weight; it can be added and taken away once."""
    FLOAT = "float"
    NEVER = "never"

    @classmethod
    def of(cls, stored: exp.DataType, groups: Groups) -> Adding:
        """The stored SUM of DECIMAL(p, s) is DECIMAL(p + 10, s); a weight takes 11 digits more."""
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
    """What a change adds to each group: sums over weights, and the extremes that came and went."""

    input: Step
    groups: Groups
    types: tuple[tuple[str, exp.DataType], ...]

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        keys = {name: self.input.schema[name] for name in self.groups.aggregate.keys}
        unknown = exp.DataType.build("UNKNOWN")
        return keys | {name: unknown for name, _ in self._parts()}

    @property
    def weighted(self) -> bool:
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
    """One row if there are rows: the one group of a query without GROUP BY is touched."""
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
    """1 or 0; 0 of no rows, too, which a query without GROUP BY adds up as well."""
    zero = exp.Literal.number(0)
    one = exp.Case().when(condition, exp.Literal.number(1)).else_(zero)
    return exp.Coalesce(this=exp.Max(this=one), expressions=[zero.copy()])
