"""One refresh from start to end: find what is new, decide, compute, commit, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dagster_streamtables.compiler import Plan, QueryPlan
from dagster_streamtables.errors import DamagedTable, FailedQuery, RejectedQuery, RunawayRecursion
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.compute.result_before import ResultInTable
from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.delta.actions import moment
from dagster_streamtables.runtime.delta.data_files import sum_rows
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import Capture, SourceChange, change_between
from dagster_streamtables.runtime.errors.environment_errors import TooLarge
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.errors.table_errors import LostHistory
from dagster_streamtables.runtime.model.costs import Choice
from dagster_streamtables.runtime.model.refresh_report import (
    Action,
    FullReason,
    Refresh,
    Stopwatch,
    Window,
)
from dagster_streamtables.runtime.model.stream_table import Mode, OnManualWrite, OnSchemaChange
from dagster_streamtables.runtime.model.table_catalog import Source
from dagster_streamtables.runtime.model.table_state import SourceState, StreamTableState
from dagster_streamtables.runtime.refresh import refresh_decisions
from dagster_streamtables.runtime.refresh.completion import (
    advance,
    by_time,
    commit_change,
    extent,
    preview_of,
)
from dagster_streamtables.runtime.refresh.full_refresh import recompute, why_rebuild
from dagster_streamtables.runtime.refresh.intermediate_tables import (
    Intermediates,
    UnstorableIntermediate,
    refresh_intermediates,
    with_lenient_table,
)
from dagster_streamtables.runtime.refresh.refresh_decisions import Decision, rebuild
from dagster_streamtables.runtime.refresh.refresh_job import Job
from dagster_streamtables.runtime.storage.commit_target import MissingRow

# A frontier that stays behind costs reading a few commits; an occasional commit keeps the window
# within what a source retains.
_ADVANCE_AFTER = 10
_ITSELF = "the stream table itself"


def run(job: Job, inputs: Inputs, clock: Stopwatch) -> Refresh:
    """Bring the table up to the newest versions of its sources.

    Raises:
        ConflictingCommit: Another refresh of the table committed first; nothing was written.
        FailedQuery: The query itself fails on the rows of its sources; nothing was written.
    """
    with clock.phase("log"):
        decision, changes = _decide(job)
    if decision.action is not Action.SKIP and not job.has_checked_columns:
        with clock.phase("compute"), translate_errors():
            wrong = why_rebuild(job, inputs)
        decision = decision if wrong is None else rebuild(wrong)
    report = _report(job, decision, changes, clock)
    if decision.action is Action.SKIP:
        return replace(report, seconds=clock.seconds, phases=clock.phases)
    if decision.action is Action.NO_DATA and job.stored is not None:
        return _keep(job, job.stored.log, inputs, clock, report, changes)
    if decision.action is Action.DIFFERENTIAL and job.plan is not None:
        try:
            done = _attempt(job, job.plan, inputs, clock, report, changes)
        except UnstorableIntermediate as error:
            # Nobody could allow it: a full refresh does not find out what cannot be stored.
            job = with_lenient_table(job).without_intermediates(job.plan)
            reason = f"no intermediate tables from now on: {error}"
            done = replace(rebuild(reason), fallback=reason)
        if isinstance(done, Refresh):
            return done
        report = replace(report, action=done.action, reason=done.reason, fallback=done.fallback,
                         full_reason=done.full_reason)  # fmt: skip
    found = _recompute(replace(job, intermediates={}), inputs, clock, report)
    if found.fallback:
        logger.warning("%s: %s; the query was run in full", job.table.name, found.fallback)
    return found


def _attempt(
    job: Job,
    plan: Plan,
    inputs: Inputs,
    clock: Stopwatch,
    report: Refresh,
    changes: Mapping[str, SourceChange],
) -> Refresh | Decision:
    """A differential refresh, or the decision if it is impossible."""
    try:
        with translate_errors():
            return _differentiate(job, plan, inputs, clock, report, changes)
    except LostHistory as error:
        reason = f"{_owner(job, error)} no longer has all files of the window"
        return rebuild(reason, FullReason.HISTORY)
    except TooLarge as error:
        return _fall_back(f"a key of the change matches too many rows: {error.why}")
    except RunawayRecursion as error:
        # If a subtree moves below itself, the change has a cycle that the query does not have.
        return _fall_back(f"the change does not end: {error.what}")
    except FailedQuery as error:
        if inputs.compile():
            return _attempt(job, plan, inputs, clock, report, changes)
        # A change may evaluate an expression on a row that no reader could ever see.
        # If the query itself also fails, its own error is reported.
        return _fall_back(f"the change could not be computed: {error.why}")
    except RejectedQuery as error:
        # The query may run although its change does not: Spark cannot plan some queries.
        return _fall_back(f"Spark could not run the change: {error.why}")


def _fall_back(reason: str) -> Decision:
    return Decision(Action.FULL, reason, fallback=reason, full_reason=FullReason.FAILURE)


def _recompute(job: Job, inputs: Inputs, clock: Stopwatch, report: Refresh) -> Refresh:
    try:
        with translate_errors(inputs.relations.place_of):
            return recompute(job, inputs, clock, report)
    except FailedQuery:
        if not inputs.compile():
            raise
        return _recompute(job, inputs, clock, report)
    except LostHistory as error:
        if job.keeps_times and job.table.changed_at and _owner(job, error) == _ITSELF:
            return _recompute(replace(job, keeps_times=False), inputs, clock, report)
        raise DamagedTable(
            f"{_owner(job, error)} names a file that is not there, or cannot be read",
            why=first_line(str(error)),
            fix="restore the file, or repair the source (FSCK REPAIR TABLE, RESTORE)",
        ) from error


def _owner(job: Job, error: Exception) -> str:
    """The source whose location an error names, or the stream table itself."""
    places = {f'"{name}"': source.log.location for name, source in job.sources.items()}
    places[_ITSELF] = job.location
    return next((name for name, place in places.items() if f"{place}/" in str(error)), "a table")


def _decide(job: Job) -> tuple[Decision, dict[str, SourceChange]]:
    if job.blocked:
        return Decision(Action.SKIP, job.waiting or ""), {}
    table = job.table
    if table.on_schema_change is OnSchemaChange.FAIL and not job.full:
        refresh_decisions.require_columns(job)
    if table.on_manual_write is OnManualWrite.REFUSE and not job.full:
        refresh_decisions.require_no_manual_write(job)
    base = refresh_decisions.foundation(job)
    if isinstance(base, Decision):
        return base, {}
    state = base.state
    changes = {
        name: refresh_decisions.apply_cdc_mode(
            name, _change(source, state.sources[name]), table.cdc_mode
        )
        for name, source in job.sources.items()
    }
    measured = table.mode is Mode.AUTO and table.learns and not table.is_differential_only
    choice = _choice(job, state, changes) if measured else None
    decision = refresh_decisions.choose(job, changes, choice)
    if job.later and decision.reason == refresh_decisions.NOTHING_NEW:
        decision = replace(decision, reason=f"no source had a new version at {job.later}")
    if job.plan is not None and not job.fits:  # the rows are right, but cannot be updated
        ruled = isinstance(job.plan, QueryPlan) and bool(job.plan.newer_rules)
        nothing = decision.action is Action.NO_DATA
        if decision.action is Action.DIFFERENTIAL or (nothing and ruled):
            reason = "another mode, an older version or other columns: it must be stored anew once"
            decision = rebuild(f"{decision.reason}; {reason}")
    if job.waiting and decision.action is Action.NO_DATA:
        decision = Decision(Action.SKIP, job.waiting)
    elif job.waiting:
        decision = replace(decision, reason=f"{decision.reason}; {job.waiting}")
    return decision, changes


def _choice(
    job: Job, state: StreamTableState, changes: Mapping[str, SourceChange]
) -> Choice | None:
    """The cheaper way, by the measured refreshes of the table."""
    changed = sum_rows(change.rows for change in changes.values())
    rows = sum_rows(source.log.row_count for source in job.sources.values())
    if changed is None or rows is None:
        return None
    return job.costs.choice(changed, rows, state.sequence + 1)


def _change(source: Source, seen: SourceState) -> SourceChange:
    return replace(change_between(source.log, seen.version), held=seen.rows)


def _keep(
    job: Job,
    log: TableLog,
    inputs: Inputs,
    clock: Stopwatch,
    report: Refresh,
    changes: Mapping[str, SourceChange],
) -> Refresh:
    behind = max((change.after - change.before for change in changes.values()), default=0)
    if behind <= _ADVANCE_AFTER and job.has_checked_columns and not job.renewed:
        return replace(report, seconds=clock.seconds, phases=clock.phases)
    return advance(job, log, inputs, clock, report)


def _differentiate(
    job: Job,
    plan: Plan,
    inputs: Inputs,
    clock: Stopwatch,
    report: Refresh,
    changes: Mapping[str, SourceChange],
) -> Refresh:
    stored, between = job.last_refresh, Intermediates()
    assert stored is not None, "only a table that can be updated has a change"
    if plan.intermediates:
        with clock.phase("intermediate"):
            between = refresh_intermediates(job, plan, stored.state.frontier, inputs, run)
    job = replace(job, intermediates=between.states)
    with clock.phase("capture"):
        read = {**job.sources, **between.sources}
        captured = differential.capture(plan, read, {**changes, **between.changes}, inputs)
    own = {name: window for name, window in captured.windows.items() if name in job.sources}
    windows = {**report.windows, **own}
    report = replace(report, windows=windows, intermediates=between.refreshes)
    if not captured.moved and not plan.is_time_dependent:
        reason = f"{report.reason}, none of them in a column that the query uses"
        same = replace(report, action=Action.NO_DATA, reason=reason)
        return advance(job, stored.log, inputs, clock, same)
    with clock.phase("compute"):
        computed = differential.change(plan, ResultInTable(stored), captured, inputs)
    if computed.broken:
        reason = "the stored groups have fewer rows than their sources lost"
        return recompute(job, inputs, clock, _without_rows(report, reason))
    if computed.empty:
        reason = f"{report.reason}, the result is the same"
        same = replace(report, action=Action.NO_DATA, reason=reason)
        if not any(change.has_changes for change in changes.values()):
            return _keep(job, stored.log, inputs, clock, same, changes)
        return advance(job, stored.log, inputs, clock, same)
    if plan.time_columns:
        reason = f"{report.reason}; {by_time(plan, stored.log, computed.local)}"
        report = replace(report, reason=reason)
    report = replace(report, preview=preview_of(computed.local, inputs.preview))
    try:
        return commit_change(job, stored.log, computed, inputs, clock, report)
    except MissingRow:
        # The last digits of a sum of floats below another operator vary.
        reason = "a deleted row is not in the table"
        return recompute(job, inputs, clock, _without_rows(report, reason))


def _without_rows(report: Refresh, reason: str) -> Refresh:
    full_reason = FullReason.STORED_ROWS
    return replace(report, action=Action.REINITIALIZE, reason=reason, full_reason=full_reason)


def _report(
    job: Job, decision: Decision, changes: Mapping[str, SourceChange], clock: Stopwatch
) -> Refresh:
    stored = job.stored
    heads = {} if stored is None else {job.table.name: stored.log.head}
    return Refresh(
        table=job.table.name,
        action=decision.action,
        reason=decision.reason,
        version=stored.log.version if stored is not None else -1,
        data_version=stored.state.data_version if stored is not None and stored.state else "",
        windows=_windows(job, decision, changes),
        **(extent(stored.log) if stored is not None else {}),
        started=clock.started,
        data_timestamp=moment(job.data_timestamp),
        forecast=decision.forecast,
        full_reason=_full_reason(job, decision),
        read=job.data_versions,
        seen=heads | {name: source.log.head for name, source in job.sources.items()},
    )


def _full_reason(job: Job, decision: Decision) -> FullReason | None:
    """That of the decision, unless the query would have been run over all rows anyway."""
    if decision.full_reason in (None, FullReason.FIRST):
        return decision.full_reason
    if job.full:
        return FullReason.REQUESTED
    return FullReason.MODE if job.table.mode is Mode.FULL else decision.full_reason


def _windows(
    job: Job, decision: Decision, changes: Mapping[str, SourceChange]
) -> dict[str, Window]:
    rebuilt = decision.action in (Action.REINITIALIZE, Action.FULL)
    windows: dict[str, Window] = {}
    for name, source in job.sources.items():
        change = changes.get(name)
        before = change.before if change else None
        rows = source.log.row_count
        if rebuilt or change is None:
            windows[name] = Window(before, source.log.version, Capture.ALL, rows, rows)
        else:
            windows[name] = Window(before, change.after, change.capture, change.rows, rows)
    return windows
