"""The end of a refresh: find its commit in the log, and report it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.model.costs import Effort, Way
from dagster_streamtables.runtime.model.report import Action, Refresh
from dagster_streamtables.runtime.model.state import Account, ConsumedWindow, state_in
from dagster_streamtables.runtime.model.stopwatch import Clock
from dagster_streamtables.runtime.refresh.context import Job
from dagster_streamtables.runtime.storage import upkeep, writer
from dagster_streamtables.runtime.storage.history import written_by
from dagster_streamtables.runtime.storage.target import Target, Written, prove


def effort(report: Refresh, clock: Clock) -> Effort | None:
    """The effort of the refresh until now, just before its commit."""
    if any(window.rows is None for window in report.windows.values()):
        return None
    way = Way.DIFFERENTIAL if report.action is Action.DIFFERENTIAL else Way.FULL
    actions = (report.action, *(each.action for each in report.intermediates.values()))
    cold = Action.REINITIALIZE in actions
    return Effort(way, report.rows_in, round(clock.worked, 3), time.time(), cold)


def account(job: Job, report: Refresh, clock: Clock) -> Account:
    """What the refresh did until now, just before its commit."""
    windows = report.windows.items()
    return Account(
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
    before = job.refreshed.state.account.fallbacks if job.refreshed is not None else 0
    if report.fallback:
        return before + 1
    return before if report.action is Action.NO_DATA else 0


def advance(job: Job, log: TableLog, inputs: Inputs, clock: Clock, report: Refresh) -> Refresh:
    """Move the frontier over a window without visible changes; `report` says why."""
    target = job.target(account(job, report, clock), changed=False)
    with clock.phase("commit"):
        _, made = committed(inputs, target, lambda: writer.advance(log, target, inputs))
    return finish(report, made, target, Written(0, 0, ""), clock)


def committed(
    inputs: Inputs, target: Target, write: Callable[[], Written]
) -> tuple[Written, TableLog]:
    """Write, and return what was written and the table after it.

    Raises:
        ConflictingCommit: Another refresh committed first; nothing of this one is in the log.
        NotStored: The change deletes a row that is not stored; nothing was written.
    """
    written: list[Written] = []
    made = prove(lambda: written.append(write()), lambda: _made(inputs, target))
    if made is None:
        raise ConflictingCommit(
            "another refresh of the table committed first",
            fix="refresh again; this attempt wrote nothing",
        ).about(target.state.table)
    return written[0] if written else made[0], made[1]


def _made(inputs: Inputs, target: Target) -> tuple[Written, TableLog] | None:
    """What the commit of a refresh did, by its own account, and the table after it."""
    stored = inputs.stored(target.location)
    if stored is None:
        return None
    for version in range(stored.log.version, target.read, -1):
        [(_, commit)] = stored.log.commits(version - 1, version)
        state = state_in(commit or ())
        if state is not None and state.refresh == target.state.refresh:
            log = stored.log if version == stored.log.version else stored.log.at(version)
            return written_by(commit or (), state), log or stored.log
    return None


def finish(
    report: Refresh, log: TableLog, target: Target, written: Written, clock: Clock
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
    report: Refresh, log: TableLog, target: Target, written: Written, clock: Clock, inputs: Inputs
) -> Refresh:
    """`finish` after a change, which adds a file each time; compacts if necessary."""
    if upkeep.has_many_small_files(log):
        with clock.phase("compact"):
            upkeep.keep_files_small(log)
            upkeep.compact(log, lambda: inputs.spark)
    return finish(report, log, target, written, clock)
