"""The `RefreshState` of tables and replications, from what a driver remembers and logs contain.

The sensor and the worker differ in where they remember refreshes: in Dagster's instance, or in
memory. What follows from that, from the logs, and from the publishers of replications is decided
here and in `dueness`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dagster_streamtables.declare.analysis import TableAnalysis
from dagster_streamtables.declare.schedule import OnChange
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lifecycle.replication_report import (
    TableState,
    TableStatus,
)
from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.model.refresh_work import HeadWithState, RefreshWork, refresh_work
from dagster_streamtables.runtime.observe.latest_versions import LatestVersions
from dagster_streamtables.scheduling.dueness import Backoff, RefreshState
from dagster_streamtables.scheduling.other_definitions import OtherDefinitions

if TYPE_CHECKING:
    from dagster_streamtables.declare.nodes import ReplicationNode
    from dagster_streamtables.replication.lifecycle.replication_manager import Replications
    from dagster_streamtables.runtime.lake import Lake


_TIME_STEP = timedelta(minutes=1)
"""How often a table is refreshed ``on change`` whose query uses the current time: no commit tells
that time has passed."""


@dataclass
class RefreshProgress:
    """What a driver remembers of the refreshes of one table or replication."""

    last: datetime | None = None
    """When it was last refreshed; None if the driver knows of no refresh."""
    seen: Mapping[str, Head] = field(default_factory=dict[str, Head])
    """What the last refresh looked at; see `refresh_work`."""
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
        """A stream table with its newest state; None if it was never refreshed. Raises `Exception`
        if the log cannot be read."""
        return self._heads.head_with_state(name, seen=name in self.read)

    def is_missing(self, name: str) -> bool:
        """Whether a table does not exist."""
        return self[name] is None and not self._heads.is_unknown(name)

    def __getitem__(self, name: str) -> Head | None:
        """Raises `Exception` if the log cannot be read."""
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
    blocked: Mapping[str, Mapping[str, str]],
) -> dict[str, RefreshState]:
    """The state of each due table.

    Args:
        tables: The tables that are due.
        known: What is remembered of each.
        versions: The versions in the logs.
        suspended: Why each table may not be refreshed; empty if it may.
        others: Who else refreshes them.
        now: The time of the decision.
        blocked: By table, the sources that it must not read now, with the reasons.
    """
    sources = (source for each in tables.values() for source in each.sources)
    versions.look([*tables, *sources])
    states: dict[str, RefreshState] = {}
    for name, table in tables.items():
        past, stored, newest, is_new = known[name], None, dict[str, Head | None](), False
        try:
            stored = versions.head_with_state(name)
            newest, is_new = {source: versions[source] for source in table.sources}, stored is None
            found = refresh_work(stored, table.table.meaning, newest, past.seen)
        # An unreadable log stops one table, not the decision: its refresh reports the error.
        except Exception as error:
            found = RefreshWork((f"a log cannot be read: {first_line(str(error))}",))
        found, left = others.judge(name, stored, found, past.last)
        timed = table.is_time_dependent and _is_time_due(table, past, now)
        states[name] = RefreshState(
            redefined=found.redefined,
            work=(*found.reasons, *(["time passed"] if timed else [])),
            missing=tuple(s for s in newest if is_new and versions.is_missing(s)),
            run=past.run,
            suspended=suspended.get(name, ""),
            left=left,
            blocked=blocked.get(name, {}),
            by_hand=is_new and not table.table.initialize,
            failures=past.failures,
            failed_at=past.failed_at,
            again_at=past.again_at,
        )
    return states


def suspension_reasons(tables: Iterable[TableAnalysis], lake: Lake) -> dict[str, str]:
    """Why a refresh of each table would be refused; empty if it would not."""
    try:
        controls = lake.controls.snapshot()
    except StreamTablesError:  # of the root: each refresh reports it
        return {each.name: "" for each in tables}
    reasons: dict[str, str] = {}
    for each in tables:
        try:
            reasons[each.name] = controls.of(each.table).suspension
        except StreamTablesError:  # it must not stop the others: the table's refresh reports it
            reasons[each.name] = ""
    return reasons


def _is_time_due(table: TableAnalysis, known: RefreshProgress, now: datetime) -> bool:
    if known.last is None or not isinstance(table.schedule, OnChange):
        return True
    return not known.last <= now < known.last + _TIME_STEP


KEPT = 64 * 1024 * 1024
"""Bytes of its log that a server may keep for a replication without changes: then a
refresh moves the slot, so that a busy server with idle tables does not fill its disk."""
_NEW, _REDEFINED, _MOVED = (
    "it was never refreshed",
    "its declaration changed",
    "its publisher has something new",
)
_AGAIN = timedelta(minutes=1)
"""A table in trouble is tried again after so long, if the others have nothing to do before."""
PATIENCE = 20.0
"""Seconds for which a decision waits for publishers: one that hangs must not stop the others."""


@dataclass(frozen=True)
class PublisherAnswer:
    """What is known of a replication and its publisher."""

    moved: bool = True
    """Whether a refresh has something to do; also if that is not known, so that it reports why."""
    suspended: str = ""
    """Why a refresh would be refused; empty if it would not."""


def replication_states(
    replications: Mapping[str, ReplicationNode],
    known: Mapping[str, RefreshProgress],
    lake: Lake,
    now: datetime,
    backoff: Backoff,
) -> dict[str, RefreshState]:
    """The state of each due replication, by its name in the graph.

    All publishers are asked at the same time, but none whose replication is being refreshed, or
    waits after a failure. A replication whose publisher does not answer gets a run, which reports
    it.
    """
    names = {
        node: each.replication.name
        for node, each in replications.items()
        if not waits(known[node], now, backoff)
    }
    found = _answers(lake, names) if names else {}
    return {
        node: replication_state(known[node], found.get(node, PublisherAnswer()))
        for node in replications
    }


def waits(known: RefreshProgress, now: datetime, backoff: Backoff) -> bool:
    """Whether it is not refreshed now whatever its publisher says."""
    if known.again_at is not None and now < known.again_at:
        return True
    if known.failures and known.failed_at is not None:
        return bool(known.run) or now < backoff.until(known.failures, known.failed_at)
    return bool(known.run)


def look(replications: Replications, name: str) -> PublisherAnswer:
    """Ask the publisher of a replication. Raises nothing."""
    try:
        status = replications.read(name)
        if not status.enabled:
            why = f" after an error: {status.error}" if status.error else ""
            return PublisherAnswer(False, f"the replication is disabled{why}")
        if any(_is_due(each, status.failed_at) for each in status.tables):
            return PublisherAnswer()
        lag = replications.lag(name, stopped=False)
        return PublisherAnswer(lag.seconds > 0 or (lag.bytes or 0) > KEPT or lag.is_abandoned)
    # One that was never created has all to do. Whatever else is wrong is reported by its refresh.
    except Exception:
        return PublisherAnswer()


def _is_due(table: TableStatus, failed_at: datetime | None) -> bool:
    """Whether a table is to be copied, or is in trouble and to be tried again."""
    if not table.error:
        return table.state in (TableState.NEW, TableState.AGAIN)
    waited = failed_at is None or datetime.now(UTC) - failed_at > _AGAIN
    return waited and table.state is not TableState.LOST


def replication_state(known: RefreshProgress, answer: PublisherAnswer) -> RefreshState:
    """The state of a replication whose publisher has answered."""
    reasons = {_NEW: known.last is None, _REDEFINED: known.redefined, _MOVED: answer.moved}
    return RefreshState(
        work=tuple(reason for reason, holds in reasons.items() if holds),
        run=known.run,
        suspended=answer.suspended,
        failures=known.failures,
        failed_at=known.failed_at,
        again_at=known.again_at,
    )


def _answers(lake: Lake, names: Mapping[str, str]) -> dict[str, PublisherAnswer]:
    """What is known of replications, by node, of those whose publishers answer in time."""
    from dagster_streamtables.replication.lifecycle.replication_manager import Replications

    replications = Replications(lake)
    found: dict[str, PublisherAnswer] = {}

    def ask(node: str, name: str) -> None:
        found[node] = look(replications, name)

    threads = [threading.Thread(target=ask, args=each, daemon=True) for each in names.items()]
    until = time.monotonic() + PATIENCE
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)
