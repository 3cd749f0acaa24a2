"""Which parts of a change run first.

A change is thin, and the rules repeat it: as rows to compute with, and as the keys that say which
rows to read. Whoever runs SQL as it is written runs a subtree as often as it is mentioned, and
reads for it each time. So a change that is mentioned several times, or that says what to read, is a
stage: it runs first, by itself, and its rows stand in its place. Where it has none, all that hangs
on it is nothing, and is never asked for.

    f(ΔA, keys of ΔA)    =  let a = net(ΔA) in f(a, keys of a)

A statement costs something too, so a plan that reads few tables has no stages.
"""

from __future__ import annotations

from collections.abc import Iterator

from dagster_streamtables.compiler.operators import Moment, Operator, Restriction, Scan, Step
from dagster_streamtables.compiler.operators.interning import rebuild
from dagster_streamtables.compiler.operators.net import Empty, Net, can_net
from dagster_streamtables.compiler.operators.render import uses
from dagster_streamtables.compiler.rewrite.simplify import simplify

WORTHWHILE = 6
"""Tables that a plan reads, each mention counted, from which on it has stages."""


def next_stage(root: Step) -> Operator | None:
    """The innermost part of a plan that should run first; None if there is none.

    Args:
        root: A plan as `share.rebuild` leaves it: equal steps are one object.
    """
    if _reads(root) < WORTHWHILE:
        return None
    used = uses(root)
    steps = list(_inputs_first(root))
    keys = {id(each) for step in steps if isinstance(step, Restriction) for each in step.touched}
    for step in steps:
        repeated = used[step] > 1 or id(step) in keys
        if step is not root and repeated and isinstance(step, Operator) and _is_stage(step):
            return step
    return None


def as_statement(stage: Operator) -> Operator:
    """What to run for a stage: its rows with their weights, none 0, no row twice."""
    return stage if isinstance(stage, Net) else Net(stage)


def with_rows(root: Step, stage: Operator, name: str | None) -> Step:
    """The plan with the rows of a stage in its place.

    Args:
        root: A plan.
        stage: What `next_stage` gave for it.
        name: Of the source whose change the rows are; None if there are none.
    """
    columns = tuple(stage.schema.items())
    rows = Empty(columns, True) if name is None else Scan(name, columns, Moment.CHANGE)
    exchanged = rebuild(root, lambda step, inputs: rows if step == stage else step.over(*inputs))
    return simplify(exchanged, unmoved=frozenset())


def _is_stage(step: Operator) -> bool:
    """Whether it is a change that is not at hand: the change of a source already is."""
    rows = step.input if isinstance(step, Net) else step
    at_hand = isinstance(rows, Scan | Empty)
    return step.weighted and not at_hand and not step.open and can_net(step)


def _inputs_first(root: Step) -> Iterator[Step]:
    seen: set[int] = set()

    def visit(step: Step) -> Iterator[Step]:
        if id(step) not in seen:
            seen.add(id(step))
            for each in step.inputs:
                yield from visit(each)
            yield step

    return visit(root)


def _reads(root: Step) -> int:
    """How many tables are read where every mention of a subtree is run again."""
    count: dict[int, int] = {}
    for step in _inputs_first(root):
        if isinstance(step, Scan):
            count[id(step)] = int(step.moment is not Moment.CHANGE)
        else:
            times = zip(step.inputs, step.mentions, strict=True)
            count[id(step)] = sum(count[id(each)] * n for each, n in times)
    return count[id(root)]
