"""Weighted relations: the algebra that queries and their changes share.

A *weighted relation* is a bag of rows, each with an integer weight. In a table every weight is 1
and copies are repeated rows. In a change the weight says how many copies of the row were inserted
(``+``) or deleted (``-``). Weighted relations can be added and subtracted, and

    after = before + change

holds for every relation in this package: sources, results, and everything between.

A plan is a tree of steps. Most are operators, which can derive their own change; the others write a
change into a stored table. Because a change is itself a relation, the change of an operator is
written with operators. This module holds the base classes, the operators that delta rules are built
from,

    a + b              `Sum`          every row of both
    -a                 `Negation`     the same rows, weights negated
    a.only(c, on)      `Restriction`  the rows of ``a`` whose key occurs in ``c``

and `Union`, the user's own UNION ALL. The other modules hold the other operators of SQL.

Only changes have a weight column. The states before and after are plain SQL over versions of the
sources, so every function there means what it means in the user's query.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar, Self

from sqlglot import exp

from dagster_streamtables.compiler.operators.sql_builders import (
    all_of,
    as_weight,
    broadcast,
    column,
    is_null,
    select,
    table,
    weight_column,
    within,
)

Schema = Mapping[str, exp.DataType]
Pair = tuple[exp.Expr, exp.Expr]
"""An expression over one input, and the expression over the other that must equal it."""


@dataclass(frozen=True)
class Link:
    """The condition under which a row of one relation touches a row of another."""

    pairs: tuple[Pair, ...] = ()
    """What must be equal; NULL equals NULL. Without pairs, any row touches every row."""
    loose: bool = False
    """NULL on either side of a pair equals everything: in ``x NOT IN (…)`` a NULL is decisive."""
    never_null: bool = False
    """The touching side has no NULL keys, so = can replace <=>."""


class Moment(enum.Enum):
    """The state of the sources that a tree reads."""

    BEFORE = "before"
    AFTER = "after"
    CHANGE = "change"


NO_INPUT = {"input": False}
"""The metadata of a field with a step that is no input."""


@dataclass(frozen=True, eq=False)
class Step(ABC):
    """One step of a computation over relations.

    Steps are values: trees with the same content are equal, and the renderer writes equal subtrees
    once. Subclasses are dataclasses with ``eq=False``, so that they inherit the cached hash.
    """

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns of the output, in order, without the weight."""

    @abstractmethod
    def select(self, *inputs: str) -> exp.Query:
        """The SQL of this step alone, reading its inputs from the named relations."""

    @abstractmethod
    def explain(self) -> str:
        """This step, on one line."""

    weighted: ClassVar[bool | None] = None
    """Whether the output has a weight column; None: if an input has one."""

    @property
    def has_weight_column(self) -> bool:
        """Whether the output has a weight column; without one, every weight is 1."""
        return self._any_input_has_weight if self.weighted is None else self.weighted

    @cached_property
    def _any_input_has_weight(self) -> bool:
        return any(each.has_weight_column for each in self.inputs)

    def empty_if(self, *inputs: bool) -> bool:
        """Whether the output is empty if the inputs marked True are; for a step with inputs."""
        return all(inputs)

    @cached_property
    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def inputs(self) -> tuple[Step, ...]:
        """The steps that it reads: its fields that are steps or tuples of steps, in order."""
        found: list[Step] = []
        for own, value in zip(fields(self), self._values, strict=True):
            if NO_INPUT.items() <= own.metadata.items():
                continue
            several: tuple[object, ...] = value if isinstance(value, tuple) else (value,)  # type: ignore
            found += [each for each in several if isinstance(each, Step)]
        return tuple(found)

    @cached_property
    def open(self) -> frozenset[str]:
        """The recursions that this subtree refers to but does not contain."""
        return frozenset[str]().union(*(each.open for each in self.inputs))

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        """For lineage: the columns that it computes, each with its expression over the inputs."""
        return {}

    @property
    def mentions(self) -> tuple[int, ...]:
        """How often `select` names each of its inputs."""
        return (1,) * len(self.inputs)

    def over(self, *inputs: Step) -> Self:
        """The same step over other inputs."""
        if all(a is b for a, b in zip(inputs, self.inputs, strict=True)):
            return self
        rest, new = iter(inputs), dict[str, object]()
        for own, value in zip(fields(self), self._values, strict=True):
            if NO_INPUT.items() <= own.metadata.items():
                continue
            if isinstance(value, Step):
                new[own.name] = next(rest)
            elif isinstance(value, tuple) and value and isinstance(value[0], Step):
                new[own.name] = tuple(next(rest) for _ in value)  # type: ignore[reportUnknown]
        return replace(self, **new)

    # Cached, as are other properties that walk the tree: trees share subtrees, and without a cache
    # each read would follow every path to a subtree, whose number can double with every level.
    @cached_property
    def _hash(self) -> int:
        return hash((type(self), *self._values))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Step) or type(other) is not type(self):
            return False
        return self._values == other._values


