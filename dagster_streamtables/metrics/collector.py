"""`StreamTablesCollector`: collects all metrics at each scrape, as `FAMILIES` declares them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from threading import Thread
from typing import Any, TypeAlias, TypeVar
from wsgiref.simple_server import WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, generate_latest, make_wsgi_app, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.log import logger
from dagster_streamtables.replication.lifecycle.replication_manager import Replications
from dagster_streamtables.replication.lifecycle.replication_report import (
    ReplicationStatus,
    TableState,
)
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.runtime.observe.lease import Heartbeat
from dagster_streamtables.runtime.observe.monitor import Monitor
from dagster_streamtables.runtime.observe.source_health import SlotHealth, SourceHealth
from dagster_streamtables.runtime.observe.table_status import (
    Condition,
    Declarations,
    Status,
    TableDeclaration,
)
from dagster_streamtables.runtime.storage.history import PastRefresh

T = TypeVar("T")

TABLE = ("table",)
SOURCE = ("table", "source")
SLOT = ("slot", "source")
REPLICATION = ("replication",)
WORKER = ("worker",)


@dataclass(frozen=True)
class About:
    """The help text, labels and type of a metric."""

    help: str
    labels: tuple[str, ...] = TABLE
    counter: bool = False


PREFIX = "streamtables_"
FAMILIES: Mapping[str, About] = {
    "status": About(
        "1 for the current status of the stream table, 0 for the others.", ("table", "status")
    ),
    "suspended": About("Whether the table is suspended, by a person or after errors."),
    "errors_in_a_row": About("Consecutive failed attempts, without errors that a retry may solve."),
    "fallbacks_in_a_row": About(
        "Consecutive refreshes that recomputed because the change could not be computed."
    ),
    "staleness_seconds": About(
        "Time since the first source version that the table does not reflect; 0 if none."
    ),
    "stale": About("Whether the staleness exceeds what the schedule allows."),
    "data_timestamp_seconds": About(
        "Commit time of the newest version reflected of the tables at the bottom of the graph."
    ),
    "last_commit_timestamp_seconds": About("When a refresh last committed."),
    "rows": About("Rows of the table."),
    "bytes": About("Size of the table's files."),
    "files": About("Number of the table's files."),
    "intermediate_bytes": About("Size of the files of its intermediate tables."),
    "source_versions_behind": About(
        "Versions of a source that the table does not reflect.", SOURCE
    ),
    "source_bytes_behind": About(
        "Size of the files added to a source that the table does not reflect.", SOURCE
    ),
    "source_history_seconds_left": About(
        "Time until a source may lose what the next refresh needs; absent if it loses nothing.",
        SOURCE,
    ),
    "source_history_lost": About(
        "Whether the next refresh must reinitialize the table, because history is lost.", SOURCE
    ),
    "last_refresh_seconds": About(
        "Duration of the last refresh that committed.", ("table", "phase")
    ),
    "last_refresh_rows_in": About("Source rows inserted or deleted that the last refresh read."),
    "last_refresh_rows_inserted": About("Rows that the last refresh inserted into the table."),
    "last_refresh_rows_deleted": About("Rows that the last refresh deleted from the table."),
    "last_refresh_forecast_ratio": About(
        "Actual duration of the last refresh, as a multiple of the forecast of mode AUTO."
    ),
    "refreshes": About("Refreshes that committed.", ("table", "action"), counter=True),
    "failed_refreshes": About("Failed attempts to refresh, for any reason.", counter=True),
    "slot_lag_versions": About(
        "Versions of a source that the reader of the slot has not acknowledged.", SLOT
    ),
    "slot_lag_seconds": About(
        "Time since the first rows that the reader of the slot has not acknowledged; 0 if none.",
        SLOT,
    ),
    "slot_lag_bytes": About(
        "Size of the files added to a source that the reader of the slot has not acknowledged.",
        SLOT,
    ),
    "slot_lost": About(
        "Whether the reader of the slot must begin anew, because changes are lost.", ("slot",)
    ),
    "slots_unreadable": About("Whether the slots could not be read in this scrape.", ()),
    "replication_enabled": About("Whether the replication may be refreshed.", REPLICATION),
    "replication_errors_in_a_row": About("Consecutive failed refreshes.", REPLICATION),
    "replication_last_refresh_timestamp_seconds": About(
        "When a refresh of the replication last succeeded.", REPLICATION
    ),
    "replication_lag_seconds": About(
        "Time since the oldest commit at the publisher that is not applied; 0 if none.", REPLICATION
    ),
    "replication_lag_bytes": About(
        "Size of the history that the publisher keeps for the replication.", REPLICATION
    ),
    "replication_lag_commits": About(
        "Versions of a lake's tables that are not applied; absent for a server.", REPLICATION
    ),
    "replication_lag_unknown": About(
        "Whether the publisher could not tell in this scrape, or has let the slot go.", REPLICATION
    ),
    "replication_tables": About(
        "Tables of the replication, by their state.", ("replication", "state")
    ),
    "replication_table_current": About(
        "Whether no trouble keeps the table from being brought up to date.",
        ("replication", "table"),
    ),
    "replication_conflicts": About(
        "Changes that did not fit the rows of their target.", ("replication", "kind"), counter=True
    ),
    "replications_unreadable": About(
        "Whether the replications could not be read in this scrape.", ()
    ),
    "worker_alive": About("Whether the last heartbeat of the worker is recent.", WORKER),
    "worker_last_heartbeat_timestamp_seconds": About(
        "When the worker last said that it is alive.", WORKER
    ),
    "worker_nodes": About("Stream tables and replications that the worker refreshes.", WORKER),
    "worker_refreshes": About("Refreshes since the worker began.", WORKER, counter=True),
    "worker_failures": About("Failed refreshes since the worker began.", WORKER, counter=True),
    "worker_running": About("Refreshes that run.", WORKER),
    "worker_waiting": About("Refreshes that are due, and wait for others.", WORKER),
    "worker_reports_late": About("Whether Dagster cannot be told of refreshes.", WORKER),
    "worker_definitions_unreadable": About(
        "Whether changed definitions cannot be loaded, so that the last ones go on.", WORKER
    ),
    "workers_unreadable": About("Whether the workers could not be read in this scrape.", ()),
    "unreadable": About("Whether the table could not be read in this scrape."),
    "declarations_unreadable": About("Whether the declarations could not be read.", ()),
    "collect_seconds": About("Duration of this scrape.", ()),
}


Sample: TypeAlias = tuple[str, tuple[str, ...], float | None]
"""The name of a family, its label values, and a value; None if unknown."""
Declared = Callable[[], Declarations]


class StreamTablesCollector(Collector):
    """The metrics of the stream tables, slots and workers below one root.

    Examples:
        ```python
        tables = load_tables("tables")
        collector = StreamTablesCollector(lake.monitor, lambda: expected_tables(tables))
        prometheus_client.REGISTRY.register(collector)
        ```
    """

    def __init__(
        self,
        monitor: Monitor,
        declared: Declared = lambda: None,
        replications: Replications | None = None,
    ) -> None:
        """
        Args:
            monitor: `Lake.monitor`.
            declared: Called at each scrape, for all declarations; None if they are not known. If
                it raises, its last result is used.
            replications: The replications of the lake; each scrape queries their publishers.
        """
        self._monitor, self._declared, self._replications = monitor, declared, replications
        self._last: list[StreamTable | TableDeclaration] | None = None

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering reads no table."""
        return (_family(name) for name in FAMILIES)

    def collect(self) -> Iterable[Metric]:
        begin = time.perf_counter()
        families = {name: _family(name) for name in FAMILIES}
        for name, labels, value in self._samples():
            if value is not None:
                families[name].add_metric(labels, value)
        families["collect_seconds"].add_metric((), time.perf_counter() - begin)
        return families.values()

    def _samples(self) -> Iterator[Sample]:
        problem = "the declarations cannot be read"
        yield from _read("declarations_unreadable", (), problem, self._read_declarations)
        for status in self._monitor.status(self._last):
            yield from _of_table(status)
            yield from self._of_history(status)
        slots, workers = self._monitor.retention.slots, self._monitor.workers
        yield from _of_each("slots", "the slots cannot be read", slots, _of_slot)
        problem = "the heartbeats of workers cannot be read"
        yield from _of_each("workers", problem, lambda: workers().items(), _of_worker)
        if self._replications is not None:
            of_replication = partial(_of_replication, self._replications)
            problem, read = "the replications cannot be read", self._replications.list
            yield from _of_each("replications", problem, read, of_replication)

    def _read_declarations(self) -> None:
        found = self._declared()
        self._last = None if found is None else list(found)

    def _of_history(self, status: Status) -> Iterator[Sample]:
        name, problem = status.table, f"the history of {status.table} cannot be read"

        def read() -> list[Sample]:
            past = self._monitor.history(name, 1) if status.populated else []
            return [sample for each in past for sample in _of_refresh(each)]

        found = yield from _read("unreadable", (name,), problem, read, status.unreadable)
        yield from found or ()


