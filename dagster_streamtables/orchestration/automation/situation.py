"""What is known of a table, and the versions in its logs → its `Situation`; for every driver.

The sensor and the worker differ in where they remember refreshes: in Dagster's instance, or in
memory. What follows from that, and from the logs, is decided here and in `dueness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.orchestration.automation.dueness import Situation
from dagster_streamtables.orchestration.declare.analyze import Examined
from dagster_streamtables.orchestration.declare.schedule import OnChange
from dagster_streamtables.runtime.model.state import State
from dagster_streamtables.runtime.observe.log_heads import Heads

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake
    from dagster_streamtables.runtime.observe.controls import Controls

_UNREADABLE = -1
_TIME_STEP = timedelta(minutes=1)
"""How often a table is refreshed ``on change`` whose query uses the current time: no commit tells
that time has passed."""


@dataclass(frozen=True)
class Known:
    """What a driver remembers of the refreshes of one table."""

    last: datetime | None = None
    """When it was last refreshed; None if the driver knows of no refresh."""
    read: Mapping[str, int] = field(default_factory=dict[str, int])
    """The version of each source that the last refresh read."""
    redefined: bool = False
    """Its query differs from the one that was refreshed last."""
    run: str = ""
    """What refreshes it now: the id of a run; empty if nothing does."""
    failures: int = 0
    """Failures in a row, since the last refresh."""
    failed_at: datetime | None = None
    again_at: datetime | None = None
    """When it is tried again after an error that may pass by itself."""


class Versions:
    """The newest version of each table, read once per decision."""

    def __init__(self, heads: Heads) -> None:
        self.heads = heads
        self.read: dict[str, int | None] = {}

    def look(self, names: Iterable[str]) -> None:
        """Read many at once: concurrently in an object store."""
        self.read |= self.heads.versions(name for name in names if name not in self.read)

    def state(self, name: str) -> State | None:
        """The state of a stream table; None if it was never refreshed.

        Raises:
            Exception: The log cannot be read.
        """
        return self.heads.state(name, seen=name in self.read)

    def __getitem__(self, name: str) -> int | None:
        """
        Raises:
            Exception: The log cannot be read.
        """
        if name not in self.read:
            self.read[name] = self.heads.version(name)
        return self.read[name]


def situations(
    tables: Mapping[str, Examined],
    known: Mapping[str, Known],
    versions: Versions,
    suspended: Mapping[str, str],
    now: datetime,
) -> dict[str, Situation]:
    """The situation of each table.

    Args:
        tables: The tables that are due.
        known: What is remembered of each.
        versions: The versions in the logs.
        suspended: Why each table may not be refreshed; empty if it may.
        now: The time of the decision.
    """
    sources = (source for each in tables.values() for source in each.sources)
    versions.look([*tables, *sources])
    return {
        name: _situation(each, known[name], versions, suspended.get(name, ""), now)
        for name, each in tables.items()
    }


def stopped(tables: Iterable[Examined], lake: Lake) -> dict[str, str]:
    """Why a refresh of each table would be refused; empty if it would not."""
    try:
        controls = lake.controls.snapshot()
    except StreamTablesError:  # of the root: each refresh reports it
        return {each.name: "" for each in tables}
    return {each.name: _suspended(each, controls) for each in tables}


def _situation(
    table: Examined, known: Known, versions: Versions, suspended: str, now: datetime
) -> Situation:
    sources, older = table.sources, False
    try:
        state = versions.state(table.name)
        frontier = None if state is None else state.frontier
        older = state is not None and not state.compared
        newest = {source: versions[source] for source in sources}
    # An unreadable log stops one table, not the decision: its refresh reports the error.
    except Exception:
        frontier, newest = {}, dict.fromkeys(sources, _UNREADABLE)
    return Situation(
        last=known.last if frontier is not None else None,
        moved=tuple(s for s in sources if newest[s] not in _reflected(s, frontier, known)),
        missing=tuple(s for s in sources if frontier is None and newest[s] is None),
        timed=table.timed and _time_passed(table, known, now),
        redefined=known.redefined or older,
        run=known.run,
        suspended=suspended,
        by_hand=frontier is None and not table.table.initialize,
        failures=known.failures,
        failed_at=known.failed_at,
        again_at=known.again_at,
    )


def _time_passed(table: Examined, known: Known, now: datetime) -> bool:
    if known.last is None or not isinstance(table.schedule, OnChange):
        return True
    return not known.last <= now < known.last + _TIME_STEP


def _reflected(source: str, frontier: Mapping[str, int] | None, known: Known) -> set[int | None]:
    """The versions of a source that the table reflects: the one in its log, and the one that its
    last refresh read. A refresh that found no new rows may leave its version unwritten."""
    return set() if frontier is None else {frontier.get(source), known.read.get(source)}


def _suspended(table: Examined, controls: Controls) -> str:
    try:
        return controls.of(table.table).suspended
    except StreamTablesError:  # it must not stop the others: the table's refresh reports it
        return ""
