"""Apply: a correlated subquery, evaluated for every row.

    α(L, R₁ … Rₙ)        left-linear; see `left_linear` for the rule and why it holds

The subquery is split in two. The part that does not mention the outer row, its FROM and the
conditions on that alone, is an operator, ``Rᵢ``. The rest, the *question*, stays the user's SQL
over ``Rᵢ`` and the columns of the row: correlated conditions, SELECT, GROUP BY, ORDER BY, LIMIT.
So all kinds of subqueries share one rule, and Spark evaluates each in its own way.

Where the question equates a column of ``Rᵢ`` with one of the row, a row of ``Rᵢ`` touches only
the rows with its key, and only those rows of ``Rᵢ`` are read whose keys occur on the left.

A question over a table function, FROM explode(row.tags), has no ``Rᵢ``: only the change asks it.

    Apply             a new column holds the answer: EXISTS, IN, or a scalar subquery
    SubqueryFilter    the rows for which the answer is true: a whole condition of WHERE
    Lateral           each row joined with the rows of its answer: LATERAL
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator, Restriction
from dagster_streamtables.compiler.operators.failing import before_failing
from dagster_streamtables.compiler.operators.left_linear import LeftLinear
from dagster_streamtables.compiler.operators.sql_builders import (
    all_of,
    as_column,
    column,
    select,
    table,
)
from dagster_streamtables.compiler.operators.step import Link, Schema, weight_items


def place_of(position: int) -> str:
    """The name by which a question reads ``Rᵢ``."""
    return f"__st_right_{position}"


@dataclass(frozen=True, eq=False)
class SubqueryOperator(LeftLinear):
    asks: tuple[Operator, ...]
    question: exp.Expr
    """SQL over columns of the row and the tables `place_of` ``0 … n``."""
    touches: tuple[Link, ...]
    """For each of `asks`: pairs of an expression over the row and one over its columns."""

    def delta(self) -> Operator:
        if self.asks:
            return super().delta()
        # It reads nothing but the row, as an expression does: linear.
        return self.over(before_failing(self.left, [self.question]))

    @property
    def rights(self) -> tuple[Operator, ...]:
        return self.asks

    @property
    def links(self) -> tuple[Link, ...]:
        return self.touches

    def with_inputs(self, left: Operator, rights: list[Operator]) -> Operator:
        return self.over(left, *map(self._only_keys_of(left), rights, self.touches))

    def _only_keys_of(self, left: Operator):
        def only(right: Operator, link: Link) -> Operator:
            if not link.pairs or link.loose:
                return right
            turned = tuple((theirs, ours) for ours, theirs in link.pairs)
            return Restriction(right, (left,), (Link(turned),))

        return only

    def _over(self, inputs: tuple[str, ...]) -> exp.Expr:
        """The question with the names of its inputs filled in."""
        question = self.question.copy()
        names = {place_of(i): name for i, name in enumerate(inputs)}
        for each in list(question.find_all(exp.Table)):
            if each.name in names:
                each.replace(table(names[each.name], each.name))
        return question

    @property
    @abstractmethod
    def kind(self) -> str: ...

    def explain(self) -> str:
        return f"{self.kind}: {self.question.sql('spark')}"


@dataclass(frozen=True, eq=False)
class Apply(SubqueryOperator):
    name: str
    type: exp.DataType

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, self.name: self.type}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        return {self.name: self.question}

    @property
    def kind(self) -> str:
        return "Apply"

    def select(self, *inputs: str) -> exp.Query:
        left, *rights = inputs
        question = self._over(tuple(rights))
        kept = [*(column(name, "l") for name in self.left.schema), *weight_items(self, "l")]
        rows = select(*kept).from_(table(left, "l"), copy=False)
        if not self._mentions_the_row:
            return rows.select(as_column(question, self.name), copy=False)
        answered = _each(exp.Literal.number(1), "__st_once", rows)
        answered = answered.select(exp.alias_(question, "__st_answer", copy=False), copy=False)
        again = select(*(each.copy() for each in kept), column(self.name, "__st_one"))
        again = again.from_(answered.subquery("l", copy=False), copy=False)
        return _each(column("__st_answer", "l"), self.name, again)

    @property
    def _mentions_the_row(self) -> bool:
        """Whether a subquery of the question does, not only the expression around it."""
        mentioned = (q.find_all(exp.Column) for q in self.question.find_all(exp.Query))
        return any(each.name in self.left.schema for columns in mentioned for each in columns)


def _each(value: exp.Expr, name: str, rows: exp.Select) -> exp.Select:
    """Add a column with a value to each row, by exploding an array of one element.

    Spark pushes a correlated subquery in a plain column below a UNION ALL, and there mistakes the
    subquery's own columns for columns of the rows. A UNION ALL above also fails ("key not found"):
    Spark infers that the column equals the subquery, and looks for that in the rows. It pushes
    nothing through an explode, and does not infer that the output equals the input.
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

    @property
    def kind(self) -> str:
        return "Keep where"

    def select(self, *inputs: str) -> exp.Query:
        left, *rights = inputs
        rows = select(all_of("l")).from_(table(left, "l"), copy=False)
        return rows.where(self._over(tuple(rights)), copy=False)


@dataclass(frozen=True, eq=False)
class Lateral(SubqueryOperator):
    made: tuple[tuple[str, exp.DataType], ...]
    """The columns of the answer, in the order of the question's SELECT list."""
    condition: exp.Expr | None
    """ON of a left join, which keeps the rows for which no answer satisfies it; None if inner."""

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, **dict(self.made)}

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        if not isinstance(self.question, exp.Query):
            return {}
        names = (name for name, _ in self.made)
        return dict(zip(names, self.question.selects, strict=True))

    @property
    def kind(self) -> str:
        return "Lateral join" if self.condition is None else "Left lateral join"

    def select(self, *inputs: str) -> exp.Query:
        left, *rights = inputs
        answer = self._over(tuple(rights))
        alias = exp.TableAlias(
            this=exp.to_identifier("s"),
            columns=[exp.to_identifier(name, quoted=True) for name, _ in self.made],
        )
        lateral = exp.Lateral(this=exp.Subquery(this=answer), alias=alias)
        kept = [column(name, "l") for name in self.left.schema]
        kept += [column(name, "s") for name, _ in self.made]
        query = select(*kept, *weight_items(self, "l")).from_(table(left, "l"), copy=False)
        if self.condition is None:
            return query.join(lateral, join_type="cross", copy=False)
        return query.join(lateral, on=self.condition.copy(), join_type="left", copy=False)
