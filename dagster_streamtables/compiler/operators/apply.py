"""Subqueries, evaluated for every row.

    α(L, R₁ … Rₙ)        left-linear; see `joins` for the rule and why it holds

What does not mention the outer row, a FROM and the conditions on that alone, is an operator,
``Rᵢ``. The rest stays the user's SQL over ``Rᵢ`` and the columns of the row: correlated conditions,
SELECT, GROUP BY, ORDER BY, LIMIT. So all kinds of subqueries share one rule, and Spark evaluates
each in its own way.

If the subquery equates a column of ``Rᵢ`` with one of the row, a row of ``Rᵢ`` touches only the
rows with its key, and of ``Rᵢ`` only rows are read whose keys occur on the left.

    Apply             a new column holds the result: EXISTS, IN, or a scalar subquery
    SubqueryFilter    the rows for which the result is true: a whole condition of WHERE
    Lateral           each row joined with the rows of its result: LATERAL
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Link, Operator, Schema, weight_items
from dagster_streamtables.compiler.operators.joins import LeftLinear
from dagster_streamtables.compiler.operators.net import before_failing
from dagster_streamtables.compiler.operators.sql_builders import (
    all_of,
    as_column,
    column,
    select,
    table,
)


def place_of(position: int) -> str:
    """The name by which a subquery reads ``Rᵢ``."""
    return f"{_PLACE}{position}"


_PLACE = "__st_right_"


@dataclass(frozen=True, eq=False)
class SubqueryOperator(LeftLinear):
    rights: tuple[Operator, ...]
    subquery: exp.Expr
    """SQL over columns of the row and the tables `place_of` ``0 … n``."""
    links: tuple[Link, ...]
    """For each of `rights`: pairs of an expression over the row and one over its columns."""

    def delta(self) -> Operator:
        if self.rights:
            return super().delta()
        # A table function reads nothing but the row, as an expression does: linear.
        return self.over(before_failing(self.left, [self.subquery]))

    @property
    def sides(self) -> tuple[tuple[Operator, Link], ...]:
        return tuple(zip(self.rights, self.links, strict=True))

    def with_inputs(self, left: Operator, rights: Sequence[Operator]) -> Operator:
        def restrict_right(right: Operator, link: Link) -> Operator:
            if not link.pairs or link.loose:
                return right
            return right.only(left, [(theirs, ours) for ours, theirs in link.pairs])

        return self.over(left, *map(restrict_right, rights, self.links))

    def _over(self, inputs: Sequence[str]) -> exp.Expr:
        """The subquery with the names of its inputs filled in."""
        subquery = self.subquery.copy()
        for each in list(subquery.find_all(exp.Table)):
            position = each.name.removeprefix(_PLACE)
            if position != each.name:
                each.replace(table(inputs[int(position)], each.name))
        return subquery


@dataclass(frozen=True, eq=False)
class Apply(SubqueryOperator):
    name: str
    type: exp.DataType

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, self.name: self.type}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        return {self.name: self.subquery}

    def explain(self) -> str:
        return f"Apply: {self.subquery.sql('spark')}"

    def select(self, *inputs: str) -> exp.Query:
        left, *rights = inputs
        subquery = self._over(rights)
        kept = [*(column(name, "l") for name in self.left.schema), *weight_items(self, "l")]
        rows = select(*kept).from_(table(left, "l"), copy=False)
        if not self._mentions_the_row:
            return rows.select(as_column(subquery, self.name), copy=False)
        inner = _each(exp.Literal.number(1), "__st_once", rows)
        inner = inner.select(exp.alias_(subquery, "__st_answer", copy=False), copy=False)
        again = select(*(each.copy() for each in kept), column(self.name, "__st_one"))
        again = again.from_(inner.subquery("l", copy=False), copy=False)
        return _each(column("__st_answer", "l"), self.name, again)

    @property
    def _mentions_the_row(self) -> bool:
        """Whether its query does, not only the expression around that."""
        mentioned = (q.find_all(exp.Column) for q in self.subquery.find_all(exp.Query))
        return any(each.name in self.left.schema for columns in mentioned for each in columns)


def _each(value: exp.Expr, name: str, rows: exp.Select) -> exp.Select:
    """Add a column with a value to each row, by exploding an array of one element.

    Spark pushes a correlated subquery in a plain column below a UNION ALL, and there mistakes the
    subquery's own columns for columns of the rows; or it infers that the column equals the
    subquery, and fails to find that in the rows ("key not found"). Through an explode, it neither
    pushes nor infers.
    """
    array = exp.Explode(this=exp.Array(expressions=[value]))
    names = exp.TableAlias(
        this=exp.to_identifier("__st_one"), columns=[exp.to_identifier(name, quoted=True)]
    )
    return rows.lateral(exp.Lateral(this=array, view=True, alias=names), copy=False)


@dataclass(frozen=True, eq=False)
class SubqueryFilter(SubqueryOperator):
    @property
    def schema(self) -> Schema:
        return self.left.schema

    def explain(self) -> str:
        return f"Keep where: {self.subquery.sql('spark')}"

    def select(self, *inputs: str) -> exp.Query:
        left, *rights = inputs
        rows = select(all_of("l")).from_(table(left, "l"), copy=False)
        return rows.where(self._over(rights), copy=False)


@dataclass(frozen=True, eq=False)
class Lateral(SubqueryOperator):
    made: tuple[tuple[str, exp.DataType], ...]
    """The columns of the result, in the order of the subquery's SELECT list."""
    condition: exp.Expr | None
    """ON of a left join, which keeps the rows without a match; None if inner."""

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, **dict(self.made)}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        if not isinstance(self.subquery, exp.Query):
            return {}
        names = (name for name, _ in self.made)
        return dict(zip(names, self.subquery.selects, strict=True))

    def explain(self) -> str:
        kind = "Lateral join" if self.condition is None else "Left lateral join"
        return f"{kind}: {self.subquery.sql('spark')}"

    def select(self, *inputs: str) -> exp.Query:
        left, *rights = inputs
        alias = exp.TableAlias(
            this=exp.to_identifier("s"),
            columns=[exp.to_identifier(name, quoted=True) for name, _ in self.made],
        )
        lateral = exp.Lateral(this=exp.Subquery(this=self._over(rights)), alias=alias)
        kept = [column(name, "l") for name in self.left.schema]
        kept += [column(name, "s") for name, _ in self.made]
        query = select(*kept, *weight_items(self, "l")).from_(table(left, "l"), copy=False)
        if self.condition is None:
            return query.join(lateral, join_type="cross", copy=False)
        return query.join(lateral, on=self.condition.copy(), join_type="left", copy=False)
