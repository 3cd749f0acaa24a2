"""Intermediate tables: the groups that a query makes on its way, kept as tables of their own.

    Q(γ(R))   =   Q(T),  T = γ(R)

The keyed law makes the touched groups twice, of rows of R as they are and as they were, and what
stands above them reads them once more for each of its terms. Kept as a table, an aggregate below
the root changes as one at the root does: its stored groups plus what the change adds to them (see
`fold`), and R is not read. Above it, T is a source like any other: its rows before and after are a
small table, its change is what the fold made of it.

An aggregate at the root whose groups HAVING keeps out is kept, too; the table itself has no row to
fold into. What a recursion makes of itself is not, and neither is anything that asks for the time:
those groups change without any commit.

An intermediate table holds plain columns: keys ``k0 … kN``, measures ``m0 … mN``, and ``s0 … sN``
for what a fold needs beside them. It is named by what it holds, so one that another definition made
is never taken for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.maintain.strategy import foldable, root_of, state_calls
from dagster_streamtables.compiler.operators import (
    Aggregate,
    Operator,
    Project,
    Scan,
    Step,
    column,
    type_of,
    typed,
)
from dagster_streamtables.compiler.operators.interning import rebuild
from dagster_streamtables.compiler.rewrite.decorrelate import decorrelated
from dagster_streamtables.compiler.rewrite.fixpoint import spelled

_ROWS = typed(exp.Count(this=exp.Star()), exp.DataType.build("BIGINT"))


@dataclass(frozen=True)
class Intermediate:
    name: str
    view: Operator
    """Its rows, of sources and of intermediate tables before it."""


def split(view: Operator) -> tuple[Operator, tuple[Intermediate, ...]]:
    """The query over intermediate tables, and those, each after the ones that it reads."""
    view = _operator(rebuild(view, lambda step, inputs: decorrelated(step.over(*inputs))))
    root = root_of(view)
    stays = root.groups if root.having is None else None
    found: dict[str, Intermediate] = {}

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        new = step.over(*inputs)
        if not isinstance(new, Aggregate) or step is stays or new.open:
            return new
        table = _intermediate(new)
        found[table.name] = table
        return _read(table, new)

    return _operator(rebuild(view, rule)), tuple(found.values())


def _intermediate(groups: Aggregate) -> Intermediate:
    """The groups under plain names, with what a fold needs beside them."""
    calls = [call for _, call in groups.measures]
    states: list[exp.Expr] = []
    if all(map(foldable, calls)):
        needed = dict.fromkeys(state for call in calls for state in state_calls(call))
        states = [each for each in (_ROWS, *needed) if each not in calls]
    kept = {f"s{i}": call for i, call in enumerate(dict.fromkeys(states))}
    names = {name: f"k{i}" for i, name in enumerate(groups.keys)}
    names |= {name: f"m{i}" for i, (name, _) in enumerate(groups.measures)}
    outputs = [(new, typed(column(old), groups.schema[old])) for old, new in names.items()]
    outputs += [(name, typed(column(name), type_of(call))) for name, call in kept.items()]
    whole = Aggregate(groups.input, groups.keys, (*groups.measures, *kept.items()))
    view = Project(whole, tuple(outputs))
    digest = hashlib.sha256(spelled(view).encode()).hexdigest()
    return Intermediate(f"__st_{digest[:12]}", view)


def _read(table: Intermediate, groups: Aggregate) -> Operator:
    """What was written out, read from the table."""
    old = list(groups.schema.items())
    new = [name for name in table.view.schema if not name.startswith("s")]
    scan = Scan(table.name, tuple((n, type_) for n, (_, type_) in zip(new, old, strict=True)))
    pairs = zip(new, old, strict=True)
    return Project(scan, tuple((name, typed(column(n), type_)) for n, (name, type_) in pairs))


def _operator(step: Step) -> Operator:
    assert isinstance(step, Operator)
    return step
