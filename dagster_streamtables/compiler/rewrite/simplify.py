"""Simplify a plan, given which sources have changed.

    the change of an unchanged source          empty
    an unchanged source before and after       the same relation
    an operator over empty inputs              empty, if the operator's `empty_if` says so
    0 + a,  a − a                              a,  0
    0 ∪ a                                      the types of the one side, the rows of the other
    the rows touched by an empty change        none; all rows are untouched

The log says which sources changed before any SQL runs, so a term whose change is empty is dropped
here and never reaches Spark.
"""

from __future__ import annotations

from collections.abc import Set

from dagster_streamtables.compiler.operators.algebra import (
    Moment,
    Negation,
    Restriction,
    Step,
    Sum,
    Typed,
    Union,
)
from dagster_streamtables.compiler.operators.leaves import Empty, Scan
from dagster_streamtables.compiler.operators.linear import Project, column_outputs
from dagster_streamtables.compiler.operators.step_trees import rebuild


def simplify(root: Step, *, unmoved: Set[str]) -> Step:
    """The same relation, given that the sources in `unmoved` have not changed."""
    return rebuild(root, lambda step, inputs: _simplify_step(step, inputs, unmoved))


def is_empty(step: Step) -> bool:
    return isinstance(step, Empty)


def _simplify_step(step: Step, inputs: tuple[Step, ...], unmoved: Set[str]) -> Step:
    if isinstance(step, Scan) and step.table in unmoved:
        return _empty(step) if step.moment is Moment.CHANGE else step.at(Moment.AFTER)
    if not inputs:
        return step
    if step.empty_if(*map(is_empty, inputs)):
        return _empty(step)
    if isinstance(step, Union) and step.branches:
        sides = zip(inputs, step.branches, strict=True)
        return step.over(*(Typed(side) if is_empty(each) else each for each, side in sides))
    if isinstance(step, Sum):
        return _sum(step, *inputs)
    if isinstance(step, Restriction):
        return _restriction(step, *inputs)
    return step.over(*inputs)


def _sum(step: Sum, left: Step, right: Step) -> Step:
    if is_empty(right) and (left.has_weight_column or not step.has_weight_column):
        return left
    if is_empty(left):
        return _rename_like(step, right)
    if isinstance(right, Negation) and right.input is left:
        return _empty(step)
    return step.over(left, right)


def _restriction(step: Restriction, rows: Step, *touched: Step) -> Step:
    some = [pair for pair in zip(touched, step.links, strict=True) if not is_empty(pair[0])]
    if not some:
        return rows
    steps, links = zip(*some, strict=True)
    if steps == touched:
        return step.over(rows, *touched)
    return Restriction(rows, steps, links, step.keep)


def _rename_like(step: Sum, right: Step) -> Step:
    """The right side of a sum with the column names of its left side, which a sum has."""
    if list(step.schema) == list(right.schema):
        return right
    return Project(right, column_outputs(right.schema, step.schema))  # type: ignore[arg-type]


def _empty(step: Step) -> Empty:
    return Empty(tuple(step.schema.items()), step.has_weight_column)
