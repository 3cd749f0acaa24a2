"""Choose the strategy for applying the change to the stored table, by the root of the query.

    bag         anything          rows of the change are inserted and deleted
    fold        γ at the root     stored group + what ΔR adds to it; R is not read
    regroup     γ at the root     γ(R⁺ ⋉ K) replaces the stored groups of K

All three are cases of ``stored + Δ``. They rely on one fact: at the root, the result *before* is
the stored table, so it is read there instead of being recomputed from R⁻. A bag does so for

    τ at the root             Δ = τ(R⁺) − stored             R⁻ is not read
    a recursion at the root   T⁻ = stored                    T⁻ is not recomputed

A fold stores its state in hidden columns, whose names begin with ``__st_``:

    __st_n      the number of rows of the group; a group without rows is deleted
    __st_cN     COUNT(x)
    __st_sN     SUM(x)
    __st_mN     MIN(x) or MAX(x)
    __st_kN     a key of the group that the query does not return

A fold cannot maintain every group. A group is *lost*, and recomputed from the source, if its MIN
lost the minimum, its sum of floats lost an addend (subtracting floats can be wrong by more than
rounding), or its sum has decimals too wide to be multiplied by a weight exactly.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.maintain.fold import Fold, Match, Partial
from dagster_streamtables.compiler.maintain.root_groups import (
    ROWS,
    Regroup,
    RootGroups,
    foldable,
    state_calls,
)
from dagster_streamtables.compiler.operators.algebra import Moment, Operator, Step
from dagster_streamtables.compiler.operators.keyed import Aggregate, Top
from dagster_streamtables.compiler.operators.leaves import Scan
from dagster_streamtables.compiler.operators.linear import Filter, Project
from dagster_streamtables.compiler.operators.net import Net
from dagster_streamtables.compiler.operators.recursion import Recursion
from dagster_streamtables.compiler.operators.sql_builders import column, typed
from dagster_streamtables.compiler.operators.step_trees import replace_step

STORED = "__st_table"
"""The relation of the stored stream table itself."""
TOUCHED = "__st_touched"
"""The relation with the keys of touched groups and, for a fold, what the change adds to each."""

Types = Mapping[str, exp.DataType]
"""The columns of the stored table."""


class StrategyKind(enum.StrEnum):
    BAG = "bag"
    FOLD = "fold"
    REGROUP = "regroup"


@dataclass(frozen=True)
class BagStrategy:
    """Rows are inserted and deleted."""

    view: Operator

    kind: ClassVar[StrategyKind] = StrategyKind.BAG
    law: ClassVar[str] = "bag: inserted rows are added, deleted rows are removed"
    """The strategy on one line, for people to read."""
    key: ClassVar[None] = None
    internal_columns: ClassVar[tuple[str, ...]] = ()

    def internal_sql(self, aliases: Set[str]) -> dict[str, str]:
        return {}

    def change(self, types: Types) -> Step:
        """Distinct stored rows with the nonzero number of copies to insert or delete."""
        view, stored = self.view, table_scan(types)
        below, held = root_of_bag(view)
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


@dataclass(frozen=True)
class GroupStrategy(ABC):
    """Groups change in place, identified by their keys."""

    groups: RootGroups
    having: exp.Expr | None = None
    """HAVING: the groups that it excludes have no stored row. A fold has none."""

    @property
    def key(self) -> tuple[str, ...]:
        """The stored columns that identify a row; empty for the one row without GROUP BY."""
        return tuple(name for name, _ in self.groups.key)

    @property
    def internal_columns(self) -> tuple[str, ...]:
        """The stored columns that readers do not see."""
        keys = (name for name, _ in self.groups.internal_keys)
        return (*keys, *(name for name, _ in self.groups.internal_states))

    def internal_sql(self, aliases: Set[str]) -> dict[str, str]:
        return self.groups.internal_sql(aliases)

    @abstractmethod
    def change(self, types: Types) -> Step:
        """The change of the table in a refresh."""

    def partial(self, types: Types) -> Partial:
        """The keys of the touched groups, and for a fold what the change adds to each."""
        return Partial(self.groups.aggregate.input.change, self.groups, tuple(types.items()))

    def regroup(self, touched: Step, types: Types) -> Regroup:
        """The result of `Regroup` for the groups with these keys."""
        groups, old = self.groups, table_scan(types)
        aggregate, rows = groups.aggregate, groups.aggregate.input.after
        measures = (*aggregate.measures, *groups.internal_states)
        now: Operator = (
            Aggregate(rows.only_keys(touched, aggregate.keys), aggregate.keys, measures)
            if aggregate.keys
            # The one group has a row even over no rows; it must be omitted if nothing was touched.
            else Aggregate(rows, (), measures).only(touched, ())
        )
        hidden = [(name, column(key)) for name, key in groups.internal_keys]
        hidden += [(name, column(name)) for name, _ in groups.internal_states]
        now = now if self.having is None else Filter(now, self.having)
        now = cast(Project(now, (*groups.outputs, *hidden)), types)
        on = tuple((column(name), column(key)) for name, key in groups.key)
        return Regroup(now, old.only(touched, on), groups.key)


@dataclass(frozen=True)
class FoldStrategy(GroupStrategy):
    """The change of each group is added to its stored row."""

    kind: ClassVar[StrategyKind] = StrategyKind.FOLD
    law: ClassVar[str] = "fold: the change of each group is added to its stored row"

    def change(self, types: Types) -> Step:
        return self.fold(self.partial(types), types)

    def fold(self, touched: Step, types: Types) -> Fold:
        """The result of `Fold` for the groups in a relation like `partial`."""
        old, key = table_scan(types), self.groups.key
        on = tuple((column(name), column(each)) for name, each in key)
        rows = old.only(touched, on) if on else old
        return Fold(Match(touched, rows, key), self.groups, old.columns)


@dataclass(frozen=True)
class RegroupStrategy(GroupStrategy):
    """The touched groups are recomputed."""

    kind: ClassVar[StrategyKind] = StrategyKind.REGROUP
    law: ClassVar[str] = "regroup: the touched groups are recomputed"

    def change(self, types: Types) -> Step:
        return self.regroup(self.groups.aggregate.input.change, types)


def table_scan(types: Types) -> Scan:
    return Scan(STORED, tuple(types.items()), Moment.BEFORE)


AnyStrategy = BagStrategy | FoldStrategy | RegroupStrategy


def strategy_of(view: Operator, *, exact: bool = False) -> AnyStrategy:
    """The cheapest strategy for a query, by its root; for `exact`, see `RootGroups`."""
    if isinstance(view, Aggregate) and not view.measures:
        outputs = tuple((name, column(name)) for name in view.keys)
        key = tuple((name, name) for name in view.keys)
        states = ((ROWS, exp.Count(this=exp.Star())),)
        return FoldStrategy(RootGroups(view, outputs, key, states, exact))
    found = _at_root(view)
    if found is None:
        return BagStrategy(view)
    groups, having = found
    # Groups that HAVING excludes have no stored row to fold into.
    folds = all(foldable(call) for _, call in groups.aggregate.measures)
    if having is None and folds and not _asks_for_types(groups.outputs):
        folded = replace(groups, states=_states(groups), exact=exact)
        if folded.is_expressible:
            return FoldStrategy(folded)
    return RegroupStrategy(groups, having) if groups.is_expressible else BagStrategy(view)


def _at_root(view: Operator) -> tuple[RootGroups, exp.Expr | None] | None:
    """The groups below a query's SELECT list, and its HAVING; None if there are none."""
    if not isinstance(view, Project):
        return None
    below, having = view.input, None
    if isinstance(below, Filter):
        below, having = below.input, below.predicate
    if not isinstance(below, Aggregate):
        return None
    stored = _names(view.outputs)
    key = tuple((stored.get(each, f"__st_k{i}"), each) for i, each in enumerate(below.keys))
    return RootGroups(below, view.outputs, key), having


