"""The end of a refresh: its commit is found in the log, and told."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.runtime import delta_rs_writer, spark_writer, upkeep
from dagster_streamtables.runtime.account import Account, Taken
from dagster_streamtables.runtime.clock import Clock
from dagster_streamtables.runtime.costs import Effort, Way
from dagster_streamtables.runtime.delta_log import TableLog
from dagster_streamtables.runtime.inputs import Inputs
from dagster_streamtables.runtime.job import Job
from dagster_streamtables.runtime.report import Action, Refresh
from dagster_streamtables.runtime.storage import Target, Written


def effort(report: Refresh, clock: Clock) -> Effort | None:
    """What the refresh took until now, when it is about to commit."""
    if any(window.rows is None for window in report.windows.values()):
        return None
    way = Way.DIFFERENTIAL if report.action is Action.DIFFERENTIAL else Way.FULL
    actions = (report.action, *(each.action for each in report.intermediates.values()))
    cold = Action.REINITIALIZE in actions
    return Effort(way, report.rows_in, round(clock.worked, 3), time.time(), cold)


def account(job: Job, report: Refresh, clock: Clock) -> Account:
    """What the refresh did until now, when it is about to commit."""
    windows = report.windows.items()
    return Account(
        action=str(report.action),
        reason=report.reason,
        mode=str(job.table.mode),
        seconds=round(clock.seconds, 3),
        until=time.time(),
        phases={phase: round(seconds, 3) for phase, seconds in clock.phases.items()},
        windows={name: Taken(each.before, each.capture, each.rows) for name, each in windows},
        expected=report.expected,
    )


def advance(job: Job, inputs: Inputs, clock: Clock, report: Refresh) -> Refresh:
    """Move the frontier over a window in which nothing visible came; `report` says why."""
    target = job.target(account(job, report, clock), changed=False)
    log = job.held.log
    with clock.phase("commit"):
        if delta_rs_writer.can_write(log):
            delta_rs_writer.advance(log, target)
        else:
            spark_writer.advance(inputs.spark, target)
        log = committed(inputs, target)
    return finish(report, log, target, Written(0, 0, ""), clock)


def committed(inputs: Inputs, target: Target) -> TableLog:
    """The table after the commit.

    Spark skips a commit whose transaction number is taken, without a word; then the newest state is
    somebody else's.
    """
    stored = inputs.stored(target.location)
    if stored is None or stored.state is None or stored.state.refresh != target.state.refresh:
        raise ConflictingCommit(
            "another refresh of the table committed first",
            fix="refresh again; nothing of this attempt was written",
        ).about(target.state.table)
    return stored.log


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
    """How large a table is, as a refresh reports it."""
    sizes = log.file_sizes
    return {"row_count": log.row_count, "size_bytes": sum(sizes), "files": len(sizes)}


def finish_change(
    report: Refresh, log: TableLog, target: Target, written: Written, clock: Clock
) -> Refresh:
    """`finish` where rows were added to those that were there, each time in a file more."""
    if upkeep.has_many_small_files(log):
        with clock.phase("compact"):
            upkeep.compact(log)
            upkeep.keep_files_small(log)
    return finish(report, log, target, written, clock)
