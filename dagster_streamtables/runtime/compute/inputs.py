"""The inputs of a refresh: sources and their changes, bound to relations of a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.compiler import RecursionLimits
from dagster_streamtables.errors import LostSpark
from dagster_streamtables.runtime.compute.relations import Relations
from dagster_streamtables.runtime.compute.version_views import Views
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import SourceChange
from dagster_streamtables.runtime.errors.machine import machine_problem
from dagster_streamtables.runtime.model.report import Window
from dagster_streamtables.runtime.model.state import TableInStorage
from dagster_streamtables.runtime.spark.session_settings import choose_codegen, is_interpreting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT, NARROW = 500_000, 2_000_000
"""Rows of a change that may come to this process: of any width, and narrow ones. delta-rs merges
them in a tenth of Spark's time."""
_BYTES = 2**29
"""Memory that more than `LIMIT` rows may take here."""
_PACKED = 4
"""Parquet compresses rows to a quarter or less."""
_MET = 4
"""A change meets a quarter of a table's rows, or fewer: files and row groups are skipped."""


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
        """Choose how Spark runs the next statements: see `choose_codegen`.

        Args:
            tables: What they read, as a whole.
            changed: The number of changed rows, if they read only what meets those.
        """
        counts = [log.row_count for log in tables]
        rows = None if self.relations.compiled or None in counts else sum(filter(None, counts))
        if rows is not None and changed is not None:
            rows = rows // _MET + changed
        choose_codegen(self.spark, rows)

    def compile(self) -> bool:
        """Have Spark compile all further statements.

        What a condition guards, as HAVING does, may be computed for rows that the condition would
        keep out where a statement is interpreted. So one that failed is run again, compiled.

        Returns:
            Whether any were interpreted so far.
        """
        found = not self.relations.compiled and is_interpreting(self.spark)
        self.relations.compiled = True
        choose_codegen(self.spark, None)
        return found

    def close(self) -> None:
        """Drop the created relations.

        A session that has ended has none. That must not fail a refresh that may have committed.
        """
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

    moved: frozenset[str]
    """The sources with a change in a used column."""
    unmoved: frozenset[str]
    windows: Mapping[str, Window]
    changes: Mapping[str, SourceChange]
    logs: Mapping[str, TableLog]
    """The sources after the change."""
    bound: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def rows(self) -> int | None:
        """The number of changed rows; None if it is unknown."""
        counts = [window.rows for window in self.windows.values()]
        return None if None in counts else sum(filter(None, counts))
