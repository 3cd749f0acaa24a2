"""`Refresh`: what one refresh did, as the runtime reports it; `Stopwatch`: its time, by phase."""

from __future__ import annotations

import enum
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dagster_streamtables.amounts import count
from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.delta.source_change import Capture
from dagster_streamtables.runtime.model.costs import Forecast

CONNECT = "connect"


@dataclass
class Stopwatch:
    """Seconds by phase."""

    phases: dict[str, float] = field(default_factory=dict[str, float])
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _begin: float = field(default_factory=time.perf_counter)
    _within: float = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of a block to a phase, except for phases inside it."""
        begin, outside, self._within = time.perf_counter(), self._within, 0.0
        try:
            yield
        finally:
            took = time.perf_counter() - begin
            self.phases[name] = self.phases.get(name, 0.0) + took - self._within
            self._within = outside + took

    @property
    def work_seconds(self) -> float:
        """Seconds without the time to open a Spark session, or to start the server."""
        return self.seconds - self.phases.get(CONNECT, 0.0)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin


class Action(enum.StrEnum):
    """What a refresh did to the table."""

    NO_DATA = "NO_DATA"
    """Nothing visible changed. The table still became as fresh as its sources."""
    DIFFERENTIAL = "DIFFERENTIAL"
    """The change of the query was computed from the changes of the sources and folded in."""
    FULL = "FULL"
    """The query was run again, by the table's mode or because that was cheaper."""
    REINITIALIZE = "REINITIALIZE"
    """The query was run again because the stored rows could not be updated."""
    SKIP = "SKIP"
    """Newer versions of the sources do not agree with each other yet; the table is unchanged."""


class FullReason(enum.StrEnum):
    """Why a refresh ran the query over all rows."""

    FIRST = "first"
    """There is no table yet."""
    REQUESTED = "requested"
    """A full refresh was requested."""
    MODE = "mode"
    """The table's mode is `FULL`."""
    UNSUPPORTED = "unsupported"
    """The table's mode is `AUTO`, and its query cannot be maintained."""
    COST = "cost"
    """By measured refreshes, mode `AUTO` expects it to be cheaper."""
    RATIO = "ratio"
    """More rows changed than `differential_max_change_ratio` allows."""
    DEFINITION = "definition"
    """The query changed, or what is stored for it: the mode, or a newer version of the package."""
    SOURCE = "source"
    """A source was dropped and created again, restored to an older version, or is new."""
    SCHEMA = "schema"
    """Columns that the query uses changed."""
    HISTORY = "history"
    """A source no longer has all commits or files since the last refresh."""
    MANUAL_WRITE = "manual_write"
    """Somebody else changed rows of the table, or replaced it."""
    FAILURE = "failure"
    """The change could not be computed."""
    STORED_ROWS = "stored_rows"
    """The stored rows do not have what the change deletes."""

    @property
    def is_deliberate(self) -> bool:
        """Whether it was asked for, now or by the table's mode: `on_full` does not concern it."""
        asked = (FullReason.FIRST, FullReason.REQUESTED, FullReason.MODE, FullReason.COST)
        return self in asked


@dataclass(frozen=True)
class Window:
    """The versions of one source that a refresh consumed, and how its change was read."""

    before: int | None
    """The version that the table reflected before; None for a first refresh."""
    after: int
    """The version that it reflects now."""
    capture: Capture
    rows: int | None
    """Rows inserted or deleted, an update counting as two; None if the refresh did not need it."""
    source_rows: int | None = field(default=None, compare=False)
    """Rows of the source afterwards, from its log's statistics."""


@dataclass(frozen=True)
class Refresh:
    """One refresh, from reading the logs to the commit."""

    table: str
    action: Action
    reason: str
    """Why this action, in a sentence."""
    version: int
    """The table's Delta version afterwards."""
    data_version: str
    """A data version, which changes exactly if the visible rows may have changed."""
    windows: Mapping[str, Window]
    """The window of each source, by its name in the query."""
    inserted: int = 0
    """Stored rows written, an updated row counting once here and once in `deleted`."""
    deleted: int = 0
    row_count: int | None = None
    """Rows in the table afterwards, from the log's statistics."""
    size_bytes: int | None = None
    """Bytes in the table's files."""
    files: int | None = None
    writer: str = ""
    """``delta-rs`` or ``spark``; empty if nothing was committed."""
    seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds by phase, in the order of the phases."""
    started: datetime | None = None
    data_timestamp: datetime | None = None
    """See `StreamTableState.data_timestamp`."""
    intermediates: Mapping[str, Refresh] = field(default_factory=dict[str, "Refresh"])
    """The refreshes of the intermediate tables that it reads, by their names."""
    forecast: Forecast | None = None
    """The expected duration of either way, if mode AUTO chose between them."""
    fallback: str = ""
    """Why the query was run again although its change should have been computed; empty otherwise.
    It indicates a defect of the compiler, or rows that it did not expect."""
    full_reason: FullReason | None = None
    """Why the query was run over all rows; None if it was not."""
    preview: Sequence[Mapping[str, Any]] = ()
    """Some of the rows that a differential refresh changed, where these were asked for; see
    `preview_of`."""
    read: Mapping[str, str] = field(default_factory=dict[str, str])
    """The data version of each source that is a stream table, as it was read."""
    seen: Mapping[str, Head] = field(default_factory=dict[str, Head])
    """The commits that it looked at: of each source, by its name in the query, and of the table
    itself, before it."""

    def __str__(self) -> str:
        """
        >>> print(Refresh("mart.revenue", Action.FULL, "mode FULL", 4, "", {}, 3, 2, 9))
        mart.revenue: FULL (mode FULL), 3 inserted, 2 deleted, 9 rows
        >>> print(Refresh("mart.revenue", Action.NO_DATA, "no source has a new version", 4, "", {}))
        mart.revenue: NO_DATA (no source has a new version)
        """
        said = f"{self.table}: {self.action} ({self.reason})"
        if self.inserted or self.deleted or self.action not in (Action.NO_DATA, Action.SKIP):
            said += f", {self.inserted:,} inserted, {self.deleted:,} deleted"
            said += "" if self.row_count is None else f", {count(self.row_count, 'row')}"
        return said

    @property
    def rows_in(self) -> int:
        """Rows inserted into or deleted from the sources, an update counting as two."""
        return sum(window.rows or 0 for window in self.windows.values())

    @property
    def change_ratio(self) -> float | None:
        """The largest fraction of a source's rows that changed; None if the sources were read in
        full."""
        parts = [
            (window.rows or 0) / max(window.source_rows or 0, 1)
            for window in self.windows.values()
            if window.capture is not Capture.ALL
        ]
        return max(parts, default=None)

    @property
    def expected(self) -> float | None:
        """The seconds that it was expected to take; None without a forecast."""
        if self.forecast is None:
            return None
        return {
            Action.DIFFERENTIAL: self.forecast.differential,
            Action.FULL: self.forecast.full,
        }.get(self.action)

    @property
    def forecast_error(self) -> float | None:
        """Actual duration as a multiple of the expected one; None without a forecast."""
        expected = self.expected
        worked = self.seconds - self.phases.get(CONNECT, 0.0)
        return worked / expected if expected else None
