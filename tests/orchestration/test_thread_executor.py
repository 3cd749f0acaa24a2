"""Tables of one run that are refreshed at the same time, on real Delta tables."""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.execution.job_execution_result import JobExecutionResult

from dagster_streamtables import (
    Lake,
    StreamTable,
    StreamTablesComponent,
    StreamTablesResource,
    build_definitions,
)
from dagster_streamtables.runtime.model.refresh_report import Refresh
from named_rows import rows_in_order
from orchestration.conftest import Write

A = StreamTable("a", "SELECT id FROM orders WHERE id > 1")
B = StreamTable("b", "SELECT count(*) AS n FROM orders")
BOTH = StreamTable("both", "SELECT a.id, b.n FROM a, b")
Build = Callable[[StreamTablesResource, list[StreamTable]], dg.Definitions]


def by_call(resource: StreamTablesResource, tables: list[StreamTable]) -> dg.Definitions:
    return build_definitions(resource=resource, tables=tables)


def by_component(resource: StreamTablesResource, tables: list[StreamTable]) -> dg.Definitions:
    component = StreamTablesComponent(resource=resource, tables=tables, name="streamtables")
    return dg.build_defs_for_component(component)


EITHER = pytest.mark.parametrize(
    "build", [by_call, pytest.param(by_component, marks=pytest.mark.long)]
)


class Watched(Lake):
    """Counts the refreshes that are under way. Where told to, each waits for others to be so, at
    its beginning and at its end: alone it would wait until the barrier breaks."""

    def __init__(self, *args: Any, together: int = 1, **more: Any) -> None:
        super().__init__(*args, **more)
        self.barrier = threading.Barrier(together, timeout=60)
        self.lock = threading.Lock()
        self.under_way: set[str] = set()
        self.most = 0
        self.seen: list[tuple[str, str]] = []

    def refresh(self, table: StreamTable, **more: Any) -> Refresh:
        with self.lock:
            self.under_way.add(table.name)
            self.most = max(self.most, len(self.under_way))
            self.seen.append(("begins", table.name))
        self.barrier.wait()
        try:
            return super().refresh(table, **more)
        finally:
            self.barrier.wait()
            with self.lock:
                self.under_way.remove(table.name)
                self.seen.append(("ends", table.name))


def over(lake: Lake, at_once: int) -> StreamTablesResource:
    class OnThat(StreamTablesResource):
        def lake(self) -> Lake:
            return lake

    return OnThat(root=lake.root, max_concurrent_refreshes=at_once)


