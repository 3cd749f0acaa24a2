"""The process that executes a run, named by a tag of the run, so that a killed run can be ended.

A code server tells Dagster when a process of its runs dies. If it is killed too, with `dagster dev`
or with the machine, such a run stays "started" for ever, and holds its tables and its pools:
Dagster's default launcher cannot be asked for it, with `run_monitoring` either.
"""

from __future__ import annotations

import logging
import os

import dagster as dg
from dagster import DagsterRun, DagsterRunStatus, RunsFilter

from dagster_streamtables.runtime.observe import processes

PROCESS_TAG = ".dagster/streamtables_process"
"""Tag of a run, which Dagster's pages hide for its prefix: the process that executes it and its
parent, or the one that requested it."""
_BEGUN = (DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING)
logger = logging.getLogger(__name__)


def requesting_process() -> dict[str, str]:
    """The tag of a run that this code server requests, until a process executes it."""
    return {PROCESS_TAG: processes.describe_processes(os.getpid())}


def name_process(context: dg.AssetExecutionContext) -> None:
    """Tag the run with this process and its parent: the process of a step is a child of the run's.

    The parent of the run's own is its code server, which ends the run itself while it lives.
    """
    name = processes.describe_processes(os.getpid(), os.getppid())
    context.instance.add_run_tags(context.run.run_id, {PROCESS_TAG: name})


def end_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark as failed the runs whose process was on this machine and is gone."""
    for run in instance.get_runs(RunsFilter(statuses=list(_BEGUN))):
        if not _is_dead(run):
            continue
        now = instance.get_run_by_id(run.run_id)
        if now is not None and now.status in _BEGUN and _is_dead(now):
            message = f"The process of the run is gone: {now.tags[PROCESS_TAG]}."
            logger.warning("run %s: %s", run.run_id, message)
            instance.report_run_failed(now, message)


def _is_dead(run: DagsterRun) -> bool:
    return processes.are_dead(run.tags.get(PROCESS_TAG, ""))