def _read(
    family: str, labels: tuple[str, ...], problem: str, read: Callable[[], T], known: float = 0
) -> Generator[Sample, None, T | None]:
    """The result of a function; None if it raises, which must not hide the rest: then the sample of
    the family is 1 instead of `known`."""
    try:
        found = read()
    except Exception as error:
        logger.warning("%s: %s", problem, error)
        yield family, labels, 1
        return None
    yield family, labels, known
    return found


def _of_each(
    family: str, problem: str, read: Callable[[], Iterable[T]], of: Callable[[T], Iterator[Sample]]
) -> Iterator[Sample]:
    found = yield from _read(f"{family}_unreadable", (), problem, read)
    for each in found or ():
        yield from of(each)


def _of_table(status: Status) -> Iterator[Sample]:
    table = (status.table,)
    for each in Condition:
        yield "status", (*table, each), each is status.status
    # Only the next refresh changes these, and an orphaned table has none.
    if status.status is not Condition.ORPHANED:
        yield "suspended", table, status.suspended
        yield "errors_in_a_row", table, status.errors
        yield "fallbacks_in_a_row", table, status.fallbacks
        yield "staleness_seconds", table, status.staleness_seconds
        yield "stale", table, status.stale
        for each in status.sources:
            yield from _of_source(each)
    yield "data_timestamp_seconds", table, _stamp(status.data_timestamp)
    yield "last_commit_timestamp_seconds", table, _stamp(status.refreshed_at)
    yield "rows", table, status.rows
    yield "bytes", table, status.bytes
    yield "files", table, status.files
    if status.populated:
        yield "intermediate_bytes", table, sum(each.bytes for each in status.intermediates)
    yield "failed_refreshes", table, status.failed
    for action, number in status.refreshes.items():
        yield "refreshes", (*table, action), number


