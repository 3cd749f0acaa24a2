"""Apply: a question asked of every row, with a subquery in it.

    α(L, R₁ … Rₙ)        left-linear; see `left_linear` for the rule and why it holds

The subquery is split in two. What it says without mentioning the row is an operator, ``Rᵢ``: its
FROM, and the conditions on that alone. What is left, the *question*, stays SQL as the user wrote
it, over ``Rᵢ`` and the columns of the row: conditions that mention the row, SELECT, GROUP BY,
ORDER BY, LIMIT. So every kind of subquery has one rule, and Spark answers each in its own way.

Where the question compares a column of ``Rᵢ`` with one of the row for equality, a row of ``Rᵢ``
touches only the rows with its key, and only rows of ``Rᵢ`` with the keys asked for need be read.

    Apply      a new column holds the answer: EXISTS, IN, a scalar subquery, wherever it stands
    Keep       the rows for which the answer is true: a condition of WHERE that is nothing else
    Lateral    each row beside the rows of its answer: LATERAL
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import Operator, Restriction
from dagster_streamtables.compiler.operators.columns import (
    all_of,
    as_column,
    column,
    select,
    table,
    weight_column,
)
from dagster_streamtables.compiler.operators.left_linear import LeftLinear
from dagster_streamtables.compiler.operators.step import Link, Schema, Step


def place_of(position: int) -> str:
    """The name under which a question reads ``Rᵢ``."""
    return f"__st_right_{position}"


@dataclass(frozen=True)
class Question(LeftLinear):
    asks: tuple[Operator, ...]
    question: exp.Expr
    """Over columns of the row and over the tables `place_of` ``0 … n``."""
    touches: tuple[Link, ...]
    """For each of `asks`: (expression over the row, expression over it) pairs."""

    __hash__ = Step.__hash__

    @property
    def rights(self) -> tuple[Operator, ...]:
        return self.asks

    @property
    def links(self) -> tuple[Link, ...]:
        return self.touches

    def asked(self, left: Operator, rights: list[Operator]) -> Operator:
        return self.over(left, *map(self._only_keys_of(left), rights, self.touches))

    def _only_keys_of(self, left: Operator):
        def only(right: Operator, link: Link) -> Operator:
            if not link.pairs or link.loose:
                return right
            turned = tuple((theirs, ours) for ours, theirs in link.pairs)
            return Restriction(right, (left,), (Link(turned),))

        return only

    def _over(self, inputs: tuple[str, ...]) -> exp.Expr:
        """The question with its tables named."""
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


@dataclass(frozen=True)
class Apply(Question):
    name: str
    type: exp.DataType

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, self.name: self.type}

    @property
    def kind(self) -> str:
        return "Apply"

    def select(self, *inputs: str) -> exp.Query:
        left, *rights = inputs
        question = self._over(tuple(rights))
        kept = [column(name, "l") for name in self.left.schema]
        if self.weighted:
            kept.append(weight_column("l"))
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
        """Whether a subquery does, not only what stands beside it."""
        mentioned = (q.find_all(exp.Column) for q in self.question.find_all(exp.Query))
        return any(each.name in self.left.schema for columns in mentioned for each in columns)


def _each(value: exp.Expr, name: str, rows: exp.Select) -> exp.Select:
    """The same rows, beside each the one row of the array of a value.

    A column that is a correlated subquery Spark would move below a UNION ALL, where it takes the
    subquery's own columns for columns of the rows; and that the column equals the subquery is what
    it would look for in the rows of a UNION ALL above ("key not found"). It moves nothing across an
    array that is unfolded, and what comes out of one it does not know to equal what went in.
    """
    array = exp.Explode(this=exp.Array(expressions=[value]))
    names = exp.TableAlias(
        this=exp.to_identifier("__st_one"), columns=[exp.to_identifier(name, quoted=True)]
    )
    return rows.lateral(exp.Lateral(this=array, view=True, alias=names), copy=False)


@dataclass(frozen=True)
class Keep(Question):
    __hash__ = Step.__hash__

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


@dataclass(frozen=True)
class Lateral(Question):
    made: tuple[tuple[str, exp.DataType], ...]
    """The columns of the answer, which the question lists in this order."""
    condition: exp.Expr | None
    """None for an inner join; a left join keeps rows without an answer that satisfies it."""

    __hash__ = Step.__hash__

    @property
    def schema(self) -> Schema:
        return {**self.left.schema, **dict(self.made)}

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
        if self.weighted:
            kept.append(weight_column("l"))
        query = select(*kept).from_(table(left, "l"), copy=False)
        if self.condition is None:
            return query.join(lateral, join_type="cross", copy=False)
        return query.join(lateral, on=self.condition.copy(), join_type="left", copy=False)
