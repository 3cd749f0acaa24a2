"""`SparkEngine` runs the compiler's statements; `Inputs`: sources and changes in a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
from dagster_streamtables.errors import LostSpark
from dagster_streamtables.runtime.compute.result_before import ResultBefore
from dagster_streamtables.runtime.compute.spark_relations import Relations, Views
from dagster_streamtables.runtime.delta.arrow import has_variant_columns
from dagster_streamtables.runtime.delta.data_files import is_utf8, pads, replaces_text, sum_rows
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import SourceChange
from dagster_streamtables.runtime.errors.environment_errors import machine_problem
from dagster_streamtables.runtime.model.refresh_report import Window
from dagster_streamtables.runtime.model.table_state import TableInStorage
from dagster_streamtables.runtime.spark.connect import arrow_rows
from dagster_streamtables.runtime.spark.session import choose_codegen, is_interpreting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


LIMIT, NARROW = 500_000, 2_000_000
"""Rows of a change that may come to this process, of any width and of narrow rows: delta-rs merges
them in a tenth of Spark's time."""
_BYTES = 2**29
"""Memory for more than `LIMIT` rows in this process."""
_PACKED = 4
"""Parquet compresses rows to a quarter or less."""
_MET = 4
"""A change reads a quarter of a table's rows, or fewer: files and row groups are skipped."""


@dataclass(frozen=True)
class Inputs:
    """The session, limits and times with which a refresh reads."""

    session: Callable[[], Views]
    """Opens the session at its first use: a refresh without data opens none."""
    stored: Callable[[str], TableInStorage | None]
    """The stream table at a location, at its newest version."""
    driver_rows: int | None = None
    """Rows that may come to this process; None: depends on their width."""
    tables: tuple[TableLog, ...] = ()
    """The tables that are read and written, to estimate the width of rows."""
    preview: int = 0
    """Number of changed rows in the report of a differential refresh."""
    recursion: RecursionLimits = field(default_factory=RecursionLimits)
    """The limits of its recursions."""
    now: str = ""
    """The time of this refresh, in ISO 8601."""
    then: str = ""
    """The time of the stored rows."""

    @cached_property
    def limit(self) -> int:
        """Rows that may come to this process."""
        if self.driver_rows is not None:
            return self.driver_rows
        widths = (sum(t.file_sizes) / t.row_count for t in self.tables if t.row_count)
        return max(LIMIT, min(NARROW, int(_BYTES / (_PACKED * max([1.0, *widths])))))

    @property
    def spark(self) -> SparkSession:
        return self.relations.spark

    @cached_property
    def relations(self) -> Relations:
        return Relations(self.session())

    def prepare_for(self, tables: Iterable[TableLog], changed: int | None = None) -> None:
        """Choose how Spark runs the next statements, which read `tables`: see `choose_codegen`.

        `changed` is the number of changed rows, if they read only rows that may match those.
        """
        rows = None if self.relations.compiled else sum_rows(log.row_count for log in tables)
        if rows is not None and changed is not None:
            rows = rows // _MET + changed
        choose_codegen(self.spark, rows)

    def compile(self) -> bool:
        """Have Spark compile all further statements; returns whether any were interpreted so far.

        Interpreted, an expression may be computed for rows that a condition excludes, as in HAVING.
        So a statement that failed is run again, compiled.
        """
        found = not self.relations.compiled and is_interpreting(self.spark)
        self.relations.compiled = True
        choose_codegen(self.spark, None)
        return found

    def close(self) -> None:
        """Drop the created relations. An ended session has none, which must not fail a refresh that
        may have committed."""
        if "relations" not in vars(self):
            return
        try:
            self.relations.close()
        except Exception as error:
            if not isinstance(machine_problem(error), LostSpark):
                raise


@dataclass(frozen=True)
class BoundChanges:
    """The changes of all sources, bound to relations."""

    logs: Mapping[str, TableLog]
    """The sources after the change."""
    moved: frozenset[str] = frozenset()
    """The sources with a change in a used column."""
    unmoved: frozenset[str] = frozenset()
    windows: Mapping[str, Window] = field(default_factory=dict[str, Window])
    changes: Mapping[str, SourceChange] = field(default_factory=dict[str, SourceChange])
    bound: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def rows(self) -> int | None:
        """The number of changed rows; None if it is unknown."""
        return sum_rows(window.rows for window in self.windows.values())


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
        return self._statistics  # for pyright, no cached property is one of a protocol

    @cached_property
    def _statistics(self) -> Statistics:
        logs = self.captured.logs.values()
        return Statistics(
            unmoved=self.captured.unmoved,
            longest_source=max((log.row_count or 0 for log in logs), default=0),
            largest_change=self.inputs.relations.largest(self.captured.bound.values()),
            limit=self.inputs.limit,
            # Rows that passed through this process are no longer CHAR(n).
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
        if rows.num_rows > most or has_variant_columns(rows.schema) or not is_utf8(rows):
            return None
        if rows.num_rows:
            self._views[relation] = self.inputs.relations.local(rows)
        return rows.num_rows

    def rows(self, statement: Statement, *, gathered: bool = True) -> DataFrame:
        """The rows of a statement; nothing is computed. For `gathered`, see `Relations.sql`."""
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