def walk(root: Step) -> Iterator[Step]:
    """Every step of a tree once, inputs first; equal steps are one only after `rebuild`."""
    seen, path = {id(root)}, [(root, iter(root.inputs))]
    while path:
        below = next((each for each in path[-1][1] if id(each) not in seen), None)
        if below is None:
            yield path.pop()[0]
        else:
            seen.add(id(below))
            path.append((below, iter(below.inputs)))


def weight_items(step: Step, table: str | None = None) -> list[exp.Column]:
    """The weight column of `step` as a select item, if it has one."""
    return [weight_column(table)] if step.has_weight_column else []


def all_columns(step: Step, relation: str, *, weighted: bool) -> exp.Select:
    """The columns of a step, read from a relation, and its weight column if any, or else 1."""
    weight = weight_items(step) or [as_weight(exp.Literal.number(1))]
    columns = map(column, step.schema)
    return select(*columns, *(weight if weighted else [])).from_(table(relation), copy=False)


@dataclass(frozen=True, eq=False)
class Operator(Step):
    """A step that can derive its own change."""

    @abstractmethod
    def delta(self) -> Operator:
        """The change of the output, in terms of the inputs and their changes."""

    law: ClassVar[str]
    """The law of its delta rule: linear, bilinear, left-linear, keyed, fixpoint, or constant."""
    cost: ClassVar[str]
    """What its change reads."""

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        """Whether the rows derived from a row of these inputs depend on no other row of them.

        The step of a recursion reads the recursion through such operators only.
        """
        return False

    def at(self, moment: Moment) -> Operator:
        """The same relation, with the sources read before or after the change."""
        sides = (each for each in self.inputs if isinstance(each, Operator))
        return self.over(*(s.before if moment is Moment.BEFORE else s.after for s in sides))

    @cached_property
    def before(self) -> Operator:
        return self.at(Moment.BEFORE)

    @cached_property
    def after(self) -> Operator:
        return self.at(Moment.AFTER)

    @cached_property
    def change(self) -> Operator:
        """The result of `delta`, computed once; rules read it here."""
        return self.delta()

    def only(self, touched: Step, on: Sequence[Pair]) -> Restriction:
        """The rows whose key occurs in `touched`; all rows, if it has any, without a key."""
        return Restriction(self, (touched,), (Link(tuple(on)),))

    def only_keys(self, touched: Step, keys: Sequence[str]) -> Restriction:
        return self.only(touched, [(column(key), column(key)) for key in keys])

    def __add__(self, other: Operator) -> Sum:
        return Sum(self, other)

    def __neg__(self) -> Negation:
        return Negation(self)

    def __sub__(self, other: Operator) -> Sum:
        return Sum(self, -other)


@dataclass(frozen=True, eq=False)
class LinearOperator(Operator):
    """An operator over one input, by default with its columns.    Δ f(R) = f(ΔR)"""

    input: Operator

    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    def delta(self) -> Operator:
        return self.over(self.input.change)


@dataclass(frozen=True, eq=False)
class Sum(Operator):
    """``a + b``; in SQL, UNION ALL.    Δ(a + b) = Δa + Δb"""

    left: Operator
    right: Operator

    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return self.left.schema

    def delta(self) -> Operator:
        return self.left.change + self.right.change

    def select(self, *inputs: str) -> exp.Query:
        # UNION ALL matches columns by position, so both sides list theirs in their own order.
        sides = zip((self.left, self.right), inputs, strict=True)
        weighted = self.has_weight_column
        selects = (all_columns(step, name, weighted=weighted) for step, name in sides)
        return exp.union(*selects, distinct=False)

    def explain(self) -> str:
        return "Sum"


@dataclass(frozen=True, eq=False)
class Negation(LinearOperator):
    """``-a``; ``a - b`` is ``a + (-b)``.    Δ(-a) = -Δa"""

    weighted: ClassVar[bool] = True

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        weighted = self.input.has_weight_column
        weight = exp.Neg(this=weight_column()) if weighted else exp.Literal.number(-1)
        return select(*map(column, self.schema), as_weight(weight)).from_(table(rows), copy=False)

    def explain(self) -> str:
        return "Negation"


