"""Constant: rows that come from the query itself.

    Δ c = 0

VALUES, a table function of constants, and the one row of a SELECT without FROM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator
from dagster_streamtables.compiler.operators.net import Empty
from dagster_streamtables.compiler.operators.step import Schema, Step


@dataclass(frozen=True)
class Constant(Operator):
    query: exp.Query
    """A query that reads no table."""
    columns: tuple[tuple[str, exp.DataType], ...]

    __hash__ = Step.__hash__
    law: ClassVar[str] = "constant"
    cost: ClassVar[str] = "nothing"

    @property
    def schema(self) -> Schema:
        return dict(self.columns)

    def delta(self) -> Operator:
        return Empty(self.columns, True)

    def empty_if(self, *inputs: bool) -> bool:
        return False

    def select(self, *inputs: str) -> exp.Query:
        return self.query.copy()

    def explain(self) -> str:
        return f"Constant {self.query.sql('spark')}"


ONE_ROW = Constant(exp.select("1"), ())
"""The input of a SELECT without FROM."""
