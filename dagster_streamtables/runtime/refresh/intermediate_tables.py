"""Refresh the intermediate tables of a stream table together with it.

They are in the folder of the table, where no other reader looks, and are deleted with it. A
differential refresh first refreshes each of them to the source versions that it reads; then they
are ordinary sources, whose window is from the version in the table's frontier to the newest.

A full refresh ignores them, and its frontier names none. The next differential refresh first brings
them to that frontier, which also creates them. A refresh that is killed between their commits and
the table's leaves them ahead of it, at versions that nothing reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dagster_streamtables.compiler import Plan
from dagster_streamtables.errors import (
    DamagedTable,
    FailedQuery,
    InvalidDefinition,
    RejectedQuery,
)
from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.source_change import SourceChange, change_between
from dagster_streamtables.runtime.errors.error_translation import translate_errors
from dagster_streamtables.runtime.errors.table_errors import LostHistory, lost_version
from dagster_streamtables.runtime.model.definition import used_columns
from dagster_streamtables.runtime.model.refresh_report import Refresh, Stopwatch
from dagster_streamtables.runtime.model.refresh_work import by_text
from dagster_streamtables.runtime.model.stream_table import OnFull
from dagster_streamtables.runtime.model.table_catalog import Source
from dagster_streamtables.runtime.model.table_state import IntermediateState
from dagster_streamtables.runtime.refresh.refresh_job import Job

FOLDER = "_intermediate"
"""In the folder of a stream table; Delta ignores names that begin with an underscore."""

Run = Callable[[Job, Inputs, Stopwatch], Refresh]


class UnstorableIntermediate(Exception):
    """An intermediate table cannot be computed, or not stored as a Delta table."""


@dataclass
class Intermediates:
    """The intermediate tables of one refresh."""

    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    """The tables after the change of the sources."""
    changes: dict[str, SourceChange] = field(default_factory=dict[str, SourceChange])
    refreshes: dict[str, Refresh] = field(default_factory=dict[str, Refresh])
    """The refresh of each; if it had to be brought to the frontier first, that refresh."""
    before: dict[str, TableLog] = field(default_factory=dict[str, TableLog])
    """The tables before the change: with the sources at the frontier."""

    @property
    def states(self) -> dict[str, IntermediateState]:
        logs = ((name, source.log) for name, source in self.sources.items())
        return {name: IntermediateState(log.id, log.version, log.commit) for name, log in logs}


def refresh_intermediates(
    job: Job, whole: Plan, frontier: Mapping[str, int], inputs: Inputs, run: Run
) -> Intermediates:
    """Bring the intermediate tables of the plan `whole` to the source versions of a job.

    `frontier` has the source versions in the stored state of the stream table.

    Raises:
        UnstorableIntermediate: One cannot be stored; the stream table must do without any.
        LostHistory: A source no longer has the version in the frontier.
    """
    done = Intermediates()
    now = {name: source.log for name, source in job.sources.items()}
    then: dict[str, TableLog] = {}
    for plan in whole.intermediates:
        before, made = _table_at_frontier(job, plan, inputs), None
        if before is None:
            then = then or _at_frontier(job, frontier)
            before, made = _build_at_frontier(job, plan, {**then, **done.before}, inputs, run)
        done.before[plan.name] = before
        now[plan.name], last = _refresh_table(job, plan, now, inputs, run)
        done.refreshes[plan.name] = made or last
        log = now[plan.name]
        done.sources[plan.name] = Source(plan.name, log, used_columns(whole, plan.name, log))
        done.changes[plan.name] = change_between(log, before.version)
    return done


def _table_at_frontier(job: Job, plan: Plan, inputs: Inputs) -> TableLog | None:
    """The table at the frontier of the stream table; None if there is no such version."""
    kept = job.intermediates.get(plan.name)
    stored = inputs.stored(location_of(job.location, plan.name)) if kept is not None else None
    if kept is None or stored is None or not stored.log.has(kept.snapshot(stored.log.location)):
        return None
    return stored.log.at(kept.version)


def _at_frontier(job: Job, frontier: Mapping[str, int]) -> dict[str, TableLog]:
    found: dict[str, TableLog] = {}
    for name, version in frontier.items():
        log = job.sources[name].log.at(version)
        if log is None:
            raise lost_version(job.sources[name].log.location, version)
        found[name] = log
    return found


def _build_at_frontier(
    job: Job, plan: Plan, logs: Mapping[str, TableLog], inputs: Inputs, run: Run
) -> tuple[TableLog, Refresh]:
    """The table as it would be at the frontier.

    Raises:
        LostHistory: A source no longer has files of that version, which does not damage it.
    """
    try:
        return _refresh_table(job, plan, logs, inputs, run)
    except DamagedTable as error:
        if isinstance(error.__cause__, LostHistory):
            raise error.__cause__ from error
        raise


def with_lenient_table(job: Job) -> Job:
    """The same job, which warns of a refresh in full that its table refuses."""
    if job.table.on_full is not OnFull.REFUSE:
        return job
    return replace(job, table=replace(job.table, on_full=OnFull.WARN))


def _refresh_table(
    job: Job, plan: Plan, logs: Mapping[str, TableLog], inputs: Inputs, run: Run
) -> tuple[TableLog, Refresh]:
    """The table, refreshed to some versions of its sources."""
    location = location_of(job.location, plan.name)
    read = {name: logs[name] for name in plan.reads}
    used = {name: used_columns(plan, name, log) for name, log in read.items()}
    job = with_lenient_table(job)  # a full refresh of the table would not rebuild this one
    own = replace(
        job,
        table=replace(job.table, name=plan.name, changed_at=""),
        fingerprint=by_text(None, plan, job.table.session_timezone),
        plan=plan,
        refusal=None,
        location=location,
        stored=inputs.stored(location),
        sources={name: Source(name, log, used[name]) for name, log in read.items()},
        waiting=None,
        intermediates={},
        whole="",
        refused={},
    )
    try:
        with translate_errors():
            report = run(own, inputs, Stopwatch())
    except (FailedQuery, InvalidDefinition) as error:
        raised = isinstance(error, FailedQuery | RejectedQuery)
        raise UnstorableIntermediate(error.why if raised else error.what) from error
    stored = inputs.stored(location)
    log = None if stored is None else stored.log.at(report.version)
    if log is None:
        raise lost_version(location, report.version)
    if not set(plan.stored_columns) <= set(log.columns):
        raise UnstorableIntermediate("a column of it has a type that Delta does not store")
    return log, report


def location_of(table: str, name: str) -> str:
    """The location of an intermediate table, from that of its stream table.

    >>> location_of("/lake/sales/revenue", "__st_1a2b")
    '/lake/sales/revenue/_intermediate/1a2b'
    """
    return f"{table}/{FOLDER}/{name.removeprefix('__st_')}"
