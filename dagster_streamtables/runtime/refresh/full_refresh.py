"""A refresh that runs the whole query over all rows of its sources.

A table that an older version stored may need one (`why_rebuild`). Older versions stored columns of
``t.*`` over a join by names by place, under names in another order than Spark's. And changes of a
table that USING or NATURAL joins to the result of a RIGHT or FULL JOIN by names reached only some
rows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dagster_streamtables.amounts import count, duration
from dagster_streamtables.compiler import QueryPlan
from dagster_streamtables.errors import RefusedFullRefresh
from dagster_streamtables.log import logger
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.compute.column_types import (
    are_of_arrow,
    maintenance_problem,
    names_problem,
    require_names,
    require_storable,
    spark_types,
)
from dagster_streamtables.runtime.compute.differential import fetch_rows
from dagster_streamtables.runtime.compute.result_before import difference
from dagster_streamtables.runtime.compute.spark_engine import Inputs
from dagster_streamtables.runtime.compute.spark_relations import OutputRows
from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.delta.data_files import sum_rows
from dagster_streamtables.runtime.model.definition import require_unused_name, visible_names
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh, Stopwatch
from dagster_streamtables.runtime.model.stream_table import OnFull
from dagster_streamtables.runtime.model.table_state import TableWithState
from dagster_streamtables.runtime.refresh.completion import (
    advance,
    commit_change,
    commit_once,
    effort,
    finish,
    refresh_record,
)
from dagster_streamtables.runtime.refresh.refresh_job import Job
from dagster_streamtables.runtime.storage import upkeep, writer
from dagster_streamtables.runtime.storage.commit_target import CommitResult, MissingRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def recompute(job: Job, inputs: Inputs, clock: Stopwatch, report: Refresh) -> Refresh:
    """Store the result of the whole query.

    Raises:
        RefusedFullRefresh: The table refuses it, and nobody requested it.
    """
    _require_permission(job, report)
    old = job.stored.log if job.stored is not None else None
    with clock.phase("compute"):
        job, report, rows, fits = _query_result(job, inputs, report)
        fits = fits and job.expected_rows <= _limit(inputs)
        local = fetch_rows(rows, inputs) if fits else None
    last = job.last_refresh
    if local is not None and last is not None and report.action is Action.FULL and job.fits:
        corrected = _correct(job, last, inputs, clock, report, local)
        if corrected is not None:
            return corrected
    so_far = refresh_record(job, report, clock)
    target = job.target(so_far, changed=True, replaces=True, effort=effort(report, clock))

    def write() -> CommitResult:
        stored = OutputRows(local, lambda: rows)
        if old is None:
            return writer.write(target, stored, inputs)
        return writer.replace(old, target, stored, inputs)

    with clock.phase("commit"):
        written, log = commit_once(inputs, target, write)
        upkeep.keep_files_small(log)
    written = replace(written, inserted=log.row_count or 0, deleted=0)
    return finish(report, log, target, written, clock)


def _require_permission(job: Job, report: Refresh) -> None:
    assert report.full_reason is not None, "each decision to recompute has a reason"
    on_full = job.table.on_full
    if report.full_reason.is_deliberate:
        return
    if on_full is OnFull.WARN:
        logger.warning("%s: the query is run in full: %s", job.table.name, report.reason)
    if on_full is not OnFull.REFUSE:
        return
    rows = sum_rows(source.log.row_count for source in job.sources.values())
    reads = "all rows" if rows is None else count(rows, "row")
    took = f"; the last one took {duration(job.costs.full[-1].seconds)}" if job.costs.full else ""
    raise RefusedFullRefresh(
        f"the refresh would run the whole query ({report.full_reason})",
        why=f"{report.reason}. It would read {reads}{took}",
        fix=f"`streamtables refresh {job.table.name} --full` runs it once; with on_full: warn, "
        "refreshes run it from now on; the table is unchanged",
    )


def _query_result(
    job: Job, inputs: Inputs, report: Refresh
) -> tuple[Job, Refresh, DataFrame, bool]:
    """The rows of the query, and whether they may come to this process; for a new table, after
    checking that it can be stored. In mode AUTO, the check may change the job and the report.

    Raises:
        InvalidDefinition: A column has a type that cannot be stored or, if the mode requires
            changes, cannot be compared, or another name than the plan gives it; or the query
            returns the column `changed_at`.
    """
    rows = differential.full(job.plan, job.text, job.sources, inputs)
    require_unused_name(job.table.changed_at, rows.columns)
    refusal = names_problem(rows.columns, job.plan.stored_columns) if job.plan is not None else None
    if report.action is not Action.REINITIALIZE and (job.plan is None or job.fits):
        if refusal is not None:
            raise refusal
        return job, report, rows, True
    types = spark_types(rows)
    if job.plan is not None:
        refusal = refusal or maintenance_problem(types, job.key or ())
    if refusal is not None and job.table.is_differential_only:
        raise refusal
    if refusal is not None:
        job = job.in_full(refusal.what)
        report = replace(report, reason=f"{report.reason}; the mode is AUTO, and {refusal.what}")
        rows = differential.full(None, job.text, job.sources, inputs)
        types = spark_types(rows)
    require_names(types)
    require_storable(types)
    return job, report, rows, are_of_arrow(types)


def _correct(
    job: Job,
    last: TableWithState,
    inputs: Inputs,
    clock: Stopwatch,
    report: Refresh,
    rows: pa.Table,
) -> Refresh | None:
    """Store only the difference between the result and the table; None if that is not cheaper."""
    log, columns = last.log, last.query_columns
    if not writer.changes_cheaply(log):
        return None
    with clock.phase("compute"):
        change = difference(log, rows, job.key, columns=columns, limit=_limit(inputs))
    if change is None or change.num_rows > rows.num_rows // 2:
        # Rewriting all of them costs less.
        return None
    if not change.num_rows:
        same = replace(report, reason=f"{report.reason}, the result is the same")
        if job.reflects_all and job.has_checked_columns and not job.full:
            # Time passed and the rows are unchanged: the table keeps its time.
            return replace(same, seconds=clock.seconds, phases=clock.phases)
        return advance(job, log, inputs, clock, same)
    changed = OutputRows(change, lambda: inputs.relations.to_spark(change))
    with suppress(MissingRow):
        return commit_change(job, log, changed, inputs, clock, report)
    return None


def _limit(inputs: Inputs) -> int:
    """Number of rows of a result that are compared with the stored ones."""
    return min(inputs.limit, 100_000)


def why_rebuild(job: Job, inputs: Inputs) -> str | None:
    """Why a stored table that was never compared with its query is rebuilt; None if it is right.

    Raises:
        RejectedQuery: Spark does not run the query.
    """
    if job.plan is None or job.stored is None:
        return None  # each refresh in full stores what Spark returns, under Spark's names
    found = differential.full(job.plan, job.text, job.sources, inputs).columns
    names, stored = visible_names(found), visible_names(job.stored.log.columns)
    if names != stored:
        return (
            "an older version may have stored values under the wrong names: the columns are "
            f"{', '.join(stored)}, and those of the query {', '.join(names)}"
        )
    if isinstance(job.plan, QueryPlan) and _joins_outer_by_name(job.plan.text.tree):
        return "an older version did not follow all changes of RIGHT and FULL joins by names"
    return None


def _joins_outer_by_name(tree: exp.Expr) -> bool:
    return any(
        join.side in ("RIGHT", "FULL") and (join.args.get("using") or join.method == "NATURAL")
        for join in tree.find_all(exp.Join)
    )