def _asks_for_types(outputs: tuple[tuple[str, exp.Expr], ...]) -> bool:
    """Whether an output has TYPEOF, which differs for a result composed of the state."""
    calls = (each for _, output in outputs for each in output.find_all(exp.Anonymous))
    return any(each.name.lower() == "typeof" for each in calls)


def _states(groups: RootGroups) -> tuple[tuple[str, exp.Expr], ...]:
    """The state of a fold: the user's own columns where possible, otherwise hidden ones."""
    stored, measures = _names(groups.outputs), groups.aggregate.measures
    visible = {call: stored[name] for name, call in measures if name in stored}
    needed = dict.fromkeys(s for _, call in measures for s in state_calls(call))
    rows = exp.Count(this=exp.Star())
    states: list[tuple[str, exp.Expr]] = [(visible.get(rows, ROWS), rows)]
    for i, call in enumerate(each for each in needed if each != rows):
        states.append((visible.get(call, f"__st_{_LETTER[type(call)]}{i}"), call))
    return tuple(states)


def _names(outputs: tuple[tuple[str, exp.Expr], ...]) -> dict[str, str]:
    """Column of the groups → the user's column that returns it unchanged."""
    return {e.name: name for name, e in outputs if isinstance(e, exp.Column)}


_LETTER: dict[type[exp.Expr], str] = {exp.Count: "c", exp.Sum: "s", exp.Min: "m", exp.Max: "m"}


def root_of_bag(view: Operator) -> tuple[Operator, Mapping[str, str]]:
    """The operator below the SELECT lists at the root; its columns → those of the table."""
    held = {name: name for name in view.schema}
    while isinstance(view, Project):
        columns = ((n, e.name) for n, e in view.outputs if isinstance(e, exp.Column))
        held = {own: held[name] for name, own in columns if name in held}
        view = view.input
    return view, held


def _with(root: Operator, part: Step, other: Step) -> Operator:
    found = replace_step(root, part, other)
    assert isinstance(found, Operator)
    return found


def cast(rows: Operator, types: Types) -> Operator:
    """Cast every column to its stored type, if that is known."""

    def cast_column(name: str, type_: exp.DataType) -> exp.Expr:
        known = not type_.is_type(exp.DataType.Type.UNKNOWN)
        return typed(exp.cast(column(name), type_) if known else column(name), type_)

    return Project(rows, tuple((name, cast_column(name, types[name])) for name in rows.schema))
