"""Runtime filters: of a relation joined with a change, read only rows between the change's keys.

    c ⋈ R  =  c ⋈ σ_{key within bounds of c}(R)        likewise for ⋉, ▷, ⟕ and `Restriction`

A row outside the bounds has no partner. If the rows of the change are already local, the bounds are
literals, and Spark skips the files and row groups whose statistics exclude them. Equality is not
enough: '2' equals 2 but sorts elsewhere. So only columns whose types have the same order are
bounded, and no computed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    Negation,
    Operator,
    Pair,
    Restriction,
    Step,
    Sum,
)
from dagster_streamtables.compiler.operators.apply import SubqueryOperator
from dagster_streamtables.compiler.operators.joins import Join, OuterJoin, SemiJoin
from dagster_streamtables.compiler.operators.keyed import Aggregate
from dagster_streamtables.compiler.operators.leaves import Scan, relation
from dagster_streamtables.compiler.operators.linear import Filter, Project
from dagster_streamtables.compiler.operators.net import Net
from dagster_streamtables.compiler.operators.sql_builders import column, is_null
from dagster_streamtables.compiler.operators.step_trees import rebuild

_ORDERS = (exp.DataType.INTEGER_TYPES, {exp.DataType.Type.DATE}, {exp.DataType.Type.TEXT})
"""Groups of types that share one order."""


@dataclass(frozen=True)
class Bounds:
    """The ranges that contain the values of a column."""

    ranges: tuple[tuple[exp.Expr, exp.Expr], ...]
    """The lowest and highest value of each range, as literals; empty if all values are NULL."""
    null: bool
    """Whether a value may be NULL."""

    def __or__(self, other: Bounds) -> Bounds:
        ranges = dict.fromkeys((*self.ranges, *other.ranges))
        return Bounds(tuple(ranges), self.null or other.null)

    def holds(self, key: exp.Expr) -> exp.Expr:
        """Whether a key may be among the values."""
        within: list[exp.Expr] = [_between(key, *ends) for ends in self.ranges]
        if self.null:
            within.append(is_null(key))
        return exp.paren(exp.or_(*within)) if within else exp.false()


Known = Callable[[str, str], Bounds | None]
"""A relation's name and one of its columns → the column's bounds, if the rows are local."""


def add_runtime_filters(root: Step, known: Known) -> Step:
    return rebuild(root, lambda step, inputs: _add_filters(step.over(*inputs), known))


def _add_filters(step: Step, known: Known) -> Step:
    match step:
        case Join(left=left, right=right):
            by_right = _within(left, right, step.pairs, known)
            return step.over(by_right, _within(right, left, _swap_sides(step.pairs), known))
        case OuterJoin(left=left, right=right) | SemiJoin(left=left, right=right):
            # Left rows are not filtered: those without a partner are also in the result.
            return step.over(left, _within(right, left, _swap_sides(step.pairs), known))
        case Restriction(input=rows, touched=[touched], links=[link]) if not link.loose:
            # Spark looks up one key for =, but two for <=>.
            known_keys = replace(step, links=(replace(link, never_null=_none_null(step, known)),))
            if step.keep and isinstance(rows, Operator):
                rows = _within(rows, touched, link.pairs, known)
            return known_keys.over(rows, touched)
        case _:
            return step


def _none_null(step: Restriction, known: Known) -> bool:
    """Whether the touching rows are known to have no NULL keys."""
    [link], [touched] = step.links, step.touched
    names = [other.name if other == column(other.name) else "" for _, other in link.pairs]
    found = [bounds_of(touched, name, known) if name else None for name in names]
    return bool(found) and all(each is not None and not each.null for each in found)


def _swap_sides(pairs: Sequence[Pair]) -> Sequence[Pair]:
    return [(other, own) for own, other in pairs]


def _within(rows: Operator, other: Step, pairs: Sequence[Pair], known: Known) -> Operator:
    """The rows whose keys are within the bounds of `other`; all rows if these are not known."""
    conditions = list(_conditions(rows, other, pairs, known))
    return Filter(rows, exp.and_(*conditions)) if conditions and not rows.open else rows


def _conditions(
    rows: Operator, other: Step, pairs: Sequence[Pair], known: Known
) -> Iterator[exp.Expr]:
    for own, others in pairs:
        if own != column(own.name) or others != column(others.name):
            continue
        alike = of_one_order(rows.schema[own.name], other.schema[others.name])
        # Local rows need no filter.
        if alike and bounds_of(rows, own.name, known) is None:
            bounds = bounds_of(other, others.name, known)
            if bounds is not None:
                yield bounds.holds(column(own.name))


def of_one_order(*types: exp.DataType) -> bool:
    """Whether equality and order are the same for values of all the types."""
    return any(all(each.this in order for each in types) for order in _ORDERS)


def bounds_of(step: Step, name: str, known: Known) -> Bounds | None:
    """The bounds of a column, if its values come from relations whose bounds are known."""
    match step:
        case Scan():
            return known(relation(step.table, step.moment), name)
        case Sum():
            return _of_both(step, name, known)
        case _:
            source = touching_column(step, name) or input_column(step, name)
            return None if source is None else bounds_of(*source, known)


def touching_column(step: Step, name: str) -> tuple[Step, str] | None:
    """The touching step of a restriction, and its column with all values of the column `name`."""
    if isinstance(step, Restriction) and step.keep and len(step.links) == 1:
        for own, other in () if step.links[0].loose else step.links[0].pairs:
            if own == column(name) and isinstance(other, exp.Column):
                return step.touched[0], other.name
    return None


def input_column(step: Step, name: str) -> tuple[Step, str] | None:
    """The input of a step, and its column with all values of the column `name`, if it has one."""
    match step:
        case Project():
            made = dict(step.outputs)[name]
            return (step.input, made.name) if isinstance(made, exp.Column) else None
        case Filter() | Net() | Negation() | Restriction():
            return step.input, name
        case Aggregate() if name in step.keys:
            return step.input, name
        case Join() | OuterJoin() | SemiJoin() | SubqueryOperator() if name in step.left.schema:
            return step.left, name
        case Join():
            return step.right, name
        case _:
            return None


def _of_both(step: Sum, name: str, known: Known) -> Bounds | None:
    """The bounds over both sides of a sum, whose columns match by position."""
    there = list(step.right.schema)[list(step.schema).index(name)]
    left, right = bounds_of(step.left, name, known), bounds_of(step.right, there, known)
    return None if left is None or right is None else left | right


def _between(key: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    if low == high:
        return exp.EQ(this=key.copy(), expression=low.copy())
    return exp.Between(this=key.copy(), low=low.copy(), high=high.copy())