def _of_source(health: SourceHealth) -> Iterator[Sample]:
    labels = (health.table, health.source)
    yield "source_versions_behind", labels, health.versions_behind
    yield "source_bytes_behind", labels, health.bytes_behind
    yield "source_history_seconds_left", labels, health.seconds_left
    yield "source_history_lost", labels, bool(health.lost)


def _of_slot(health: SlotHealth) -> Iterator[Sample]:
    name = health.slot.name
    for each in health.sources:
        yield "slot_lag_versions", (name, each.source), each.versions_behind
        yield "slot_lag_seconds", (name, each.source), each.seconds_behind
        yield "slot_lag_bytes", (name, each.source), each.bytes_behind
    yield "slot_lost", (name,), bool(health.loss_reason)


def _of_refresh(past: PastRefresh) -> Iterator[Sample]:
    table = (past.table,)
    for phase, seconds in past.phases.items():
        yield "last_refresh_seconds", (*table, phase), seconds
    yield "last_refresh_rows_in", table, past.rows_in
    yield "last_refresh_rows_inserted", table, past.inserted
    yield "last_refresh_rows_deleted", table, past.deleted
    yield "last_refresh_forecast_ratio", table, past.forecast_error


def _family(name: str) -> CounterMetricFamily | GaugeMetricFamily:
    about = FAMILIES[name]
    kind = CounterMetricFamily if about.counter else GaugeMetricFamily
    return kind(PREFIX + name, about.help, labels=about.labels)