@dataclass(frozen=True, eq=False)
class Restriction(Operator):
    """The rows that are touched by some row of ``touched``, or by none.

        a.only(c, on)     the rows of ``a`` whose key occurs in ``c``, whatever the weights there

    NULL keys match each other, as in GROUP BY. An empty key matches every row as soon as
    ``touched`` has any row.

    Only delta rules make restrictions, over sources at one moment.
    """

    input: Step
    touched: tuple[Step, ...]
    links: tuple[Link, ...]
    keep: bool = True
    """Whether to keep the touched rows, or the others."""
    small: bool = False
    """``touched`` is known to have few rows."""

    law: ClassVar[str] = "linear"
    cost: ClassVar[str] = "the change"

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def has_weight_column(self) -> bool:
        return self.input.has_weight_column

    @property
    def mentions(self) -> tuple[int, ...]:
        return (1, *(3 if link.loose and len(link.pairs) == 1 else 1 for link in self.links))

    def empty_if(self, *inputs: bool) -> bool:
        return inputs[0] or (self.keep and all(inputs[1:]))

    def delta(self) -> Operator:
        raise TypeError("a restriction is part of a change and has none of its own")

    def select(self, *inputs: str) -> exp.Query:
        rows, *touched = inputs
        found = [
            _touches(link, name, small=self.small)
            for link, name in zip(self.links, touched, strict=True)
        ]
        some: exp.Expr = exp.or_(*found) if len(found) > 1 else found[0]
        condition = some if self.keep else exp.Not(this=exp.paren(some))
        return select(all_of("r")).from_(table(rows, "r"), copy=False).where(condition, copy=False)

    def explain(self) -> str:
        pairs = (
            f"{a.sql('spark')} = {b.sql('spark')}" for each in self.links for a, b in each.pairs
        )
        keys = ", ".join(pairs)
        kept = "changed" if self.keep else "unchanged"
        return f"Restriction to {kept} ({keys})" if keys else f"Restriction to {kept}: all or none"


def _touches(link: Link, touched: str, *, small: bool) -> exp.Expr:
    """The condition that some row of ``touched`` touches the row ``r``."""
    found = select(exp.Literal.number(1)).from_(table(touched, "c"))
    found = broadcast(found, "c") if small else found
    if not link.pairs:
        return exp.Exists(this=found)
    sides = [(within(left, "r"), within(right, "c")) for left, right in link.pairs]
    equal = exp.EQ if link.never_null else exp.NullSafeEQ
    same = [equal(this=left, expression=right) for left, right in sides]
    if not link.loose:
        return exp.Exists(this=found.where(*same))
    nulls = [is_null(each) for side in sides for each in side]
    if len(sides) > 1:
        pairs = zip(same, nulls[::2], nulls[1::2], strict=True)
        return exp.Exists(this=found.where(*(exp.paren(exp.or_(*three)) for three in pairs)))
    # Three EXISTS rather than one with OR inside, which would compare every pair of rows.
    equal, null = exp.Exists(this=found.where(*same)), exp.Exists(this=found.where(nulls[1]))
    return exp.or_(equal, null, exp.and_(nulls[0], exp.Exists(this=found)))


@dataclass(frozen=True, eq=False)
class Union(Sum):
    """UNION ALL.    Δ(L ∪ R) = ΔL ∪ ΔR

    Unlike `Sum`, it determines types: a column has the common type of both sides, which only Spark
    finds. If only one side changed, the other stays as a side without rows; otherwise a column
    could be INT in one refresh and BIGINT in the next.
    """

    branches: tuple[Operator, Operator] | None = field(default=None, metadata=NO_INPUT)
    """In a change: the union's inputs, for their types."""

    def is_linear_in(self, inputs: Sequence[Step]) -> bool:
        return True

    def delta(self) -> Operator:
        branches = self.left.after, self.right.after
        return Union(self.left.change, self.right.change, branches)

    def explain(self) -> str:
        return "Union"


@dataclass(frozen=True, eq=False)
class Typed(Step):
    """The columns of a relation without its rows."""

    input: Step

    @property
    def schema(self) -> Schema:
        return self.input.schema

    weighted: ClassVar[bool] = True

    def select(self, *inputs: str) -> exp.Query:
        [rows] = inputs
        weight = as_weight(exp.cast(exp.null(), "BIGINT"))
        query = select(*map(column, self.schema), weight).from_(table(rows), copy=False)
        return query.where(exp.false(), copy=False)

    def explain(self) -> str:
        return "No rows, for their types"
