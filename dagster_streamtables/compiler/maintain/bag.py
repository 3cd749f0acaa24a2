"""Bag: add the inserted rows of the change, and remove the deleted ones.

    τ at the root             Δ = τ(R⁺) − stored             R⁻ is not read
    a recursion at the root   T⁻ = stored                    T⁻ is not recomputed

In both cases the old result is read from the stored table instead of being computed.
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
    """Distinct stored rows with the nonzero number of copies to insert or delete."""
    below, held = _below(view)
    if isinstance(below, Top):
        touched = Net(below.input.change)
        now = _with(view, below, below.over(below.input.after.only(touched, ())))
        return Net(cast(now, types) - stored.only(touched, ()))
    # Cast after the change is computed: stored types come from these values, so no cast fails.
    change = Net(cast(view.change, types))
    if isinstance(below, Recursion) and set(below.schema) <= set(held):
        outputs = ((n, typed(column(held[n]), t)) for n, t in below.schema.items())
        return _with(change, below.before, Project(stored, tuple(outputs)))
    return change


def first_rows(view: Operator, types: Types) -> Operator | None:
    """All rows of the table after the change, for a query with LIMIT: they are so few that
    comparing them with the stored rows locally is faster than in Spark."""
    below, _ = _below(view)
    few = isinstance(below, Top) and below.limit is not None
    return cast(view.after, types) if few else None


def row_by_row(change: Step) -> Operator | None:
    """The rows before netting, if each is derived from one changed row of one source; or None.

    Over local rows Spark computes them while planning, without a job; netting needs a job.
    """
    rows = found = change.input if isinstance(change, Net) else None
    while isinstance(rows, Project | Filter):
        rows = rows.input
    return found if isinstance(rows, Scan) and rows.has_weight_column else None


def root_of_bag(view: Operator) -> Operator:
    """The operator below the SELECT lists at the root."""
    return _below(view)[0]


def _below(view: Operator) -> tuple[Operator, Mapping[str, str]]:
    """The operator below the SELECT lists at the root; its columns → those of the table."""
    held = {name: name for name in view.schema}
    while isinstance(view, Project):
        columns = ((n, e.name) for n, e in view.outputs if isinstance(e, exp.Column))
        held = {own: held[name] for name, own in columns if name in held}
        view = view.input
    return view, held


def _with(root: Operator, part: Step, other: Step) -> Operator:
    """The tree with one step replaced by another."""
    found = rebuild(root, lambda step, inputs: other if step == part else step.over(*inputs))
    assert isinstance(found, Operator)
    return found


def cast(rows: Operator, types: Types) -> Operator:
    """Cast every column to its stored type, if that is known."""
    stored = ((n, _cast(n, types[n])) for n in rows.schema)
    return Project(rows, tuple(stored))


def _cast(name: str, type_: exp.DataType) -> exp.Expr:
    known = not type_.is_type(exp.DataType.Type.UNKNOWN)
    return typed(exp.cast(column(name), type_) if known else column(name), type_)
