"""What a refresh asks, as statements: one class for each way in which a change enters a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dagster_streamtables.compiler.maintain.bag import row_by_row
from dagster_streamtables.compiler.maintain.strategy import (
    BagStrategy,
    FoldStrategy,
    GroupStrategy,
    RegroupStrategy,
    Types,
)
from dagster_streamtables.compiler.plan.optimize import Engine, optimized
from dagster_streamtables.compiler.plan.plan import Plan, types_of
from dagster_streamtables.compiler.plan.statement import Statement
from dagster_streamtables.compiler.rewrite.simplify import simplify


@dataclass(frozen=True)
class BagMaintenance:
    """Of a table whose rows are added and taken away."""

    strategy: BagStrategy
    types: Types

    def change(self, engine: Engine) -> Statement:
        """Stored rows with the number of copies that came or went, none 0, no row twice."""
        return optimized(self.strategy.change(self.types), engine)

    def row_by_row(self, engine: Engine) -> Statement | None:
        """The same, to be netted, where each of its rows is made of one changed row of one source.

        Spark makes such rows of local ones while it plans, and runs no job; to net them takes one.
        """
        change = simplify(self.strategy.change(self.types), unmoved=engine.statistics.unmoved)
        made = row_by_row(change)
        return None if made is None else Statement(made)

    def first_rows(self, engine: Engine) -> Statement | None:
        """All rows after the change, of a query that asks for the first of an order."""
        rows = self.strategy.first_rows(self.types)
        return None if rows is None else optimized(rows, engine)


@dataclass(frozen=True)
class GroupMaintenance:
    """Of a table of groups: which are touched, and then their new rows; or both at once."""

    strategy: GroupStrategy
    types: Types

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """The stored columns that identify a group, and the columns of `touched` that do."""
        return self.strategy.groups.key

    def touched(self, engine: Engine) -> Statement:
        """The keys of the touched groups, and for a fold what the change adds to each."""
        return optimized(self.strategy.touched(self.types), engine)

    def change(self, engine: Engine) -> Statement:
        """The stored rows of touched groups, and in the weight what to do; see `fold` and
        `regroup`."""
        return optimized(self.strategy.change(self.types), engine)

    def regroup(self, engine: Engine) -> Statement:
        """The same for the groups whose keys are in `TOUCHED`, made of their rows."""
        return optimized(self.strategy.regroup(self.types), engine)


@dataclass(frozen=True)
class FoldMaintenance(GroupMaintenance):
    """Of a table of groups to whose stored rows the change is added."""

    strategy: FoldStrategy

    def fold(self, engine: Engine) -> Statement:
        """The same for the groups in `TOUCHED`, as `touched` gives them."""
        return optimized(self.strategy.fold(self.types), engine)

    def fold_matched(self) -> Statement:
        """The same, where `TOUCHED` has the stored row of each group beside it: its columns are
        named by `partial_column` and `stored_column`."""
        return Statement(self.strategy.fold_matched(self.types))


@dataclass(frozen=True)
class RegroupMaintenance(GroupMaintenance):
    """Of a table of groups that are made again."""

    strategy: RegroupStrategy


Maintenance = BagMaintenance | FoldMaintenance | RegroupMaintenance


def maintenance_of(plan: Plan, stored: Mapping[str, str]) -> Maintenance:
    """What a refresh of a table asks.

    Args:
        plan: Of its query.
        stored: The columns of the stored table and their types in Spark's words.
    """
    types = types_of(stored)
    match plan.strategy:
        case FoldStrategy() as strategy:
            return FoldMaintenance(strategy, types)
        case RegroupStrategy() as strategy:
            return RegroupMaintenance(strategy, types)
        case BagStrategy() as strategy:
            return BagMaintenance(strategy, types)


def all_rows(plan: Plan, engine: Engine) -> Statement:
    """All rows of a table, as they are compiled."""
    return optimized(plan.view, engine)
