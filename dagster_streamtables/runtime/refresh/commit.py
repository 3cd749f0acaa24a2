"""The end of a refresh: find its commit in the log, and report it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.costs import Effort, RefreshMethod
from dagster_streamtables.runtime.model.report import Action, Refresh
from dagster_streamtables.runtime.model.state import ConsumedWindow, RefreshRecord, state_in
from dagster_streamtables.runtime.model.stopwatch import Stopwatch
from dagster_streamtables.runtime.refresh.context import Job
from dagster_streamtables.runtime.storage import upkeep, writer
from dagster_streamtables.runtime.storage.history import commit_result
from dagster_streamtables.runtime.storage.target import CommitResult, CommitTarget, prove


def effort(report: Refresh, clock: Stopwatch) -> Effort | None:
    """The effort of the refresh until now, just before its commit."""
    if any(window.rows is None for window in report.windows.values()):
        return None
    way = RefreshMethod.DIFFERENTIAL if report.action is Action.DIFFERENTIAL else RefreshMethod.FULL
    actions = (report.action, *(each.action for each in report.intermediates.values()))
    cold = Action.REINITIALIZE in actions
    return Effort(way, report.rows_in, round(clock.work_seconds, 3), time.time(), cold)


def refresh_record(job: Job, report: Refresh, clock: Stopwatch) -> RefreshRecord:
    """What the refresh did until now, just before its commit."""
    windows = report.windows.items()
    return RefreshRecord(
        action=str(report.action),
        reason=report.reason,
        mode=str(job.table.mode),
        seconds=round(clock.seconds, 3),
        until=time.time(),
        phases={phase: round(seconds, 3) for phase, seconds in clock.phases.items()},
        windows={
            name: ConsumedWindow(each.before, each.capture, each.rows) for name, each in windows
        },
        expected=report.expected,
        fallback=report.fallback,
        fallbacks=_fallbacks(job, report),
    )


def _fallbacks(job: Job, report: Refresh) -> int:
    before = job.last_refresh.state.account.fallbacks if job.last_refresh is not None else 0
    if report.fallback:
        return before + 1
    return before if report.action is Action.NO_DATA else 0


def advance(job: Job, log: TableLog, inputs: Inputs, clock: Stopwatch, report: Refresh) -> Refresh:
    """Move the frontier over a window without visible changes; `report` says why."""
    target = job.target(refresh_record(job, report, clock), changed=False)
    with clock.phase("commit"):
        _, made = commit_once(inputs, target, lambda: writer.advance(log, target, inputs))
    return finish(report, made, target, CommitResult(0, 0, ""), clock)


def commit_once(
    inputs: Inputs, target: CommitTarget, write: Callable[[], CommitResult]
) -> tuple[CommitResult, TableLog]:
    """Write, and return what was written and the table after it.

    Raises:
        ConflictingCommit: Another refresh committed first; nothing of this one is in the log.
        NotStored: The change deletes a row that is not stored; nothing was written.
    """
    written: list[CommitResult] = []
    made = prove(lambda: written.append(write()), lambda: _find_commit(inputs, target))
    if made is None:
        raise ConflictingCommit(
            "another refresh of the table committed first",
            fix="refresh again; this attempt wrote nothing",
        ).about(target.state.table)
    return written[0] if written else made[0], made[1]


def _find_commit(inputs: Inputs, target: CommitTarget) -> tuple[CommitResult, TableLog] | None:
    """What the commit of a refresh did, by its own account, and the table after it."""
    stored = inputs.stored(target.location)
    if stored is None:
        return None
    for version in range(stored.log.version, target.read, -1):
        [(_, commit)] = stored.log.commits(version - 1, version)
        state = state_in(commit or ())
        if state is not None and state.refresh == target.state.refresh:
            log = stored.log if version == stored.log.version else stored.log.at(version)
            return commit_result(commit or (), state), log or stored.log
    return None


def finish(
    report: Refresh, log: TableLog, target: CommitTarget, written: CommitResult, clock: Stopwatch
) -> Refresh:
    """The report of a refresh that committed."""
    return replace(
        report,
        version=log.version,
        data_version=target.state.data_version,
        inserted=written.inserted,
        deleted=written.deleted,
        writer=written.writer,
        **extent(log),
        seconds=clock.seconds,
        phases=clock.phases,
    )


def extent(log: TableLog) -> dict[str, Any]:
    """The size of a table, as in the report of a refresh."""
    sizes = log.file_sizes
    return {"row_count": log.row_count, "size_bytes": sum(sizes), "files": len(sizes)}


def finish_change(
    report: Refresh,
    log: TableLog,
    target: CommitTarget,
    written: CommitResult,
    clock: Stopwatch,
    inputs: Inputs,
) -> Refresh:
    """`finish` after a change, which adds a file each time; compacts if necessary."""
    if upkeep.has_many_small_files(log):
        with clock.phase("compact"):
            upkeep.keep_files_small(log)
            upkeep.compact(log, lambda: inputs.spark)
    return finish(report, log, target, written, clock)
