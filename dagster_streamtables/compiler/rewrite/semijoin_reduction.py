"""Semijoin reduction: compute a plan over a small change from the changed rows outwards.

Delta rules define the change, not the order in which to compute it. If few rows changed, the
relations that they are joined with should be read for them only:

    (L ⋈ R) ⋉ K         =   (L ⋉ K) ⋈ R             if K touches columns of L; and so below σ, π, γ
    (L ⋉ K) ⟕ R         =   (L ⋉ K) ⟕ (R ⋉ K)       if K touches the columns that R is compared by
    (L ⋈ R) ⋈ c         =   (c ⋈ R) ⋈ L             from the small side outwards

Spark does some of this, depending on its size estimates. For the result of a join it assumes the
worst, and sorts where it could look up. So the small side of each join is marked for broadcasting.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dagster_streamtables.compiler.operators.algebra import (
    Link,
    Negation,
    Operator,
    Pair,
    Restriction,
    Step,
    Sum,
)
from dagster_streamtables.compiler.operators.apply import SubqueryOperator
from dagster_streamtables.compiler.operators.joins import (
    Join,
    OuterJoin,
    SemiJoin,
    conjuncts,
    equalities,
    join_in_order,
)
from dagster_streamtables.compiler.operators.keyed import Aggregate
from dagster_streamtables.compiler.operators.leaves import Empty, Scan
from dagster_streamtables.compiler.operators.linear import Filter, Project, column_outputs
from dagster_streamtables.compiler.operators.net import Net, cannot_fail
from dagster_streamtables.compiler.operators.sql_builders import column, column_names, map_columns
from dagster_streamtables.compiler.operators.step_trees import rebuild
from dagster_streamtables.compiler.rewrite.runtime_filters import (
    input_column,
    of_one_order,
    touching_column,
)


def reduce_semijoins(root: Step) -> Step:
    """The same plan, whose changes are all small, computed from its small parts outwards."""
    for rule in (_bare, _push_restriction, _both_sides, _from_the_small_side, _mark_broadcast):
        root = rebuild(root, lambda step, inputs, rule=rule: rule(step.over(*inputs)))
    return root


def is_small(step: Step) -> bool:
    """Whether a relation has few rows, provided that changes and the rows of a key are few."""
    match step:
        case Restriction(keep=True):
            return all(link.pairs and not link.loose for link in step.links)
        case Join(left=left, right=right):
            return is_small(left) or is_small(right)
        case OuterJoin() | SemiJoin() | SubqueryOperator():
            return is_small(step.left)
        case Filter() | Project() | Net() | Negation() | Aggregate():
            return is_small(step.input)
        case Sum(left=left, right=right):
            return is_small(left) and is_small(right)
        case Empty():
            return True
        case _:
            return step.has_weight_column


def _bare(step: Step) -> Step:
    """Remove the restriction of a subquery's right sides to the keys on the left: `_both_sides`
    finds a better one."""
    if not isinstance(step, SubqueryOperator) or not is_small(step.left):
        return step
    rights = (
        each.input if isinstance(each, Restriction) and each.touched == (step.left,) else each
        for each in step.rights
    )
    return step.over(step.left, *rights)


def _both_sides(step: Step) -> Step:
    """Restrict the right side as well, to the rows that touch the left one."""
    match step:
        case OuterJoin(left=left, right=right) | SemiJoin(left=left, right=right):
            touched, keys = _touching(left, step.pairs, right)
            return step.over(left, _down(right, touched, keys) if keys else right)
        case SubqueryOperator(left=left):
            rights = (_for(left, right, () if k.loose else k.pairs) for right, k in step.sides)
            return step.over(left, *rights)
        case _:
            return step


def _for(left: Operator, right: Operator, pairs: tuple[Pair, ...]) -> Step:
    """The rows of `right` that a subquery for the rows of `left` reads."""
    touched, keys = _touching(left, pairs, right)
    if not keys and is_small(left):
        touched, keys = left, tuple((theirs, own) for own, theirs in pairs)
    return _down(right, touched, keys) if keys else right


def _touching(
    left: Operator, pairs: tuple[Pair, ...], right: Step
) -> tuple[Step, tuple[Pair, ...]]:
    """The step that determines the rows of `left`, and how it touches `right`; no pairs if none."""
    if isinstance(left, Restriction) and not left.keep:
        left = left.input if isinstance(left.input, Operator) else left
    if _is_at_hand(left):
        return left, tuple((theirs, own) for own, theirs in pairs)
    found: dict[Step, list[Pair]] = {}
    for own, theirs in pairs:
        source = _source(left, own.name) if isinstance(own, exp.Column) else None
        if source is not None:
            step, key = source[0], column(source[1])
            if _is_one_type((left, own), (right, theirs), (step, key)):
                found.setdefault(step, []).append((theirs, key))
    touched, keys = next(iter(found.items()), (left, []))
    return touched, tuple(keys)


def _source(step: Step, name: str) -> tuple[Step, str] | None:
    """The touching step and its column that contains all values of the column `name`."""
    below = input_column(step, name)
    return touching_column(step, name) or (below and _source(*below))


def _is_at_hand(step: Step) -> bool:
    while isinstance(step, Project | Filter | Net | Negation):
        step = step.input
    return isinstance(step, Scan) and step.has_weight_column


def _is_one_type(*places: tuple[Step, exp.Expr]) -> bool:
    """Whether equality is transitive over these columns: '01' and '1' both equal 1."""
    columns = all(isinstance(each, exp.Column) for _, each in places)
    return columns and of_one_order(*(rows.schema[each.name] for rows, each in places))


def _push_restriction(step: Step) -> Step:
    """Push a restriction down to where its columns come from."""
    match step:
        case Restriction(touched=[touched], links=[link], keep=True) if not link.loose:
            return _down(step.input, touched, link.pairs) if link.pairs else step
        case _:
            return step


def _down(rows: Step, touched: Step, pairs: tuple[Pair, ...]) -> Step:
    names = column_names(*(own for own, _ in pairs))
    match rows:
        case Filter():
            return rows.over(_down(rows.input, touched, pairs))
        case Project():
            made = dict(rows.outputs)
            if all(isinstance(made[name], exp.Column) for name in names):
                below = tuple(
                    (map_columns(own, lambda each: made[each.name].copy()), other)
                    for own, other in pairs
                )
                return rows.over(_down(rows.input, touched, below))
        case Join() | OuterJoin() | SemiJoin() | SubqueryOperator():
            left, *rights = rows.inputs
            if names <= set(left.schema):
                return rows.over(_down(left, touched, pairs), *rights)
            if isinstance(rows, Join) and names <= set(rows.right.schema):
                return rows.over(left, _down(rows.right, touched, pairs))
        case Aggregate():
            # Without keys, an aggregate returns a row even for an empty input.
            if rows.keys and names <= set(rows.keys):
                return rows.over(_down(rows.input, touched, pairs))
        case _:
            pass
    return Restriction(rows, (touched,), (Link(pairs),))


def _from_the_small_side(step: Step) -> Step:
    """Turn a tree of inner joins into a chain that begins with its small input."""
    if not isinstance(step, Join):
        return step
    leaves, conditions = _flatten_joins(step)
    small = sorted(filter(is_small, leaves), key=lambda leaf: not leaf.has_weight_column)
    names = [name for leaf in leaves for name in leaf.schema]
    if not small or len(set(names)) < len(names) or not all(map(cannot_fail, conditions)):
        return step
    order, rest = [small[0]], [leaf for leaf in leaves if leaf is not small[0]]
    together = exp.and_(exp.true(), *conditions)
    while rest:
        seen = {name for each in order for name in each.schema}
        found = next((leaf for leaf in rest if equalities(together, seen, leaf.schema)), None)
        if found is None:
            return step
        rest.remove(found)
        order.append(found)
    chain, outputs = join_in_order(order, conditions), column_outputs(step.schema)
    return chain if list(chain.schema) == list(step.schema) else Project(chain, outputs)


def _flatten_joins(step: Operator) -> tuple[list[Operator], list[exp.Expr]]:
    """The inputs of a tree of inner joins, and its conditions."""
    below = step.input if isinstance(step, Project) and _is_identity(step) else step
    if not isinstance(below, Join):
        return [step], []
    sides = [_flatten_joins(side) for side in (below.left, below.right)]
    parts = [part for part in conjuncts(below.condition) if part != exp.true()]
    leaves, conditions = zip(*sides, strict=True)
    return [each for side in leaves for each in side], [*(c for s in conditions for c in s), *parts]


def _is_identity(step: Project) -> bool:
    return all(isinstance(e, exp.Column) and e.name == name for name, e in step.outputs)


def _mark_broadcast(step: Step) -> Step:
    """Mark the small side of a join, for Spark to broadcast."""
    match step:
        case Join(left=left, right=right) if is_small(left) != is_small(right):
            return replace(step, small="l" if is_small(left) else "r")
        case OuterJoin() | SemiJoin() if is_small(step.right):
            return replace(step, small=True)
        case Restriction(touched=touched) if all(map(is_small, touched)):
            return replace(step, small=True)
        case _:
            return step
