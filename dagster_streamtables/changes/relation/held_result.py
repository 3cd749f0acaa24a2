"""The groups of a query, held in this process between one change and the next.

A refresh adds the change of a group to its stored row. Where nothing is stored, the group would be
computed again from its source at both ends, however few of its rows changed. So a subscriber holds
the result, if it has few rows, and its next change costs what that of a stream table costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dagster_streamtables.changes.relation.reading import Sources
from dagster_streamtables.compiler import QueryPlan
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.compute.inputs import Captured, Inputs
from dagster_streamtables.runtime.compute.netting import has_nested, netted_here, weighted
from dagster_streamtables.runtime.compute.stored import HeldRows
from dagster_streamtables.runtime.delta.arrow import storable
from dagster_streamtables.runtime.delta.delta_log import Snapshot
from dagster_streamtables.runtime.spark.connect import arrow_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

HELD = 100_000
"""The most groups that are held."""


def can_be_held(plan: QueryPlan) -> bool:
    """Whether the rows of a query are groups, each known by its key."""
    return plan.key is not None and not plan.timed


@dataclass
class HeldResult:
    """The result of a query at one frontier. One thread at a time uses it."""

    plan: QueryPlan
    _at: dict[str, Snapshot] | None = None
    _rows: HeldRows | None = None
    _too_large: bool = False

    def fill(self, at: Sources, rows: DataFrame) -> pa.Table | None:
        """Hold a result.

        Args:
            at: The frontier.
            rows: All stored columns of the plan, with the hidden ones.

        Returns:
            Its rows; None if they are too many to be held, or of types that are not compared here.
        """
        if self._too_large:
            return None
        names, key = list(self.plan.stored_columns), self.plan.key or ()
        types = dict(rows.toDF(*names).dtypes)
        if not netted_here({name: types[name] for name in key}):
            self._too_large = True
            return None
        found = storable(arrow_rows(rows.toDF(*names).limit(HELD + 1)))
        self._too_large = found.num_rows > HELD or has_nested(found.schema)
        if self._too_large:
            return None
        self._keep(at, HeldRows(found, types, key))
        return found

    def is_at(self, sources: Sources) -> bool:
        return self._at == _snapshots(sources)

    def moved_to(self, sources: Sources) -> None:
        """Note that the result is the same at another frontier."""
        self._at = _snapshots(sources)

    def change(self, after: Sources, captured: Captured, inputs: Inputs) -> pa.Table | None:
        """The change of the held result, and hold the one after it.

        Returns:
            Rows that came and went, not netted; None if the change has to be computed without it.
        """
        if self._rows is None:
            return None
        computed = differential.change(self.plan, self._rows, captured, inputs)
        if computed.local is None or computed.broken:
            self._rows = self._at = None
            return None
        if computed.empty:  # and without the columns of one that is not
            self.moved_to(after)
            return weighted(self._rows.table.slice(0, 0), 1)
        now, change = self._rows.changed(computed.local)
        if now.table.num_rows > HELD:
            self._too_large, self._rows, self._at = True, None, None
        else:
            self._keep(after, now)
        return change

    def _keep(self, at: Sources, rows: HeldRows) -> None:
        self._rows, self._at = rows, _snapshots(at)


def _snapshots(sources: Sources) -> dict[str, Snapshot]:
    return {name: source.log.snapshot for name, source in sources.items()}
