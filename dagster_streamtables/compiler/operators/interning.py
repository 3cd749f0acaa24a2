"""One object for each distinct step of a tree, however often and wherever it was made.

Steps are values, and comparing two deep trees that share subtrees takes time exponential in their
depth. Built again from the leaves up, with equal steps exchanged for the first of them, equal means
identical all the way down, and a comparison looks at one step only.
"""

from __future__ import annotations

from collections.abc import Callable

from dagster_streamtables.compiler.operators import Step

Rule = Callable[[Step, tuple[Step, ...]], Step]
"""A step and its new inputs → what stands in its place."""


def rebuild(root: Step, rule: Rule = lambda step, inputs: step.over(*inputs)) -> Step:
    """The tree that `rule` makes of every step, inputs first, each distinct step made once."""
    done: dict[int, Step] = {}
    known: dict[Step, Step] = {}

    def visit(step: Step) -> Step:
        # By identity: `root` keeps every step alive, so no number is given out twice.
        if id(step) not in done:
            new = rule(step, tuple(visit(each) for each in step.inputs))
            done[id(step)] = known.setdefault(new, new)
        return done[id(step)]

    return visit(root)
