"""One object for each distinct step of a tree.

Steps are values, and comparing two deep trees that share subtrees takes time exponential in their
depth. After a tree is rebuilt from the leaves up, each step replaced by the first one equal to it,
equal steps are identical, and a comparison looks at one level only.
"""

from __future__ import annotations

from collections.abc import Callable

from dagster_streamtables.compiler.operators import Step

Rule = Callable[[Step, tuple[Step, ...]], Step]
"""A step and its new inputs → its replacement."""


def rebuild(root: Step, rule: Rule = lambda step, inputs: step.over(*inputs)) -> Step:
    """Apply `rule` to every step, inputs first, and build each distinct step once."""
    done: dict[int, Step] = {}
    known: dict[Step, Step] = {}

    def visit(step: Step) -> Step:
        # By identity: `root` keeps every step alive, so no id is reused.
        if id(step) not in done:
            new = rule(step, tuple(visit(each) for each in step.inputs))
            done[id(step)] = known.setdefault(new, new)
        return done[id(step)]

    return visit(root)
