"""The past refreshes of a stream table, from the accounts in the commits of its log.

The log goes back as far as the table keeps it (``delta.logRetentionDuration``, 30 days). A refresh
that committed nothing, because no source changed, is not in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from statistics import median
from typing import Any

from dagster_streamtables.runtime.delta.actions import (
    Commit,
    committed_at,
    info_of,
    metrics_of,
    moment,
    user_metadata,
)
from dagster_streamtables.runtime.delta.delta_log import Head, TableLog
from dagster_streamtables.runtime.model.refresh_report import (
    CONNECT,
    Action,
    FullReason,
    Refresh,
    Window,
)
from dagster_streamtables.runtime.model.table_state import (
    StreamTableState,
    read_state,
    state_of,
)
from dagster_streamtables.runtime.storage.commit_target import CommitResult

COMMIT = "commit"
"""The phase whose duration is known only from the time of the commit."""
# Inserted and deleted rows in the metrics of delta-rs and Spark, of MERGE and WRITE.
_CAME = (
    ("num_target_rows_inserted", "num_target_rows_updated"),
    ("numTargetRowsInserted", "numTargetRowsUpdated"),
    ("num_added_rows",),
    ("numOutputRows",),
)
_WENT = (
    ("num_target_rows_deleted", "num_target_rows_updated"),
    ("numTargetRowsDeleted", "numTargetRowsUpdated"),
)


@dataclass(frozen=True)
class PastRefresh:
    """One refresh, by its commit."""

    table: str
    version: int
    """The table's Delta version that it committed."""
    time: datetime | None
    """When it was committed."""
    frontier: Mapping[str, int]
    """The version of each source that the table then reflected."""
    action: str
    reason: str
    mode: str
    rows_in: int
    """Rows inserted into or deleted from the sources, an update counting as two."""
    inserted: int | None
    """Stored rows written, an updated row counting once here and once in `deleted`."""
    deleted: int | None
    seconds: float
    phases: Mapping[str, float]
    """Seconds by phase, without phases after the commit, such as a compaction."""
    windows: Mapping[str, Window]
    data_timestamp: datetime | None
    """See `StreamTableState.data_timestamp`."""
    fallback: str = ""
    """As in `Refresh`."""
    full_reason: FullReason | None = None
    """As in `Refresh`; also None if an older version wrote it."""
    forecast_error: float | None = None
    """Actual duration as a multiple of the expected one; None without a forecast."""


@dataclass(frozen=True)
class RefreshStatistics:
    """The totals of a table's refreshes, as far as its log goes back."""

    table: str
    refreshes: int
    since: datetime | None
    """When the oldest of them was committed."""
    actions: Mapping[str, int]
    rows_in: int
    inserted: int
    deleted: int
    seconds_median: float | None
    seconds_p95: float | None
    seconds_most: float | None


def past_refreshes(name: str, log: TableLog, limit: int | None = None) -> list[PastRefresh]:
    """The refreshes that are still in the log, newest first."""
    return list(islice(_past(name, log), limit))


def last_refresh(
    name: str, log: TableLog, at: Callable[[str, int], TableLog | None]
) -> Refresh | None:
    """The newest refresh that is still in the log, as it was reported; None if missing.

    A run that ends between its commit and its report leaves no other trace. `at` returns a source
    at a version, or None.
    """
    stored = read_state(log).refreshed
    if stored is None:
        return None
    [past], state = past_refreshes(name, log, 1), stored.state
    began = state.account.until - state.account.seconds
    seen = {source: Head(each.version, each.commit) for source, each in state.sources.items()}
    logs = {source: at(source, each.version) for source, each in state.sources.items()}
    states = {source: state_of(source, each) for source, each in logs.items() if each is not None}
    return Refresh(
        name,
        Action(past.action),
        past.reason,
        version=past.version,
        data_version=state.data_version,
        windows=past.windows,
        inserted=past.inserted or 0,
        deleted=past.deleted or 0,
        row_count=log.row_count,
        size_bytes=sum(log.file_sizes),
        files=len(log.file_sizes),
        seconds=past.seconds,
        phases=past.phases,
        started=moment(began),
        data_timestamp=past.data_timestamp,
        fallback=past.fallback,
        full_reason=past.full_reason,
        read={source: each.data_version for source, each in states.items() if each is not None},
        seen=seen,
    )


def statistics(name: str, past: Sequence[PastRefresh]) -> RefreshStatistics:
    """
    >>> def full(version, seconds):
    ...     known = (None, {}, "FULL", "", "FULL", 1, 1, 0, seconds, {}, {}, None)
    ...     return PastRefresh("t", version, *known)
    >>> found = statistics("t", [full(i, float(i)) for i in range(1, 21)])
    >>> found.seconds_median, found.seconds_p95, found.actions
    (10.5, 19.0, {'FULL': 20})
    """
    seconds = sorted(each.seconds for each in past)
    return RefreshStatistics(
        table=name,
        refreshes=len(past),
        since=past[-1].time if past else None,
        actions=dict(Counter(each.action for each in past)),
        rows_in=sum(each.rows_in for each in past),
        inserted=sum(each.inserted or 0 for each in past),
        deleted=sum(each.deleted or 0 for each in past),
        seconds_median=median(seconds) if seconds else None,
        seconds_p95=seconds[math.ceil(0.95 * len(seconds)) - 1] if seconds else None,
        seconds_most=seconds[-1] if seconds else None,
    )


def _past(name: str, log: TableLog) -> Iterator[PastRefresh]:
    for version, commit in log.commits_back():
        info = info_of(commit)
        state = StreamTableState.from_json(user_metadata(info))
        if state is not None:
            yield _past_refresh(name, version, state, info)


def _past_refresh(
    name: str, version: int, state: StreamTableState, info: Mapping[str, Any]
) -> PastRefresh:
    committed = committed_at(info)
    account = state.account
    last = max(0.0, committed - account.until) if committed is not None else 0.0
    inserted, deleted = account.rows or _rows(info)
    seconds = account.seconds + last
    worked = seconds - account.phases.get(CONNECT, 0.0)
    return PastRefresh(
        table=name,
        version=version,
        time=moment(committed),
        frontier=state.frontier,
        action=account.action,
        reason=account.reason,
        mode=account.mode,
        rows_in=sum(each.rows or 0 for each in account.windows.values()),
        inserted=inserted,
        deleted=deleted,
        seconds=round(seconds, 3),
        phases={**account.phases, COMMIT: round(last, 3)},
        windows={
            source: Window(each.before, state.frontier[source], each.capture, each.rows)
            for source, each in account.windows.items()
        },
        data_timestamp=moment(state.data_timestamp),
        forecast_error=worked / account.expected if account.expected else None,
        fallback=account.fallback,
        full_reason=FullReason(account.full_reason) if account.full_reason else None,
    )


def commit_result(commit: Commit, state: StreamTableState) -> CommitResult:
    """The result of a refresh's commit, by the account in it."""
    info = info_of(commit)
    inserted, deleted = state.account.rows or _rows(info)
    by_spark = "spark" in str(info.get("engineInfo") or "").lower()
    return CommitResult(inserted or 0, deleted or 0, "spark" if by_spark else "delta-rs")


def _rows(info: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Inserted and deleted rows of a commit, by its metrics."""
    metrics = metrics_of(info)
    return _sum(metrics, _CAME), _sum(metrics, _WENT) or 0


def _sum(metrics: Mapping[str, Any], names: Sequence[tuple[str, ...]]) -> int | None:
    for group in names:
        if group[0] in metrics:
            return sum(int(metrics.get(name) or 0) for name in group)
    return None
