"""`Step`: one step of a computation over relations, as a value.

A plan is a tree of steps. Most are operators (see `algebra`), which can derive their own change;
the others write a change into a stored table.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

from sqlglot import exp

from dagster_streamtables.compiler.operators.sql_builders import as_weight, weight_column

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

    @property
    def has_weight_column(self) -> bool:
        """Whether the output has a weight column; without one, every weight is 1."""
        return self._any_input_has_weight

    @cached_property
    def _any_input_has_weight(self) -> bool:
        return any(each.has_weight_column for each in self.inputs)

    def empty_if(self, *inputs: bool) -> bool:
        """Whether the output is empty if the inputs marked True are."""
        return all(inputs)

    @cached_property
    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def inputs(self) -> tuple[Step, ...]:
        """The steps that it reads: its fields that are steps or tuples of steps, in order."""
        found: list[Step] = []
        for value in self._values:
            several: tuple[object, ...] = value if isinstance(value, tuple) else (value,)  # type: ignore
            found += [each for each in several if isinstance(each, Step)]
        return tuple(found)

    @cached_property
    def open(self) -> frozenset[str]:
        """The recursions that this subtree refers to but does not contain."""
        return frozenset[str]().union(*(each.open for each in self.inputs))

    @property
    def output_expressions(self) -> Mapping[str, exp.Expr]:
        """The columns that it computes, each with its expression over columns of the inputs.

        Lineage reads it: other columns are those of the same name below, or have no origin.
        """
        return {}

    @property
    def mentions(self) -> tuple[int, ...]:
        """How often `select` names each of its inputs."""
        return (1,) * len(self.inputs)

    def over(self, *inputs: Step) -> Self:
        """The same step over other inputs."""
        if all(a is b for a, b in zip(inputs, self.inputs, strict=True)):
            return self
        rest, new = list(inputs), dict[str, object]()
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Step):
                new[field.name] = rest.pop(0)
            elif isinstance(value, tuple) and value and isinstance(value[0], Step):
                count = len(value)  # type: ignore[reportUnknownArgumentType]
                new[field.name], rest = tuple(rest[:count]), rest[count:]
        return replace(self, **new)

    # Trees share subtrees: a common table expression read twice is one object under two parents.
    # So properties that are read often are cached: without the cache, each read would walk the
    # tree once per path to a subtree, and the number of paths can double with every level.
    @cached_property
    def _hash(self) -> int:
        return hash((type(self), *self._values))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Step) or type(other) is not type(self):
            return False
        return self._values == other._values


def weight_items(step: Step, table: str | None = None) -> list[exp.Column]:
    """The weight column of `step` as a select item, if it has one."""
    return [weight_column(table)] if step.has_weight_column else []


def weight_of(step: Step, table: str | None = None) -> exp.Expr:
    """The weight of a row of `step`, as a select item: its weight column, or 1."""
    return weight_column(table) if step.has_weight_column else as_weight(exp.Literal.number(1))
