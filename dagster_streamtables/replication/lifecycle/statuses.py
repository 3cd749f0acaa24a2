"""The status of a replication, from its state and the logs of its targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.replication.lifecycle.state import ReplicationState
from dagster_streamtables.replication.lifecycle.status import (
    ReplicationStatus,
    TableState,
    TableStatus,
)
from dagster_streamtables.runtime.lake import Lake


def status_of(state: ReplicationState, lake: Lake, warnings: Sequence[str]) -> ReplicationStatus:
    lease = state.lease
    return ReplicationStatus(
        name=state.replication.name,
        replication=state.replication,
        enabled=state.enabled,
        slot=state.slot,
        tables=tuple(_of_table(name, state, lake) for name in sorted(state.tables)),
        error=state.error,
        errors=state.errors,
        failed_at=_time(state.failed_at),
        refreshed_at=_time(state.refreshed_at),
        conflicts=dict(state.conflicts),
        skips=tuple(map(str, state.skips)),
        worker=str(lease) if lease is not None and lease.runs() else "",
        warnings=(*warnings, *_late(state)),
    )


def _late(state: ReplicationState) -> Iterator[str]:
    """A refresh that its publisher may not wait for."""
    source, longest = state.replication.publisher, timedelta(seconds=state.longest_refresh)
    deadline = source.slot_deadline
    if deadline is not None and deadline < 2 * longest:
        yield (
            f"its longest refresh took {longest}, and its publisher lets the slot go after "
            f"{deadline} (slot_deadline): choose at least twice as much as a refresh takes"
        )


def _of_table(name: str, state: ReplicationState, lake: Lake) -> TableStatus:
    progress = state.tables[name]
    error, since = progress.error, _time(progress.since or None)
    deadline = state.replication.stopped_deadline
    kept = since + deadline if since is not None and deadline is not None else None
    try:
        log = lake.access.catalog.newest(progress.target)
    except StreamTablesError as unreadable:  # it must not hide the others
        log, error = None, error or unreadable.what
    return TableStatus(
        name=name,
        target=progress.target,
        state=progress.state,
        position=progress.position,
        version=None if log is None else log.version,
        rows=None if log is None else log.row_count,
        error=error,
        fix=progress.fix,
        since=since,
        kept_until=kept if progress.state is TableState.STOPPED else None,
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
