"""What is known of a table, and the versions in its logs → its `RefreshState`; for every driver.

The sensor and the worker differ in where they remember refreshes: in Dagster's instance, or in
memory. What follows from that, and from the logs, is decided here and in `dueness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dagster_streamtables.declare.analyze import TableAnalysis
from dagster_streamtables.declare.schedule import OnChange
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.errors.foreign_words import first_line
from dagster_streamtables.runtime.model.work import HeadWithState, RefreshWork, refresh_work
from dagster_streamtables.runtime.observe.log_heads import LatestVersions
from dagster_streamtables.scheduling.dueness import RefreshState
from dagster_streamtables.scheduling.other_definitions import OtherDefinitions

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake
    from dagster_streamtables.runtime.observe.controls import Controls

_TIME_STEP = timedelta(minutes=1)
"""How often a table is refreshed ``on change`` whose query uses the current time: no commit tells
that time has passed."""


@dataclass(frozen=True)
class RefreshProgress:
    """What a driver remembers of the refreshes of one table."""

    last: datetime | None = None
    """When it was last refreshed; None if the driver knows of no refresh."""
    seen: Mapping[str, Head] = field(default_factory=dict[str, Head])
    """What the last refresh looked at; see `work`."""
    redefined: bool = False
    """For a replication: whether its declaration differs from the one that was refreshed last."""
    run: str = ""
    """What refreshes it now: the id of a run; empty if nothing does."""
    failures: int = 0
    """Failures in a row, since the last refresh."""
    failed_at: datetime | None = None
    again_at: datetime | None = None
    """When it is tried again after an error that may pass by itself."""


class Versions:
    """The newest commit of each table, read once per decision."""

    def __init__(self, heads: LatestVersions) -> None:
        self._heads = heads
        self.read: dict[str, Head | None] = {}

    def look(self, names: Iterable[str]) -> None:
        """Read many at once: concurrently in an object store."""
        self.read |= self._heads.heads(name for name in names if name not in self.read)

    def head_with_state(self, name: str) -> HeadWithState | None:
        """A stream table with its newest state; None if it was never refreshed.

        Raises:
            Exception: The log cannot be read.
        """
        return self._heads.head_with_state(name, seen=name in self.read)

    def __getitem__(self, name: str) -> Head | None:
        """
        Raises:
            Exception: The log cannot be read.
        """
        if name not in self.read:
            self.read[name] = self._heads.head(name)
        return self.read[name]


def refresh_states(
    tables: Mapping[str, TableAnalysis],
    known: Mapping[str, RefreshProgress],
    versions: Versions,
    suspended: Mapping[str, str],
    others: OtherDefinitions,
    now: datetime,
    blocked: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, RefreshState]:
    """The situation of each table.

    Args:
        tables: The tables that are due.
        known: What is remembered of each.
        versions: The versions in the logs.
        suspended: Why each table may not be refreshed; empty if it may.
        others: Who else refreshes them.
        now: The time of the decision.
        blocked: The sources that each table must not read now, with the reasons.
    """
    blocks = blocked or {}
    sources = (source for each in tables.values() for source in each.sources)
    versions.look([*tables, *sources])
    return {
        name: _refresh_state(
            each, known[name], versions, suspended.get(name, ""), blocks.get(name, {}), others, now
        )
        for name, each in tables.items()
    }


def suspension_reasons(tables: Iterable[TableAnalysis], lake: Lake) -> dict[str, str]:
    """Why a refresh of each table would be refused; empty if it would not."""
    try:
        controls = lake.controls.snapshot()
    except StreamTablesError:  # of the root: each refresh reports it
        return {each.name: "" for each in tables}
    return {each.name: _suspension_reason(each, controls) for each in tables}


def _refresh_state(
    table: TableAnalysis,
    known: RefreshProgress,
    versions: Versions,
    suspended: str,
    blocked: Mapping[str, str],
    others: OtherDefinitions,
    now: datetime,
) -> RefreshState:
    stored, newest, is_new = None, dict[str, Head | None](), False
    try:
        stored = versions.head_with_state(table.name)
        newest, is_new = {source: versions[source] for source in table.sources}, stored is None
        found = refresh_work(stored, table.table.meaning, newest, known.seen)
    # An unreadable log stops one table, not the decision: its refresh reports the error.
    except Exception as error:
        found = RefreshWork((f"a log cannot be read: {first_line(str(error))}",))
    found, left = others.judge(table.name, stored, found, known.last)
    timed = table.is_time_dependent and _is_time_due(table, known, now)
    return RefreshState(
        last=known.last,
        redefined=found.redefined,
        work=(*found.reasons, *(["time passed"] if timed else [])),
        missing=tuple(s for s, head in newest.items() if is_new and head is None),
        run=known.run,
        suspended=suspended,
        left=left,
        blocked=blocked,
        by_hand=is_new and not table.table.initialize,
        failures=known.failures,
        failed_at=known.failed_at,
        again_at=known.again_at,
    )


def _is_time_due(table: TableAnalysis, known: RefreshProgress, now: datetime) -> bool:
    if known.last is None or not isinstance(table.schedule, OnChange):
        return True
    return not known.last <= now < known.last + _TIME_STEP


def _suspension_reason(table: TableAnalysis, controls: Controls) -> str:
    try:
        return controls.of(table.table).suspension
    except StreamTablesError:  # it must not stop the others: the table's refresh reports it
        return ""