def watched(
    resource: StreamTablesResource, together: int, at_once: int
) -> tuple[Watched, StreamTablesResource]:
    lake = Watched(resource.root, spark=resource.session(), together=together)
    return lake, over(lake, at_once)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "home").mkdir()
    without = {"telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(tmp_path / "home"), overrides=without) as instance:
        yield instance


@pytest.fixture(autouse=True)
def orders(write: Write) -> None:
    write("orders", id=[1, 2, 3])


def run(instance: dg.DagsterInstance, defs: dg.Definitions, **launched: Any) -> JobExecutionResult:
    """The run that the sensor asks for, with the executor that it has then."""
    job = defs.resolve_job_def("streamtables_refresh_run")
    made = instance.create_run_for_job(job, **launched)
    return execute_run(InMemoryJob(job), made, instance)


def rows(resource: StreamTablesResource, name: str, columns: str) -> list[tuple[object, ...]]:
    return rows_in_order(resource.lake().read(name), columns)


@EITHER
def test_tables_that_do_not_read_each_other_are_refreshed_at_once(
    build: Build, instance: dg.DagsterInstance, resource: StreamTablesResource
) -> None:
    _, ours = watched(resource, together=2, at_once=2)
    assert run(instance, build(ours, [A, B])).success
    assert (rows(ours, "a", "id"), rows(ours, "b", "n")) == ([(2,), (3,)], [(3,)])


@EITHER
def test_never_more_than_allowed(
    build: Build, instance: dg.DagsterInstance, resource: StreamTablesResource
) -> None:
    tables = [StreamTable(f"t{n}", f"SELECT id + {n} AS id FROM orders") for n in range(4)]
    lake, ours = watched(resource, together=2, at_once=2)
    assert run(instance, build(ours, tables)).success
    assert lake.most == 2


@pytest.mark.long
def test_one_at_once(instance: dg.DagsterInstance, resource: StreamTablesResource) -> None:
    lake, ours = watched(resource, together=1, at_once=1)
    assert run(instance, by_call(ours, [A, B])).success
    assert lake.most == 1


@pytest.mark.long
def test_a_run_may_be_launched_with_another_limit(
    instance: dg.DagsterInstance, resource: StreamTablesResource
) -> None:
    _, ours = watched(resource, together=2, at_once=1)
    config = {"execution": {"config": {"max_concurrent": 2}}}
    assert run(instance, by_call(ours, [A, B]), run_config=config).success


def test_a_table_is_refreshed_after_those_it_reads(
    instance: dg.DagsterInstance, resource: StreamTablesResource
) -> None:
    lake, ours = watched(resource, together=1, at_once=4)
    assert run(instance, by_call(ours, [BOTH, B, A])).success
    begun = lake.seen.index(("begins", "both"))
    assert {("ends", "a"), ("ends", "b")} <= set(lake.seen[:begun])
    assert rows(ours, "both", "id, n") == [(2, 3), (3, 3)]


def test_a_failure_holds_up_those_that_read_it_and_nobody_else(
    instance: dg.DagsterInstance, resource: StreamTablesResource
) -> None:
    fails = StreamTable("fails", "SELECT id FROM nowhere")
    below = StreamTable("below", "SELECT id FROM fails")
    result = run(instance, by_call(resource, [fails, below, A]))
    assert not result.success
    assert [e.step_key for e in result.all_events if e.is_step_failure] == ["fails"]
    [made] = result.get_asset_materialization_events()
    assert made.asset_key == dg.AssetKey("a")


def test_what_passes_is_retried_while_others_go_on(
    instance: dg.DagsterInstance, resource: StreamTablesResource
) -> None:
    """Two tables fail at their first attempt, each with its own retry."""
    failed: set[str] = set()

    class FailsOnce(Lake):
        def refresh(self, table: StreamTable, **more: Any) -> Refresh:
            if table.name in {"a", "b"} - failed:
                failed.add(table.name)
                raise ConnectionError("Spark went away")
            return super().refresh(table, **more)

    lake = FailsOnce(resource.root, spark=resource.session())
    result = run(instance, by_call(over(lake, at_once=4), [A, B, BOTH]))
    assert result.success
    assert sorted(e.step_key for e in result.all_events if e.is_step_up_for_retry) == ["a", "b"]


def test_a_run_that_is_terminated_ends_with_the_table_that_is_under_way(
    instance: dg.DagsterInstance, resource: StreamTablesResource
) -> None:
    class Terminated(Lake):
        def refresh(self, table: StreamTable, **more: Any) -> Refresh:
            [record] = instance.get_run_records()
            instance.report_run_canceling(record.dagster_run)
            os.kill(os.getpid(), signal.SIGINT)
            return super().refresh(table, **more)

    lake = Terminated(resource.root, spark=resource.session())
    assert not run(instance, by_call(over(lake, at_once=1), [A, B, BOTH])).success
    [record] = instance.get_run_records()
    assert record.dagster_run.status is dg.DagsterRunStatus.CANCELED
    keys = [dg.AssetKey(name) for name in ("a", "b", "both")]
    assert len(list(filter(instance.get_latest_materialization_event, keys))) == 1


def test_the_executor_is_the_users_where_they_name_one(resource: StreamTablesResource) -> None:
    def executor(**named: Any) -> str:
        defs = build_definitions(resource=resource, tables=[A], **named)
        return defs.resolve_job_def("streamtables_refresh_run").executor_def.name

    assert executor() == "threads"
    assert executor(executor=dg.in_process_executor) == "in_process"
    assert executor(executor=dg.multiprocess_executor) == "multiprocess"
    assert executor(executor=None) == "multi_or_in_process_executor"


def test_threads_share_one_lake(
    resource: StreamTablesResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a lake remembers of its logs is of use only where all share it."""
    entered, both = threading.Event(), threading.Barrier(2, timeout=60)
    made: list[Lake] = []

    class Slow(Lake):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            made.append(self)
            entered.wait(1)

    monkeypatch.setattr(
        "dagster_streamtables.orchestration.assets.streamtables_resource.Lake", Slow
    )

    def take() -> None:
        both.wait()
        resource.lake()

    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda _: take(), range(2)))
    assert len(made) == 1
