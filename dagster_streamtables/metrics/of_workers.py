"""The samples of workers, from their last heartbeats."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TypeAlias

from dagster_streamtables.log import logger
from dagster_streamtables.runtime.observe.heartbeat import Heartbeat
from dagster_streamtables.runtime.observe.monitor import Monitor

Sample: TypeAlias = tuple[str, tuple[str, ...], float | None]
_COUNTS = {
    "refreshes": "worker_refreshes",
    "failures": "worker_failures",
    "waiting": "worker_waiting",
}


def samples_of_workers(monitor: Monitor) -> Iterator[Sample]:
    """Nothing where none has ever run."""
    try:
        found = monitor.workers()
    except Exception as error:
        logger.warning("the heartbeats of workers cannot be read: %s", error)
        yield "workers_unreadable", (), 1
        return
    yield "workers_unreadable", (), 0
    for name, said in found.items():
        yield from _of_worker((name,), said)


def _of_worker(name: tuple[str], said: Heartbeat) -> Iterator[Sample]:
    now, about = datetime.now(UTC), said.about
    yield "worker_alive", name, said.seems_alive(now)
    yield "worker_last_heartbeat_timestamp_seconds", name, now.timestamp() - said.age(now)
    yield "worker_nodes", name, len(said.tables)
    yield "worker_running", name, len(about.get("running", ()))
    for key, family in _COUNTS.items():
        yield family, name, about.get(key)
    yield "worker_reports_late", name, bool(about.get("not_reported"))
    yield "worker_definitions_unreadable", name, bool(about.get("not_loaded"))
