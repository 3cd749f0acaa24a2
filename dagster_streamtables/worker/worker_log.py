"""`WorkerLog`: what a worker writes about itself, in its log and in its heartbeats."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dagster_streamtables.amounts import count
from dagster_streamtables.errors import StreamTablesError, one_line
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.replication_report import ReplicationRefresh
from dagster_streamtables.runtime.errors.error_messages import first_line
from dagster_streamtables.runtime.model.refresh_report import Action, Refresh
from dagster_streamtables.runtime.observe.lease import Heartbeat
from dagster_streamtables.worker.backlog import Backlog, Task
from dagster_streamtables.worker.workload import RefreshMemory, Workload

_FIELDS = "streamtables"


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: Mapping[str, Any] = getattr(record, _FIELDS, {})
        about = {"at": at, "level": record.levelname, "message": record.getMessage()}
        return json.dumps({**about, **fields}, default=str, ensure_ascii=False)


class WorkerLog:
    """Logs each change once: a state that lasts is not repeated."""

    def __init__(self) -> None:
        self.refreshes = self.failures = 0
        self.trouble_now = self._by = ""
        """Why nothing can be refreshed; empty if all goes well."""
        self._why: dict[str, str] = {}
        self._stopped: dict[str, str] = {}
        """By target of a replication, why it is in trouble."""

    def log_refresh(self, refresh: Refresh | ReplicationRefresh, task: Task, now: datetime) -> None:
        self.refreshes += 1
        if isinstance(refresh, ReplicationRefresh):
            self._log_replication(refresh, task)
            return
        idle = refresh.action in (Action.NO_DATA, Action.SKIP)
        fresh = refresh.data_timestamp
        late = None if fresh is None or idle else (now - fresh).total_seconds()
        said = f"{refresh.table}: {refresh.action}, +{refresh.inserted} -{refresh.deleted} rows"
        _log(
            "refreshed", f"{said} in {refresh.seconds:.2f} s",
            logging.DEBUG if idle else logging.INFO,
            table=refresh.table, action=str(refresh.action), reason=refresh.reason,
            version=refresh.version, rows_in=refresh.rows_in, inserted=refresh.inserted,
            deleted=refresh.deleted, seconds=refresh.seconds,
            waited=_between(task.began, task.running), staleness=late,
        )  # fmt: skip

    def _log_replication(self, refresh: ReplicationRefresh, task: Task) -> None:
        for target, error in refresh.stopped.items():
            if self._stopped.get(target) != str(error):
                _log(
                    "stopped", f"{refresh.name}: {_error_text(error)}", logging.ERROR,
                    replication=refresh.name, table=target, error=str(error),
                )  # fmt: skip
        self._stopped = {
            **{t: e for t, e in self._stopped.items() if t not in refresh.tables},
            **{target: str(error) for target, error in refresh.stopped.items()},
        }
        idle = refresh.action == "NO_DATA"
        tables = refresh.tables.values()
        _log(
            "replicated", f"{refresh} in {refresh.seconds:.2f} s",
            logging.DEBUG if idle else logging.INFO,
            replication=refresh.name, action=refresh.action,
            copied=sum(each.copied or 0 for each in tables),
            inserted=sum(each.inserted for each in tables),
            updated=sum(each.updated for each in tables),
            deleted=sum(each.deleted for each in tables),
            seconds=refresh.seconds, waited=_between(task.began, task.running),
        )  # fmt: skip

    def log_failure(
        self, task: Task, error: Exception, known: RefreshMemory, lost: Sequence[str]
    ) -> None:
        self.failures += 1
        waiting = f"; not refreshed either: {', '.join(lost)}" if lost else ""
        _log(
            "failed", f"{task.name}: {_error_text(error)}{waiting}", logging.ERROR,
            table=task.name, error=known.error, failures=known.failures,
            again_at=known.again_at, not_refreshed=list(lost),
        )  # fmt: skip

    def holds(self, held: Mapping[str, str]) -> None:
        """Tables that are due and not refreshed."""
        for name, why in held.items():
            kind = why.partition(" at ")[0]  # the time of a retry is no news
            if self._why.get(name) != kind:
                _log("held", f"{name} is due, but not refreshed: {why}", table=name, why=why)
        self._why = {name: why.partition(" at ")[0] for name, why in held.items()}

    def works(self, driven: Workload) -> None:
        """This worker refreshes now."""
        self._by = ""
        said = f"refreshing {_count_nodes(driven)} below {driven.logs.root}"
        _log("works", said, tables=list(driven.nodes.names))

    def stands_by(self, holder: Heartbeat | None, driven: Workload) -> None:
        """Another worker refreshes."""
        if holder is None or holder.lease.id == self._by:
            return
        self._by = holder.lease.id
        said = f"the worker {holder.place} refreshes these tables; this one stands by"
        _log("stands by", said, worker=holder.place)
        if holder.definitions != driven.nodes.fingerprint:
            logger.warning(
                "the worker %s has other definitions of these tables than this one", holder.place
            )

    def log_reload(self, driven: Workload) -> None:
        said = f"the definitions changed: {_count_nodes(driven)}"
        _log("reloaded", said, tables=list(driven.nodes.names))

    def stops(self, backlog: Backlog) -> None:
        names = [task.name for task in backlog.running]
        waiting = f"; waiting for {', '.join(names)}" if names else ""
        _log("stops", f"stopping{waiting}", running=names)

    def trouble(self, error: Exception) -> None:
        """A turn of the loop failed."""
        said = _error_text(error)
        if said != self.trouble_now:
            _log("trouble", f"nothing can be refreshed: {said}", logging.ERROR)
            logger.debug("%s", "".join(traceback.format_exception(error)))
        self.trouble_now = said

    def fine(self) -> None:
        if self.trouble_now:
            _log("fine", "refreshes go on")
        self.trouble_now = ""

    def numbers(
        self, backlog: Backlog, driven: Workload, memory: Mapping[str, RefreshMemory]
    ) -> dict[str, Any]:
        """The part of a heartbeat that is for people; other threads may call it."""
        errors = {name: known.error for name, known in [*memory.items()] if known.error}
        tasks = [*backlog.tasks.values()]
        running = [task.name for task in tasks if task.running is not None]
        return {
            "refreshes": self.refreshes,
            "failures": self.failures,
            "running": running,
            "waiting": len(tasks) - len(running),
            "errors": errors,
            "broken": [each.name for each in driven.nodes.broken],
            "not_reported": driven.reports.late,
        }


def _log(event: str, message: str, level: int = logging.INFO, **about: Any) -> None:
    logger.log(level, "%s", message, extra={_FIELDS: {"event": event, **about}})


def _error_text(error: Exception) -> str:
    if isinstance(error, StreamTablesError):
        return str(error)
    return f"{type(error).__name__}: {one_line(first_line(str(error)))}"


def _between(one: datetime, other: datetime | None) -> float | None:
    return None if other is None else (other - one).total_seconds()


def _count_nodes(driven: Workload) -> str:
    replications = len(driven.nodes.replications)
    more = f" and {count(replications, 'replication')}" if replications else ""
    return f"{count(len(driven.nodes.tables), 'table')}{more}"
