"""One refresh, of a stream table or of a replication, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from dagster_streamtables.replication.lifecycle.errors import in_a_line
from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh
from dagster_streamtables.runtime.model.report import Refresh
from dagster_streamtables.worker.backlog import Task
from dagster_streamtables.worker.driven import Reports, Workload
from dagster_streamtables.worker.memory import RefreshMemory

_WAIT = 10.0
"""Seconds for another process that refreshes the same replication."""


@dataclass(frozen=True)
class TaskResult:
    """What came of one task."""

    task: Task
    definition: str | None
    """The definition that it refreshed."""
    timed: bool
    """Whether its query uses the current time."""
    until: dict[str, datetime]
    """Until when it read the sources that it shares with other tables."""
    came: Refresh | ReplicationRefresh | Exception
    began: datetime

    def remember(self, known: RefreshMemory, now: datetime, *, current: bool) -> None:
        """Take it into what is remembered; nothing that failed."""
        if isinstance(self.came, Refresh):
            as_of = min([self.came.started or self.began, *self.until.values()])
            known.note_refresh(self.came, as_of, now, timed=self.timed)
        else:
            known.note_replication(self.began, now, current=current)
            if isinstance(self.came, ReplicationRefresh):
                known.error = "; ".join(map(in_a_line, self.came.stopped.values()))

    def report(self, reports: Reports) -> None:
        """Tell it; nothing that failed."""
        if isinstance(self.came, Refresh):
            reports.report_refresh(self.came, self.until)
        elif isinstance(self.came, ReplicationRefresh):
            reports.report_replication(self.task.name, self.came, self.began)


def run_task(task: Task, driven: Workload) -> TaskResult:
    """Refresh what a task names. Raises nothing."""
    began, until = datetime.now(UTC), _until(task, driven)
    examined = driven.nodes.tables.get(task.name)
    try:
        came = _refresh(task, driven, until)
    except Exception as error:
        came = error
    timed = examined is not None and examined.is_time_dependent
    return TaskResult(task, driven.nodes.definition(task.name), timed, until, came, began)


def _refresh(
    task: Task, driven: Workload, until: dict[str, datetime]
) -> Refresh | ReplicationRefresh:
    lake = driven.lake()
    node = driven.nodes.replications.get(task.name)
    if node is None:
        return lake.refresh(driven.nodes.tables[task.name].table, until=until or None)
    from dagster_streamtables.replication.lifecycle.replications import Replications

    known = node.replication.name if driven.registered else node.replication
    return Replications(lake).refresh(known, wait=_WAIT, strict=False).require_some()


def _until(task: Task, driven: Workload) -> dict[str, datetime]:
    """Until when its refresh reads the sources that it shares with other tables: the time of the
    decision or, where a replication of the same decision wrote them, the time when that ended."""
    examined = driven.nodes.tables.get(task.name)
    shared = [] if examined is None else [s for s in examined.sources if s in driven.nodes.shared]
    return {each: task.ended.get(driven.nodes.writers.get(each, ""), task.began) for each in shared}
