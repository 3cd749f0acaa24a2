"""What a refresh reads: sources and their changes, bound to relations of a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.runtime.delta_log import TableLog
from dagster_streamtables.runtime.report import Window
from dagster_streamtables.runtime.sources import Relations, Views
from dagster_streamtables.runtime.state import Stored
from dagster_streamtables.runtime.window import SourceChange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT = 500_000
"""Rows of a change that may come to this process."""


@dataclass(frozen=True)
class Inputs:
    """What a refresh reads with."""

    session: Callable[[], Views]
    """Opens the session at its first use: a refresh without data never does."""
    stored: Callable[[str], Stored | None]
    """The stream table at a place, at its newest version."""
    limit: int = LIMIT
    preview: int = 0
    """Changed rows that the report of a differential refresh holds."""
    now: str = ""
    """The time of this refresh, in ISO 8601."""
    then: str = ""
    """The time that the stored rows know."""

    @property
    def spark(self) -> SparkSession:
        return self.relations.spark

    @cached_property
    def relations(self) -> Relations:
        return Relations(self.session())

    def close(self) -> None:
        """Drop the relations that were made."""
        if "relations" in vars(self):
            self.relations.close()


@dataclass(frozen=True)
class Captured:
    """The changes of all sources, bound to relations."""

    moved: frozenset[str]
    """The sources of which a used column changed."""
    unmoved: frozenset[str]
    windows: Mapping[str, Window]
    changes: Mapping[str, SourceChange]
    logs: Mapping[str, TableLog]
    """The sources as they are after the change."""
    bound: Mapping[str, str] = field(default_factory=dict[str, str])
