"""The change of a stored bag; where it can, with the old half read from the table itself.

    τ at the root             Δ = τ(R⁺) − stored             R⁻ is not read
    a recursion at the root   T⁻ = stored                    nothing is made again from the start

Both are cases of *stored old state*: at the root, the result before is what the table holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dagster_streamtables.compiler.operators import (
    Filter,
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
from dagster_streamtables.compiler.operators.interning import rebuild

Types = Mapping[str, exp.DataType]


def bag_change(view: Operator, types: Types, stored: Scan) -> Step:
    """Stored rows with the number of copies that came or went, none 0, no row twice."""
    below, held = _below(view)
    if isinstance(below, Top):
        touched = Net(below.input.change)
        now = _with(view, below, below.over(below.input.after.only(touched, ())))
        return Net(cast(now, types) - stored.only(touched, ()))
    # Cast as a change: what is stored has its type from these very values, and no cast fails.
    change = Net(cast(view.change, types))
    if isinstance(below, Recursion) and set(below.schema) <= set(held):
        outputs = ((n, typed(column(held[n]), t)) for n, t in below.schema.items())
        return _with(change, below.before, Project(stored, tuple(outputs)))
    return change


def first_rows(view: Operator, types: Types) -> Operator | None:
    """All rows of the table after the change, if those are the first of an order: so few that who
    has them beside what is stored finds the change sooner than Spark."""
    below, _ = _below(view)
    few = isinstance(below, Top) and below.limit is not None
    return cast(view.after, types) if few else None


def row_by_row(change: Step) -> Operator | None:
    """What a change nets, where each of its rows is made of one changed row of one source.

    Spark makes such rows of local ones while it plans, and runs no job; to net them takes one.
    """
    rows = found = change.input if isinstance(change, Net) else None
    while isinstance(rows, Project | Filter):
        rows = rows.input
    return found if isinstance(rows, Scan) and rows.weighted else None


def root_of_bag(view: Operator) -> Operator:
    """What stands below the SELECT lists at the root."""
    return _below(view)[0]


def _below(view: Operator) -> tuple[Operator, Mapping[str, str]]:
    """What stands below the SELECT lists at the root, and for its columns those of the table."""
    held = {name: name for name in view.schema}
    while isinstance(view, Project):
        columns = ((n, e.name) for n, e in view.outputs if isinstance(e, exp.Column))
        held = {own: held[name] for name, own in columns if name in held}
        view = view.input
    return view, held


def _with(root: Operator, part: Step, other: Step) -> Operator:
    """The tree with another step in the place of one."""
    found = rebuild(root, lambda step, inputs: other if step == part else step.over(*inputs))
    assert isinstance(found, Operator)
    return found


def cast(rows: Operator, types: Types) -> Operator:
    """Every column in the type in which it is stored."""
    stored = ((n, typed(exp.cast(column(n), types[n]), types[n])) for n in rows.schema)
    return Project(rows, tuple(stored))