def _stamp(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def _of_replication(replications: Replications, status: ReplicationStatus) -> Iterator[Sample]:
    name = (status.name,)
    yield "replication_enabled", name, status.enabled
    yield "replication_errors_in_a_row", name, status.errors
    yield "replication_last_refresh_timestamp_seconds", name, _stamp(status.refreshed_at)
    states = Counter(each.state for each in status.tables)
    for state in TableState:
        yield "replication_tables", (*name, state), states[state]
    for each in status.tables:
        if each.state is not TableState.REMOVED:
            yield "replication_table_current", (*name, each.name), each.is_current
    for kind, number in status.conflicts.items():
        yield "replication_conflicts", (*name, kind), number
    yield from _of_lag(replications, status)


def _of_lag(replications: Replications, status: ReplicationStatus) -> Iterator[Sample]:
    """The lag of a replication; nothing if it has not begun, or is detached."""
    name = (status.name,)
    held = (TableState.READY, TableState.STOPPED)
    if status.slot is None or all(each.state not in held for each in status.tables):
        return
    problem = f"the lag of {status.name} is not known"
    lag = yield from _read(
        "replication_lag_unknown", name, problem, lambda: replications.lag(status.name)
    )
    if lag is not None:
        yield "replication_lag_seconds", name, lag.seconds
        yield "replication_lag_bytes", name, lag.bytes
        yield "replication_lag_commits", name, lag.commits


def _of_worker(worker: tuple[str, Heartbeat]) -> Iterator[Sample]:
    name, said = worker[:1], worker[1]
    now, about = datetime.now(UTC), said.about
    yield "worker_alive", name, said.seems_alive(now)
    yield "worker_last_heartbeat_timestamp_seconds", name, now.timestamp() - said.age(now)
    yield "worker_nodes", name, len(said.tables)
    yield "worker_running", name, len(about.get("running", ()))
    for key in ("refreshes", "failures", "waiting"):
        yield f"worker_{key}", name, about.get(key)
    yield "worker_reports_late", name, bool(about.get("not_reported"))
    yield "worker_definitions_unreadable", name, bool(about.get("not_loaded"))


def exposition(collector: StreamTablesCollector) -> str:
    """The current metrics in the text format of Prometheus."""
    return generate_latest(_registry(collector)).decode()


def serve(
    collector: StreamTablesCollector,
    health: Callable[[], Mapping[str, Any]] | None = None,
    *,
    port: int,
    address: str = "127.0.0.1",
) -> tuple[WSGIServer, Thread]:
    """Serve ``GET /metrics`` in a daemon thread until the server is shut down.

    Args:
        collector: Collects at each scrape.
        health: The JSON value of ``GET /health``, which has the status 503 unless ``healthy`` in
            the value is true; None to serve no such page.
        port: The port; 0 takes a free one.
        address: The address to listen on.

    Raises:
        EnvironmentProblem: The port is in use, or not permitted.
    """
    registry = _registry(collector)
    try:
        server, thread = start_http_server(port, address, registry=registry)
    except OSError as error:
        raise EnvironmentProblem(
            f"port {port} of {address} cannot be used", why=str(error), fix="give another one"
        ) from error
    if health is not None:
        server.set_app(_with_health(make_wsgi_app(registry), health))
    return server, thread


def _with_health(
    metrics: WSGIApplication, health: Callable[[], Mapping[str, Any]]
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    def answer(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environment["PATH_INFO"]
        if path == "/metrics":
            return metrics(environment, start)
        if path != "/health":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"GET /health or /metrics\n"]
        found = health()
        status = "200 OK" if found["healthy"] else "503 Service Unavailable"
        start(status, [("Content-Type", "application/json")])
        return [json.dumps(found, default=str).encode()]

    return answer


def _registry(collector: StreamTablesCollector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry
