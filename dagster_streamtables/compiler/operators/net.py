"""Net: add up the weights of equal rows, and drop the rows that cancel.

    net(ΔR) = ΔR

It is the same weighted relation with the fewest rows. NULLs equal each other here, as in GROUP BY;
the two zeros of floats do not, see `zeros`, nor do maps with another order of entries, see
`comparable`.

Most rules work on repeated rows; netting is needed at the end of a change, where only rows that
were really inserted or deleted may touch others, and where an expression could fail on a row that
never existed for a reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.comparable import (
    comparable,
    has_form,
    has_zeros,
    zeros,
)
from dagster_streamtables.compiler.operators.sql_builders import (
    as_column,
    as_weight,
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True, eq=False)
class Net(Operator):
    input: Operator

    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def has_weight_column(self) -> bool:
        return True

    def delta(self) -> Operator:
        return self.over(self.input.change)

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        floats = {name: type_ for name, type_ in self.schema.items() if has_zeros(type_)}
        changed = {*floats, *(name for name, type_ in self.schema.items() if has_form(type_))}
        keys = [comparable(column(name), type_) for name, type_ in self.schema.items()]
        apart = [zeros(column(name), type_) for name, type_ in floats.items()]
        shown = [
            as_column(exp.AnyValue(this=column(name)), name) if name in changed else column(name)
            for name in self.schema
        ]
        one = exp.Literal.number(1)
        total = exp.Sum(this=weight_column() if self.input.has_weight_column else one)
        weight = as_weight(exp.cast(total.copy(), "BIGINT"))
        some = exp.NEQ(this=total, expression=exp.Literal.number(0))
        query = select(*shown, weight).from_(table(rows), copy=False)
        query = query.group_by(*keys, *apart, copy=False)
        return query.having(some, copy=False)

    def explain(self) -> str:
        return "Net"


@dataclass(frozen=True, eq=False)
class Empty(Operator):
    """No rows: a term whose inputs did not change, according to the log."""

    columns: tuple[tuple[str, exp.DataType], ...]
    has_weight: bool

    law: ClassVar[str] = "constant"
    cost: ClassVar[str] = "nothing"

    def delta(self) -> Operator:
        return Empty(self.columns, True)

    @property
    def schema(self) -> Schema:
        return dict(self.columns)

    @property
    def has_weight_column(self) -> bool:
        return self.has_weight

    def empty_if(self, *inputs: bool) -> bool:
        return True

    def select(self, *inputs: str) -> exp.Query:
        nulls = [exp.alias_(_null(type_), name, quoted=True) for name, type_ in self.columns]
        weight = [as_weight(exp.cast(exp.null(), "BIGINT"))] if self.has_weight else []
        # SQL cannot SELECT no columns.
        columns = [*nulls, *weight] or [exp.Literal.number(1)]
        return select(*columns).where(exp.false(), copy=False)

    def explain(self) -> str:
        return "Empty"


def _null(type_: exp.DataType) -> exp.Expr:
    unknown = any(part.this is exp.DType.UNKNOWN for part in type_.find_all(exp.DataType))
    return exp.null() if unknown else exp.cast(exp.null(), type_.copy())


_UNGROUPED = (exp.DataType.Type.OBJECT,)


def can_net(rows: Step) -> bool:
    """Whether Spark can group by all columns, as far as their types are known."""
    types = (part.this for type_ in rows.schema.values() for part in type_.find_all(exp.DataType))
    return bool(rows.schema) and not any(each in _UNGROUPED for each in types)
