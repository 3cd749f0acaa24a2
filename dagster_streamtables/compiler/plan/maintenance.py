"""The statements of a refresh, one class for each kind of strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dagster_streamtables.compiler.maintain.fold import Fold, Match
from dagster_streamtables.compiler.maintain.strategy import (
    TOUCHED,
    BagStrategy,
    FoldStrategy,
    GroupStrategy,
    RegroupStrategy,
    Types,
    cast,
    root_of_bag,
    table_scan,
)
from dagster_streamtables.compiler.operators.algebra import Moment, Schema, Step
from dagster_streamtables.compiler.operators.keyed import Top
from dagster_streamtables.compiler.operators.leaves import Scan
from dagster_streamtables.compiler.operators.linear import Filter, Project
from dagster_streamtables.compiler.operators.net import Net
from dagster_streamtables.compiler.plan.optimizer import SIMPLIFIED, Engine, Statement, optimize
from dagster_streamtables.compiler.plan.plan import Plan, types_of
from dagster_streamtables.compiler.rewrite.simplify import simplify


@dataclass(frozen=True)
class BagMaintenance:
    """The statements for a table whose rows are inserted and deleted."""

    strategy: BagStrategy
    types: Types
    _changes: dict[frozenset[str], Step] = field(
        default_factory=dict[frozenset[str], Step], init=False, repr=False, compare=False
    )

    def change(self, engine: Engine) -> Statement:
        """Distinct stored rows with the nonzero number of copies to insert or delete."""
        return optimize(self._simplify_change(engine), engine, SIMPLIFIED)

    def row_by_row(self, engine: Engine) -> Statement | None:
        """The rows before netting, if each is derived from one changed row of one source; or None.

        Over local rows Spark computes them while planning, without a job; netting needs a job.
        """
        change = self._simplify_change(engine)
        rows = found = change.input if isinstance(change, Net) else None
        while isinstance(rows, Project | Filter):
            rows = rows.input
        is_change = isinstance(rows, Scan) and rows.has_weight_column
        return Statement(found) if found is not None and is_change else None

    def first_rows(self, engine: Engine) -> Statement | None:
        """All rows of the table after the change, for a query with LIMIT; otherwise None.

        They are so few that comparing them with the stored rows locally is faster than in Spark.
        """
        view = self.strategy.view
        top, _ = root_of_bag(view)
        few = isinstance(top, Top) and top.limit is not None
        return optimize(cast(view.after, self.types), engine) if few else None

    def _simplify_change(self, engine: Engine) -> Step:
        """The change, derived once: `row_by_row` looks at it before it runs."""
        unmoved = engine.statistics.unmoved
        if unmoved not in self._changes:
            self._changes[unmoved] = simplify(self.strategy.change(self.types), unmoved=unmoved)
        return self._changes[unmoved]


@dataclass(frozen=True)
class GroupMaintenance:
    """The statements for a table of groups: their new rows, or first the touched keys.

    For a small change, two statements are cheaper: one for the touched groups, and one for their
    new rows, with the touched groups and their stored rows as local relations.
    """

    strategy: GroupStrategy
    types: Types

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a stored key column and the key column of `partial_groups`."""
        return self.strategy.groups.key

    def partial_groups(self, engine: Engine) -> Statement:
        """The keys of the touched groups, and for a fold what the change adds to each."""
        return optimize(self.strategy.partial(self.types), engine)

    def change(self, engine: Engine) -> Statement:
        """The stored rows of the touched groups, and the action in the weight; see `Fold` and
        `Regroup`."""
        return optimize(self.strategy.change(self.types), engine)

    def regroup(self, engine: Engine) -> Statement:
        """Like `change`, for the groups whose keys are in `TOUCHED`, recomputed from their rows."""
        aggregate = self.strategy.groups.aggregate
        touched = _touched_scan({key: aggregate.schema[key] for key in aggregate.keys})
        return optimize(self.strategy.regroup(touched, self.types), engine)


@dataclass(frozen=True)
class FoldMaintenance(GroupMaintenance):
    """The statements for a table of groups to whose stored rows the change is added."""

    strategy: FoldStrategy

    def fold(self, engine: Engine) -> Statement:
        """Like `change`, for the groups in `TOUCHED`, the result of `partial_groups`."""
        touched = _touched_scan(self.strategy.partial(self.types).schema)
        return optimize(self.strategy.fold(touched, self.types), engine)

    def fold_matches(self) -> Statement:
        """Like `fold`, but `TOUCHED` also has the stored row of each group: its columns are named
        by `partial_column` and `stored_column`."""
        groups, old = self.strategy.groups, table_scan(self.types)
        matches = Match(self.strategy.partial(self.types), old, groups.key)
        return Statement(Fold(_touched_scan(matches.schema), groups, old.columns))


def _touched_scan(schema: Schema) -> Scan:
    return Scan(TOUCHED, tuple(schema.items()), Moment.AFTER)


Maintenance = BagMaintenance | FoldMaintenance | GroupMaintenance


def maintenance_of(plan: Plan, stored: Mapping[str, str]) -> Maintenance:
    """The statements of a table's refresh, given its stored columns and their types in Spark."""
    types = types_of(stored)
    match plan.strategy:
        case FoldStrategy() as strategy:
            return FoldMaintenance(strategy, types)
        case RegroupStrategy() as strategy:
            return GroupMaintenance(strategy, types)
        case BagStrategy() as strategy:
            return BagMaintenance(strategy, types)


def unstored_change(plan: Plan, columns: Mapping[str, str], engine: Engine) -> Statement:
    """The change of a query whose rows are not stored: distinct rows with the nonzero number of
    copies that were inserted or deleted.

    Args:
        plan: The plan of the query, without intermediate tables.
        columns: The columns of the result and their types in Spark's spelling.
        engine: Runs the statement.
    """
    return optimize(Net(cast(plan.view.change, types_of(columns))), engine)


def all_rows(plan: Plan, engine: Engine) -> Statement:
    return optimize(plan.view, engine)
