"""Intermediate tables: groups below the root of a query, stored in tables of their own.

    Q(γ(R))   =   Q(T),  T = γ(R)

The keyed law computes the touched groups twice, from R before and after, and the operators above
read them again for each of their terms. Stored in a table, an aggregate below the root changes like
one at the root: its stored groups plus what the change adds to them (see `fold`), without reading
R. To the operators above, T is a source like any other: a small table before and after, whose
change is what the fold committed.

An aggregate at the root with HAVING is stored, too: for groups that HAVING excludes, the table
itself has no row to fold into. Groups inside a recursion are not stored, nor are groups that read
the time: those change without a commit.

An intermediate table has the key columns ``k0 … kN``, the measures ``m0 … mN``, and ``s0 … sN`` for
the other state of a fold. Its name is derived from its definition, so a table of another definition
is never mistaken for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sqlglot import exp

from dagster_streamtables.compiler.maintain.groups import foldable, state_calls
from dagster_streamtables.compiler.maintain.strategy import GroupStrategy, strategy_of
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
from dagster_streamtables.compiler.rewrite.decorrelate import decorrelate
from dagster_streamtables.compiler.rewrite.fixpoint import canonical_text

_ROWS = typed(exp.Count(this=exp.Star()), exp.DataType.build("BIGINT"))


@dataclass(frozen=True)
class Intermediate:
    name: str
    view: Operator
    """Its rows, over sources and previous intermediate tables."""


def split(view: Operator) -> tuple[Operator, tuple[Intermediate, ...]]:
    """The query over intermediate tables, and these tables, each after those that it reads."""
    view = _operator(rebuild(view, lambda step, inputs: decorrelate(step.over(*inputs))))
    stays = _groups_of_the_table(view)
    found: dict[str, Intermediate] = {}

    def rule(step: Step, inputs: tuple[Step, ...]) -> Step:
        new = step.over(*inputs)
        if not isinstance(new, Aggregate) or step is stays or new.open:
            return new
        table = _intermediate(new)
        found[table.name] = table
        return _read(table, new)

    return _operator(rebuild(view, rule)), tuple(found.values())


def _groups_of_the_table(view: Operator) -> Aggregate | None:
    """The groups at the root, if the table itself stores all of them."""
    strategy = strategy_of(view)
    if not isinstance(strategy, GroupStrategy) or strategy.can_omit_groups:
        return None
    return strategy.groups.aggregate


def _intermediate(groups: Aggregate) -> Intermediate:
    """The groups under plain names, with the state of a fold."""
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
    digest = hashlib.sha256(canonical_text(view).encode()).hexdigest()
    return Intermediate(f"__st_{digest[:12]}", view)


def _read(table: Intermediate, groups: Aggregate) -> Operator:
    """The groups, read from the table."""
    old = list(groups.schema.items())
    new = [name for name in table.view.schema if not name.startswith("s")]
    scan = Scan(table.name, tuple((n, type_) for n, (_, type_) in zip(new, old, strict=True)))
    pairs = zip(new, old, strict=True)
    return Project(scan, tuple((name, typed(column(n), type_)) for n, (name, type_) in pairs))


def _operator(step: Step) -> Operator:
    assert isinstance(step, Operator)
    return step
