"""What is known of a replication, and how far it is behind its publisher → its `RefreshState`."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from dagster_streamtables.replication.lifecycle.status import (
    ReplicationStatus,
    TableState,
    TableStatus,
)
from dagster_streamtables.scheduling.dueness import Backoff, RefreshState
from dagster_streamtables.scheduling.situation import RefreshProgress

if TYPE_CHECKING:
    from dagster_streamtables.declare.replications import ReplicationNode
    from dagster_streamtables.replication.lifecycle.replications import Replications
    from dagster_streamtables.runtime.lake import Lake

KEPT = 64 * 1024 * 1024
"""Bytes of its log that a server may keep for a replication of which nothing changed: then a
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
    """The situation of each replication.

    Publishers are asked at the same time, and not at all while a run works at a replication or one
    that failed is not to be tried again yet. One that does not answer gets a run, which reports it.

    Args:
        replications: The replications that are due, by their names in the graph.
        known: What is remembered of each.
        lake: The lake; needs no Spark.
        now: The time of the decision.
        backoff: The delay before failed ones are tried again.
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
            return PublisherAnswer(False, _disablement_reason(status))
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
    """The situation of a replication whose publisher has answered."""
    reasons = {_NEW: known.last is None, _REDEFINED: known.redefined, _MOVED: answer.moved}
    return RefreshState(
        last=known.last,
        work=tuple(reason for reason, holds in reasons.items() if holds),
        run=known.run,
        suspended=answer.suspended,
        failures=known.failures,
        failed_at=known.failed_at,
        again_at=known.again_at,
    )


def _answers(lake: Lake, names: Mapping[str, str]) -> dict[str, PublisherAnswer]:
    """What is known of replications, by node, of those whose publishers answer in time."""
    from dagster_streamtables.replication.lifecycle.replications import Replications

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


def _disablement_reason(status: ReplicationStatus) -> str:
    why = f" after an error: {status.error}" if status.error else ""
    return f"the replication is disabled{why}"
