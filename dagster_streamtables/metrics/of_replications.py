"""The samples of replications: their state, and how far they are behind their publishers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.replication.lifecycle.status import ReplicationStatus, TableState

Sample: TypeAlias = tuple[str, tuple[str, ...], float | None]


def samples_of(replications: Replications) -> Iterator[Sample]:
    """One that cannot be read does not hide the others."""
    try:
        found = replications.list()
    except Exception as error:
        logger.warning("the replications cannot be read: %s", error)
        yield "replications_unreadable", (), 1
        return
    yield "replications_unreadable", (), 0
    for status in found:
        yield from _of_status(status)
        yield from _of_lag(replications, status)


def _of_status(status: ReplicationStatus) -> Iterator[Sample]:
    name = (status.name,)
    at = status.refreshed_at
    yield "replication_enabled", name, status.enabled
    yield "replication_errors_in_a_row", name, status.errors
    yield "replication_last_refresh_timestamp_seconds", name, at and at.timestamp()
    states = Counter(each.state for each in status.tables)
    for state in TableState:
        yield "replication_tables", (*name, state), states[state]
    for each in status.tables:
        if each.state is not TableState.REMOVED:
            yield "replication_table_current", (*name, each.name), each.is_current
    for kind, number in status.conflicts.items():
        yield "replication_conflicts", (*name, kind), number


def _of_lag(replications: Replications, status: ReplicationStatus) -> Iterator[Sample]:
    """Nothing, if it has not begun or is detached."""
    name = (status.name,)
    held = (TableState.READY, TableState.STOPPED)
    if status.slot is None or all(each.state not in held for each in status.tables):
        return
    try:
        lag = replications.lag(status.name)
    except Exception as error:
        logger.warning("the lag of %s is not known: %s", status.name, error)
        yield "replication_lag_unknown", name, 1
        return
    yield "replication_lag_unknown", name, 0
    yield "replication_lag_seconds", name, lag.seconds
    yield "replication_lag_bytes", name, lag.bytes
    yield "replication_lag_commits", name, lag.commits
