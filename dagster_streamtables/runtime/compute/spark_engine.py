"""Run the compiler's statements on Spark, with views in place of relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import (
    STORED,
    Bounds,
    Moment,
    RecursionLimits,
    Statement,
    Statistics,
    relation,
)
from dagster_streamtables.runtime.compute.inputs import BoundChanges, Inputs
from dagster_streamtables.runtime.compute.stored import ResultBefore
from dagster_streamtables.runtime.delta.arrow import has_variants
from dagster_streamtables.runtime.delta.data_rows import is_utf8, pads, replaces_text
from dagster_streamtables.runtime.spark.connect import arrow_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STORED_ROWS = relation(STORED, Moment.BEFORE)


@dataclass(frozen=True)
class SparkEngine:
    """Runs one statement, after the parts of its plan that the optimizer requests."""

    captured: BoundChanges
    inputs: Inputs
    stored: ResultBefore | None = None
    """The result before; None if its rows are not read."""
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    """Relation → view, for local rows in addition to the captured changes."""

    @cached_property
    def _views(self) -> dict[str, str]:
        return {**self.captured.bound, **self.more}

    @property
    def statistics(self) -> Statistics:
        return self._statistics

    @cached_property
    def _statistics(self) -> Statistics:
        logs = self.captured.logs.values()
        return Statistics(
            unmoved=self.captured.unmoved,
            longest_source=max((log.row_count or 0 for log in logs), default=0),
            largest_change=self.inputs.relations.largest(self.captured.bound.values()),
            limit=self.inputs.limit,
            # Rows that passed through this process are no longer CHAR(n), which Spark compares
            # differently.
            stages=not any(map(pads, logs)),
        )

    @property
    def recursion(self) -> RecursionLimits:
        return self.inputs.recursion

    def bounds(self, relation: str, column: str) -> Bounds | None:
        view = self._views.get(relation)
        if view is None or self._misleads:
            return None
        return self.inputs.relations.bounds(view, column)

    @cached_property
    def _misleads(self) -> bool:
        """Whether Delta may skip files of a source that have rows between the bounds."""
        return any(map(replaces_text, self.captured.logs.values()))

    def keep(self, relation: str, statement: Statement, most: int | None) -> int:
        relations, limit = self.inputs.relations, self.inputs.limit
        view, count = relations.materialize(self.rows(statement), limit=limit, most=most)
        if view is not None:
            self._views[relation] = view
        return count

    def bring(self, relation: str, statement: Statement, most: int) -> int | None:
        rows = arrow_rows(self.rows(statement).limit(most + 1))
        if rows.num_rows > most or has_variants(rows.schema) or not is_utf8(rows):
            return None
        if rows.num_rows:
            self._views[relation] = self.inputs.relations.local(rows)
        return rows.num_rows

    def rows(self, statement: Statement, *, gathered: bool = True) -> DataFrame:
        """The rows of a statement; nothing is computed.

        Args:
            statement: What to run.
            gathered: See `Relations.sql`.
        """
        views = {**self._views, **self._versions(statement.reads)}
        sql = statement.sql(views, then=self.inputs.then, now=self.inputs.now)
        return self.inputs.relations.sql(sql, gathered=gathered)

    def _versions(self, read: frozenset[str]) -> dict[str, str]:
        """Views of the sources before and after, and of the stored rows, if they are read."""
        found: dict[str, str] = {}
        for name, log in self.captured.logs.items():
            change = self.captured.changes.get(name)
            ends = {Moment.AFTER: log.version, Moment.BEFORE: change.before if change else None}
            for moment, version in ends.items():
                place = relation(name, moment)
                if version is not None and place in read:
                    found[place] = self.inputs.relations.scan(log, version)
        if self.stored is not None and STORED_ROWS in read and STORED_ROWS not in self._views:
            found[STORED_ROWS] = self.stored.view(self.inputs.relations)
        return found
