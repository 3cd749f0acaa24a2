"""How a change enters the stored table: the shapes of a query's root that are cheaper than the law.

    bag         anything          rows of the change are added and taken away
    fold        γ at the root     stored group + what ΔR adds to it; R is not read
    regroup     γ at the root     γ(R⁺ ⋉ K) in place of the stored groups of K

All three are special cases of ``stored + Δ``. They lean on one fact: at the root, the result
*before* is what the table holds, so it is read there instead of being computed again from R⁻.

A fold keeps what it needs beside the user's columns, in columns that begin with ``__st_``:

    __st_n      the number of rows of the group; a group without rows goes
    __st_cN     COUNT(x)
    __st_sN     SUM(x)
    __st_mN     MIN(x) or MAX(x)
    __st_kN     a key of the group that the query does not return

A fold cannot answer for every group. A MIN that lost its minimum, a sum of floats that lost an
addend (subtracting floats can be wrong by more than rounding), and a sum of decimals too wide to be
multiplied by a weight exactly: those groups are *lost*, and grouped again from the source.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from dagster_streamtables.compiler.maintain.bag import bag_change, cast, first_rows
from dagster_streamtables.compiler.maintain.fold import Fold
from dagster_streamtables.compiler.maintain.groups import ROWS, Groups, foldable, state_calls
from dagster_streamtables.compiler.maintain.match import Match
from dagster_streamtables.compiler.maintain.partial import Partial
from dagster_streamtables.compiler.maintain.regroup import Regroup
from dagster_streamtables.compiler.operators import (
    Aggregate,
    Filter,
    Moment,
    Operator,
    Project,
    Scan,
    Step,
    column,
)

STORED = "__st_table"
"""Stands for the stream table itself among the relations that a plan reads."""
TOUCHED = "__st_touched"
"""Stands for the keys of touched groups, and for a fold what the change adds to each."""

Types = Mapping[str, exp.DataType]
"""The columns of the stored table."""


class Entry(enum.StrEnum):
    """How a change enters the stored table."""

    BAG = "bag"
    FOLD = "fold"
    REGROUP = "regroup"


class Strategy(ABC):
    """How the change of a query enters its table."""

    entry: ClassVar[Entry]
    law: ClassVar[str]
    """The same in a line, for a person to read."""

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...] | None:
        """The stored columns that identify a row; empty for the one row of a query without
        GROUP BY, None where rows may have copies."""

    @property
    @abstractmethod
    def hidden(self) -> tuple[str, ...]:
        """The stored columns that no reader sees."""

    @abstractmethod
    def hidden_sql(self, aliases: Set[str]) -> dict[str, str]:
        """The hidden columns as the user could have written them; see `Groups.hidden_sql`."""

    @abstractmethod
    def change(self, types: Types) -> Step:
        """What a refresh does to the table."""


@dataclass(frozen=True)
class BagStrategy(Strategy):
    """Rows are added and taken away."""

    view: Operator

    entry: ClassVar[Entry] = Entry.BAG
    law: ClassVar[str] = "bag: rows that came are added, rows that went are taken away"

    @property
    def key(self) -> None:
        return None

    @property
    def hidden(self) -> tuple[str, ...]:
        return ()

    def hidden_sql(self, aliases: Set[str]) -> dict[str, str]:
        return {}

    def change(self, types: Types) -> Step:
        """Stored rows with the number of copies that came or went, none 0, no row twice."""
        return bag_change(self.view, types, _stored(types))

    def first_rows(self, types: Types) -> Operator | None:
        """All rows after the change, of a query that asks for the first of an order."""
        return first_rows(self.view, types)


@dataclass(frozen=True)
class GroupStrategy(Strategy):
    """Groups change in place, each under its key."""

    groups: Groups

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.groups.key)

    @property
    def hidden(self) -> tuple[str, ...]:
        keys = (name for name, _ in self.groups.hidden_keys)
        return (*keys, *(name for name, _ in self.groups.hidden_states))

    def hidden_sql(self, aliases: Set[str]) -> dict[str, str]:
        return self.groups.hidden_sql(aliases)

    # Where the change is small, it pays to ask in two statements: which groups are touched, and
    # then for their new rows, with the touched groups and their stored rows as local relations.

    def touched(self, types: Types) -> Partial:
        """The keys of the touched groups, and for a fold what the change adds to each."""
        return Partial(self.groups.aggregate.input.change, self.groups, tuple(types.items()))

    def regroup(self, types: Types) -> Step:
        """What `Regroup` yields for the groups whose keys are in `TOUCHED`."""
        aggregate = self.groups.aggregate
        keys = tuple((key, aggregate.schema[key]) for key in aggregate.keys)
        return self._regrouped(Scan(TOUCHED, keys, Moment.AFTER), types)

    def _regrouped(self, touched: Step, types: Types) -> Regroup:
        groups, old = self.groups, _stored(types)
        aggregate, rows = groups.aggregate, groups.aggregate.input.after
        same = tuple((column(key), column(key)) for key in aggregate.keys)
        measures = (*aggregate.measures, *groups.hidden_states)
        now: Operator = (
            Aggregate(rows.only(touched, same), aggregate.keys, measures)
            if same
            # The one group has a row even over no rows: it is the row that must not come if
            # nothing was touched.
            else Aggregate(rows, (), measures).only(touched, ())
        )
        hidden = [(name, column(key)) for name, key in groups.hidden_keys]
        hidden += [(name, column(name)) for name, _ in groups.hidden_states]
        now = cast(Project(self._kept(now), (*groups.outputs, *hidden)), types)
        on = tuple((column(name), column(key)) for name, key in groups.key)
        return Regroup(now, old.only(touched, on), groups.key)

    @property
    def filtered(self) -> bool:
        """Whether there are groups that the table has no row for."""
        return False

    def _kept(self, groups: Operator) -> Operator:
        """The groups that the table has a row for."""
        return groups


@dataclass(frozen=True)
class FoldStrategy(GroupStrategy):
    """What the change adds to a group is added to its stored row."""

    entry: ClassVar[Entry] = Entry.FOLD
    law: ClassVar[str] = "fold: what the change adds to each group is added to the stored group"

    def change(self, types: Types) -> Step:
        """What `Fold` yields."""
        return self._folded(self.touched(types), types)

    def fold(self, types: Types) -> Fold:
        """The same for the groups in `TOUCHED`, as `touched` gives them."""
        sums = self.touched(types).schema
        return self._folded(Scan(TOUCHED, tuple(sums.items()), Moment.AFTER), types)

    def fold_matched(self, types: Types) -> Fold:
        """The same for the groups in `TOUCHED`, each beside its stored row as `Match` puts it."""
        old = _stored(types)
        pairs = Match(self.touched(types), old, self.groups.key).schema
        return Fold(Scan(TOUCHED, tuple(pairs.items())), self.groups, old.columns)

    def _folded(self, touched: Step, types: Types) -> Fold:
        old, key = _stored(types), self.groups.key
        on = tuple((column(name), column(each)) for name, each in key)
        rows = old.only(touched, on) if on else old
        return Fold(Match(touched, rows, key), self.groups, old.columns)


@dataclass(frozen=True)
class RegroupStrategy(GroupStrategy):
    """The touched groups are computed again."""

    having: exp.Expr | None = None

    entry: ClassVar[Entry] = Entry.REGROUP
    law: ClassVar[str] = "regroup: the touched groups are computed again"

    def change(self, types: Types) -> Step:
        """What `Regroup` yields."""
        return self._regrouped(self.groups.aggregate.input.change, types)

    @property
    def filtered(self) -> bool:
        return self.having is not None

    def _kept(self, groups: Operator) -> Operator:
        return groups if self.having is None else Filter(groups, self.having)


def _stored(types: Types) -> Scan:
    return Scan(STORED, tuple(types.items()), Moment.BEFORE)


AnyStrategy = BagStrategy | FoldStrategy | RegroupStrategy


def strategy_of(view: Operator, *, exact: bool = False) -> AnyStrategy:
    """The cheapest strategy for a query, by what stands at its root.

    Args:
        view: The query.
        exact: See `Groups`.
    """
    if isinstance(view, Aggregate) and not view.measures:
        outputs = tuple((name, column(name)) for name in view.keys)
        key = tuple((name, name) for name in view.keys)
        states = ((ROWS, exp.Count(this=exp.Star())),)
        return FoldStrategy(Groups(view, outputs, key, states, exact))
    found = _at_root(view)
    if found is None:
        return BagStrategy(view)
    groups, having = found
    # Groups that HAVING keeps out have no stored row to fold into.
    if having is None and all(foldable(call) for _, call in groups.aggregate.measures):
        folded = replace(groups, states=_states(groups), exact=exact)
        if folded.can_be_written:
            return FoldStrategy(folded)
    return RegroupStrategy(groups, having) if groups.can_be_written else BagStrategy(view)


def _at_root(view: Operator) -> tuple[Groups, exp.Expr | None] | None:
    """The groups of which a query is a SELECT list, and its HAVING."""
    if not isinstance(view, Project):
        return None
    below, having = view.input, None
    if isinstance(below, Filter):
        below, having = below.input, below.predicate
    if not isinstance(below, Aggregate):
        return None
    stored = _names(view.outputs)
    key = tuple((stored.get(each, f"__st_k{i}"), each) for i, each in enumerate(below.keys))
    return Groups(below, view.outputs, key), having


def _states(groups: Groups) -> tuple[tuple[str, exp.Expr], ...]:
    """What a fold builds upon: the user's own columns where they have it, else hidden ones."""
    stored, measures = _names(groups.outputs), groups.aggregate.measures
    visible = {call: stored[name] for name, call in measures if name in stored}
    needed = dict.fromkeys(s for _, call in measures for s in state_calls(call))
    rows = exp.Count(this=exp.Star())
    states: list[tuple[str, exp.Expr]] = [(visible.get(rows, ROWS), rows)]
    for i, call in enumerate(each for each in needed if each != rows):
        states.append((visible.get(call, f"__st_{_LETTER[type(call)]}{i}"), call))
    return tuple(states)


def _names(outputs: tuple[tuple[str, exp.Expr], ...]) -> dict[str, str]:
    """The column of the groups → the user's column that shows it as it is."""
    return {e.name: name for name, e in outputs if isinstance(e, exp.Column)}


_LETTER: dict[type[exp.Expr], str] = {exp.Count: "c", exp.Sum: "s", exp.Min: "m", exp.Max: "m"}
