"""The change of a stored bag; where it can, with the old half read from the table itself.

    τ at the root             Δ = τ(R⁺) − stored             R⁻ is not read
    a recursion at the root   T⁻ = stored                    nothing is made again from the start

Both are cases of *stored old state*: at the root, the result before is what the table holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dagster_streamtables.compiler.operators import (
    Net,
    Operator,
    Project,
    Recursion,
    Scan,
    Step,
    Top,
    column,
    typed,
)
from dagster_streamtables.compiler.share import rebuild

Types = Mapping[str, exp.DataType]


def bag_change(view: Operator, types: Types, stored: Scan) -> Step:
    """Stored rows with the number of copies that came or went, none 0, no row twice."""
    below = view.input if isinstance(view, Project) else view
    if isinstance(below, Top):
        touched = Net(below.input.change)
        top = below.over(below.input.after.only(touched, ()))
        now = view.over(top) if isinstance(view, Project) else top
        return Net(cast(now, types) - stored.only(touched, ()))
    change = Net(cast(view, types).change)
    names = _names(view, below)
    if isinstance(below, Recursion) and names is not None:
        before = below.before
        kept = Project(
            stored, tuple((n, typed(column(names[n]), t)) for n, t in below.schema.items())
        )
        return rebuild(change, lambda step, inputs: kept if step == before else step.over(*inputs))
    return change


def _names(view: Operator, below: Operator) -> Mapping[str, str] | None:
    """Column below → the column of the view that holds it, if the view holds them all."""
    if view is below:
        return {name: name for name in below.schema}
    assert isinstance(view, Project)
    names = {e.name: name for name, e in view.outputs if isinstance(e, exp.Column)}
    return names if set(below.schema) <= set(names) else None


def cast(rows: Operator, types: Types) -> Operator:
    """Every column in the type in which it is stored."""
    stored = ((n, typed(exp.cast(column(n), types[n]), types[n])) for n in rows.schema)
    return Project(rows, tuple(stored))
