"""The end of a refresh: commit, find the commit in the log, and report it.

If `CdcMode.ENABLE` requests it, a refresh that had to compare files then turns on the source's
Change Data Feed, by one commit of a property. Only on request, since the source is another owner's
table. The window with that commit is read from the files of both ends, later ones from the feed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from deltalake import DeltaTable

from dagster_streamtables.amounts import count
from dagster_streamtables.compiler import WEIGHT, Plan
from dagster_streamtables.errors import ConflictingCommit
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.compute.spark_relations import OutputRows
from dagster_streamtables.runtime.delta.arrow import pa, pc, python_rows
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import Capture
from dagster_streamtables.runtime.delta.table_schema import spark_name
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.model.costs import Effort, RefreshMethod
from dagster_streamtables.runtime.model.definition import visible_names
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh, Stopwatch
from dagster_streamtables.runtime.model.stream_table import CdcMode
from dagster_streamtables.runtime.model.table_state import (
    ConsumedWindow,
    RefreshRecord,
    state_in,
    state_of,
)
from dagster_streamtables.runtime.refresh.refresh_job import Job
from dagster_streamtables.runtime.spark.spark_commits import commits_safely
from dagster_streamtables.runtime.storage import upkeep, writer
from dagster_streamtables.runtime.storage.commit_target import CommitResult, CommitTarget, prove
from dagster_streamtables.runtime.storage.history import commit_result


def effort(report: Refresh, clock: Stopwatch) -> Effort | None:
    """The effort of the refresh until now, just before its commit."""
    if any(window.rows is None for window in report.windows.values()):
        return None
    way = RefreshMethod.DIFFERENTIAL if report.action is Action.DIFFERENTIAL else RefreshMethod.FULL
    actions = (report.action, *(each.action for each in report.intermediates.values()))
    cold = Action.REINITIALIZE in actions
    return Effort(way, report.rows_in, round(clock.work_seconds, 3), time.time(), cold)


def refresh_record(job: Job, report: Refresh, clock: Stopwatch) -> RefreshRecord:
    """The account of the refresh, just before its commit."""
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
        full_reason=report.full_reason or "",
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
        _, made = commit_once(inputs, target, lambda: writer.advance(log, target, inputs), log)
    return finish(report, made, target, CommitResult(0, 0, ""), clock)


def commit_once(
    inputs: Inputs,
    target: CommitTarget,
    write: Callable[[], CommitResult],
    log: TableLog | None = None,
) -> tuple[CommitResult, TableLog]:
    """Write, and return what was written and the table after it; `log` is the table before it.

    Raises:
        ConflictingCommit: Another refresh committed first; nothing of this one is in the log.
        MissingRow: The change deletes a row that is not stored; nothing was written.
    """
    written: list[CommitResult] = []
    made = prove(lambda: written.append(write()), lambda: _find_commit(inputs, target, log))
    if made is None:
        raise ConflictingCommit(
            "another refresh of the table committed first",
            fix="refresh again; this attempt wrote nothing",
        ).about(target.state.table)
    return written[0] if written else made[0], made[1]


def _find_commit(
    inputs: Inputs, target: CommitTarget, log: TableLog | None
) -> tuple[CommitResult, TableLog] | None:
    """The commit of a refresh, by its own account, and the table after it."""
    known = None if log is None else log.successor
    found = None if known is None else _commit_in(known, target)
    if found is None:
        stored = inputs.stored(target.location)
        found = None if stored is None else _commit_in(stored.log, target)
    return found


def _commit_in(newest: TableLog, target: CommitTarget) -> tuple[CommitResult, TableLog] | None:
    for version, commit in newest.commits_back(target.read):
        state = state_in(commit)
        if state is not None and state.refresh == target.state.refresh:
            log = newest if version == newest.version else newest.at(version)
            return commit_result(commit, state), log or newest
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


def commit_change(
    job: Job, log: TableLog, rows: OutputRows, inputs: Inputs, clock: Stopwatch, report: Refresh
) -> Refresh:
    """Change the rows of a table, and compact its files if many are small.

    Raises:
        ConflictingCommit: As for `commit_once`; likewise MissingRow.
    """
    record = refresh_record(job, report, clock)
    target = job.target(record, changed=True, effort=effort(report, clock))
    with clock.phase("commit"):
        written, made = commit_once(
            inputs, target, lambda: writer.change(log, target, rows, inputs), log
        )
    if upkeep.has_many_small_files(made):
        with clock.phase("compact"):
            upkeep.keep_files_small(made)
            upkeep.compact(made, lambda: inputs.spark)
    return finish(report, made, target, written, clock)


PROPERTY = "delta.enableChangeDataFeed"


def with_feeds(job: Job, done: Refresh, inputs: Inputs) -> Refresh:
    """Turn on the feeds that a refresh missed, and report that or the error: the refresh has
    committed, so a missing permission must not fail it."""
    reasons = [done.reason]
    for name, source in job.sources.items() if job.table.cdc_mode is CdcMode.ENABLE else ():
        compared = done.windows[name].capture is Capture.SNAPSHOTS
        place = source.log.location
        try:
            if not compared or source.log.has_feed or state_of(name, source.log) is not None:
                continue
            table = DeltaTable(place, storage_options=dict(source.log.storage_options or {}))
            # Another refresh may have turned it on already.
            if (table.metadata().configuration.get(PROPERTY) or "").lower() == "true":
                continue
            if commits_safely(inputs.spark, place):
                own = source.log.name_in_spark or f"delta.{spark_name(place)}"
                inputs.spark.sql(f"ALTER TABLE {own} SET TBLPROPERTIES ({PROPERTY} = true)")
            else:
                table.alter.set_table_properties({PROPERTY: "true"})
            reasons.append(f'the change feed of "{name}" is now on')
        except Exception as error:
            said = f'the change feed of "{name}" could not be turned on'
            logger.warning("%s: %s: %s", job.table.name, said, error)
            reasons.append(f"{said}: {first_line(str(error))}")
    return replace(done, reason="; ".join(reasons))


_CAME, _WENT = "__came", "__went"


def by_time(plan: Plan, log: TableLog, change: pa.Table | None) -> str:
    """The end of the reason, for a query that returns the time; None is a change in Spark."""
    columns = ", ".join(f'"{each}"' for each in plan.time_columns)
    pairs = None
    if change is not None and plan.key is None:
        pairs = _pairs(change, plan.time_columns)
    if pairs is not None:
        rows = f"{count(pairs, 'row')} more"
    else:
        rows = "all rows" if log.row_count is None else f"up to {count(log.row_count, 'row')}"
    return f"the time in {columns} changed {rows}"


def _pairs(change: pa.Table, timed: tuple[str, ...]) -> int | None:
    """The rows of a bag that only change in their time; None if Arrow cannot compare them."""
    if any(pa.types.is_nested(each) for each in change.schema.types):
        return None
    weight = change.column(WEIGHT)
    zero = pa.scalar(0, weight.type)
    others = [name for name in change.column_names if name not in (*timed, WEIGHT)]
    rows = change.select(others)
    rows = rows.append_column(_CAME, pc.max_element_wise(weight, zero))
    rows = rows.append_column(_WENT, pc.max_element_wise(pc.negate(weight), zero))
    sums = rows.group_by(others).aggregate([(_CAME, "sum"), (_WENT, "sum")])
    came, went = sums.column(f"{_CAME}_sum"), sums.column(f"{_WENT}_sum")
    return pc.sum(pc.min_element_wise(came, went)).as_py() or 0


CHANGE, COPIES = "__change", "__copies"


def preview_of(change: pa.Table | None, limit: int) -> list[dict[str, Any]]:
    """Up to `limit` rows of a change, with ``__change`` (``came`` or ``went``) and ``__copies``.

    `change` is None if Spark has the rows; the limit 0, the default, keeps all data in the table.
    In a table with a key, a row that came replaces the one with its key.
    """
    if change is None or not limit:
        return []
    few = change.slice(0, limit)
    weights, rows = few.column(WEIGHT).to_pylist(), few.drop_columns([WEIGHT])
    shown = rows.select(visible_names(rows.column_names))
    return [
        {CHANGE: "came" if weight > 0 else "went", COPIES: abs(weight), **row}
        for row, weight in zip(python_rows(shown), weights, strict=True)
    ]
