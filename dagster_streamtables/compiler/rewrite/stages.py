"""Split a plan into stages: parts of a change that run first.

A change is small, and delta rules mention it repeatedly: as rows to compute with, and as keys that
select the rows to read. Spark runs a subtree, and reads its tables, once per mention. So a change
that is mentioned several times, or whose keys select rows, is a stage: it runs first, as its own
statement, and its rows replace it in the plan. If it has no rows, everything that depends on it is
empty and never runs.

    f(ΔA, keys of ΔA)    =  let a = net(ΔA) in f(a, keys of a)

Each statement also has a cost, so a plan that reads few tables has no stages.
"""

from __future__ import annotations

from dagster_streamtables.compiler.operators.algebra import (
    Moment,
    Operator,
    Restriction,
    Step,
    walk,
)
from dagster_streamtables.compiler.operators.leaves import Empty, Scan
from dagster_streamtables.compiler.operators.net import Net, can_net
from dagster_streamtables.compiler.operators.step_trees import replace_step, uses
from dagster_streamtables.compiler.rewrite.simplify import simplify

WORTHWHILE = 6
"""The number of table reads, counting each mention, from which a plan has stages."""


def next_stage(root: Step) -> Operator | None:
    """The innermost part of a plan from `rebuild` that should run first, if any."""
    if _reads(root) < WORTHWHILE:
        return None
    used = uses(root)
    steps = list(walk(root))
    keys = {id(each) for step in steps if isinstance(step, Restriction) for each in step.touched}
    for step in steps:
        repeated = used[step] > 1 or id(step) in keys
        if step is not root and repeated and isinstance(step, Operator) and _is_stage(step):
            return step
    return None


def as_statement(stage: Operator) -> Operator:
    """The statement of a stage: its distinct rows with their nonzero weights."""
    return stage if isinstance(stage, Net) else Net(stage)


def with_rows(root: Step, stage: Operator, name: str | None) -> Step:
    """The plan with a stage replaced by the change of the source `name`; None: it has no rows."""
    columns = tuple(stage.schema.items())
    rows = Empty(columns, True) if name is None else Scan(name, columns, Moment.CHANGE)
    return simplify(replace_step(root, stage, rows), unmoved=frozenset())


def _is_stage(step: Operator) -> bool:
    """Whether it is a change that must be computed, unlike the change of a source."""
    rows = step.input if isinstance(step, Net) else step
    at_hand = isinstance(rows, Scan | Empty)
    return step.has_weight_column and not at_hand and not step.open and can_net(step)


def _reads(root: Step) -> int:
    """The number of table reads if every mention of a subtree runs separately."""
    count: dict[int, int] = {}
    for step in walk(root):
        if isinstance(step, Scan):
            count[id(step)] = int(step.moment is not Moment.CHANGE)
        else:
            times = zip(step.inputs, step.mentions, strict=True)
            count[id(step)] = sum(count[id(each)] * n for each, n in times)
    return count[id(root)]
