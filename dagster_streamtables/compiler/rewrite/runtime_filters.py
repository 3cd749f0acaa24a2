"""Bounds: of what is paired with a change, only the rows between the keys of the change.

    c ⋈ R  =  c ⋈ σ_{key within bounds of c}(R)        and so for ⋉, ▷, ⟕ and `Restriction`

A row outside pairs with nothing. Where the change is at hand, the bounds are values, and a filter
by values is what a file's statistics can answer: the files and row groups of other keys are left
unread. Equal is not enough to be bounded: '2' equals 2 and stands elsewhere in the order, so only
columns whose types have the same order are, and none that an expression computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dagster_streamtables.compiler.operators import (
    Aggregate,
    Filter,
    Join,
    Negation,
    Net,
    Operator,
    OuterJoin,
    Pair,
    Project,
    Restriction,
    Scan,
    SemiJoin,
    Step,
    Sum,
    column,
    relation,
)
from dagster_streamtables.compiler.operators.interning import rebuild
from dagster_streamtables.compiler.operators.left_linear import equalities

_ORDERS = (exp.DataType.INTEGER_TYPES, {exp.DataType.Type.DATE}, {exp.DataType.Type.TEXT})
"""Types whose values have one order."""


@dataclass(frozen=True)
class Bounds:
    """Where the values of a column lie."""

    ranges: tuple[tuple[exp.Expr, exp.Expr], ...]
    """The lowest and the highest value of each range, as literals; none if all are NULL."""
    null: bool
    """Whether a value may be NULL."""

    def __or__(self, other: Bounds) -> Bounds:
        ranges = dict.fromkeys((*self.ranges, *other.ranges))
        return Bounds(tuple(ranges), self.null or other.null)

    def holds(self, key: exp.Expr) -> exp.Expr:
        """Whether a key may be among the values."""
        within: list[exp.Expr] = [_between(key, *ends) for ends in self.ranges]
        if self.null:
            within.append(exp.Is(this=key.copy(), expression=exp.null()))
        return exp.paren(exp.or_(*within)) if within else exp.false()


Known = Callable[[str, str], Bounds | None]
"""A relation's name and one of its columns → the bounds of its rows, where they are at hand."""


def bounded(root: Step, known: Known) -> Step:
    """The same relation, reading less.

    Args:
        root: A plan.
        known: The bounds of the relations that it reads.
    """
    return rebuild(root, lambda step, inputs: _bounded(step.over(*inputs), known))


def _bounded(step: Step, known: Known) -> Step:
    match step:
        case Join(left=left, right=right):
            pairs = _pairs(step)
            return step.over(
                _within(left, right, pairs, known), _within(right, left, _turned(pairs), known)
            )
        case OuterJoin(left=left, right=right) | SemiJoin(left=left, right=right):
            # Every left row has its answer, with a partner or without.
            return step.over(left, _within(right, left, _turned(_pairs(step)), known))
        case Restriction(input=rows, touched=[touched], links=[link]) if not link.loose:
            # Spark looks a key up by = sooner than by <=>, of which it makes two keys.
            told = replace(step, links=(replace(link, never_null=_none_null(step, known)),))
            if step.keep and isinstance(rows, Operator):
                rows = _within(rows, touched, link.pairs, known)
            return told.over(rows, touched)
        case _:
            return step


def _none_null(step: Restriction, known: Known) -> bool:
    """Whether no key of what touches is NULL, as far as its rows are at hand."""
    [link], [touched] = step.links, step.touched
    names = [other.name if other == column(other.name) else "" for _, other in link.pairs]
    found = [bounds_of(touched, name, known) if name else None for name in names]
    return bool(found) and all(each is not None and not each.null for each in found)


def _pairs(join: Join | OuterJoin | SemiJoin) -> Sequence[Pair]:
    return equalities(join.condition, frozenset(join.left.schema), frozenset(join.right.schema))


def _turned(pairs: Sequence[Pair]) -> Sequence[Pair]:
    return [(other, own) for own, other in pairs]


def _within(rows: Operator, other: Step, pairs: Sequence[Pair], known: Known) -> Operator:
    """The rows whose keys lie where those of `other` do; all of them if nothing is known."""
    conditions = list(_conditions(rows, other, pairs, known))
    return Filter(rows, exp.and_(*conditions)) if conditions and not rows.open else rows


def _conditions(
    rows: Operator, other: Step, pairs: Sequence[Pair], known: Known
) -> Iterator[exp.Expr]:
    for own, others in pairs:
        if own != column(own.name) or others != column(others.name):
            continue
        types = rows.schema[own.name], other.schema[others.name]
        if not of_one_order(*types):
            continue
        # What is at hand itself costs nothing to read.
        if bounds_of(rows, own.name, known) is None:
            bounds = bounds_of(other, others.name, known)
            if bounds is not None:
                yield bounds.holds(column(own.name))


def of_one_order(*types: exp.DataType) -> bool:
    """Whether values of all the types are equal, and stand in order, as those of one are."""
    return any(all(each.this in order for each in types) for order in _ORDERS)


def bounds_of(step: Step, name: str, known: Known) -> Bounds | None:
    """Where the values of a column lie, as far as they are those of relations at hand."""
    match step:
        case Scan():
            return known(relation(step.table, step.moment), name)
        case Project():
            made = dict(step.outputs)[name]
            return bounds_of(step.input, made.name, known) if made == column(made.name) else None
        case Restriction() if (source := step.among(name)) is not None:
            touched, other = source
            return bounds_of(touched, other.name, known)
        case Filter() | Net() | Negation() | Restriction():
            return bounds_of(step.input, name, known)
        case Aggregate() if name in step.keys:
            return bounds_of(step.input, name, known)
        case Join() | OuterJoin() | SemiJoin() if name in step.left.schema:
            return bounds_of(step.left, name, known)
        case Join():
            return bounds_of(step.right, name, known)
        case Sum():
            return _of_both(step, name, known)
        case _:
            return None


def _of_both(step: Sum, name: str, known: Known) -> Bounds | None:
    """A sum takes its columns by their position."""
    there = list(step.right.schema)[list(step.schema).index(name)]
    left, right = bounds_of(step.left, name, known), bounds_of(step.right, there, known)
    return None if left is None or right is None else left | right


def _between(key: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    if low == high:
        return exp.EQ(this=key.copy(), expression=low.copy())
    return exp.Between(this=key.copy(), low=low.copy(), high=high.copy())
