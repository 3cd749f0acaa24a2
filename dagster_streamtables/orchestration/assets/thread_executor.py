"""An executor that runs the steps of a run in threads of one process.

Dagster's own executors run steps one after another, or each in its own process, which takes seconds
to start and opens its own connection to Spark. A refresh mostly waits for Spark, so threads are
enough. Each table still has its own step, with its retries, its pool and its bar in the run chart.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of executors at run time.
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from queue import Empty, Queue
from typing import Any, TypeAlias

import dagster as dg
from dagster import DagsterEvent

# Dagster exports `Executor`, but nothing that runs a step: these are what its own executors use.
from dagster._core.events import EngineEventData
from dagster._core.execution.api import ExecuteRunWithPlanIterable
from dagster._core.execution.compute_logs import create_compute_log_file_key
from dagster._core.execution.context.system import (
    PlanExecutionContext,
    PlanOrchestrationContext,
)
from dagster._core.execution.context_creation_job import PlanExecutionContextManager
from dagster._core.execution.plan.active import ActiveExecution
from dagster._core.execution.plan.execute_plan import (
    _handle_compute_log_setup_error,
    _handle_compute_log_teardown_error,
    _trigger_hook,
    dagster_event_sequence_for_step,
)
from dagster._core.execution.plan.instance_concurrency_context import InstanceConcurrencyContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode, get_retries_config

from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource

_DEFAULT = 4
"""Concurrent steps in a run without a `StreamTablesResource`."""
_LOOK_AFTER = 0.2
"""Seconds without an event of a step before checking for a termination, due retries and free pool
slots."""

_News: TypeAlias = tuple[dg.StepExecutionContext, DagsterEvent | BaseException | None]
"""An event of a step, the error that it raised, or None at its end."""


@dg.executor(
    name="threads",
    config_schema={
        "retries": get_retries_config(),
        "max_concurrent": dg.Field(
            dg.Noneable(int),
            default_value=None,
            description="The maximum number of concurrent steps. Default: "
            "max_concurrent_refreshes of the run's StreamTablesResource.",
        ),
    },
)
def threads_executor(context: dg.InitExecutorContext) -> dg.Executor:
    """Runs the steps of a run in threads of one process, each after those it depends on.

    It is the default for runs of the refresh sensor. Pass it to `dg.Definitions` to use it for
    manually launched runs, too:

    ```python
    defs = dg.Definitions.merge(
        build_definitions(folder="tables", resource=resource),
        dg.Definitions(executor=threads_executor),
    )
    ```

    A terminated run starts no further steps, and ends when the running steps have ended.
    """
    config: Mapping[str, Any] = context.executor_config
    retries = RetryMode.from_config(config["retries"]) or RetryMode.ENABLED
    return _ThreadExecutor(retries, config["max_concurrent"])


class _ThreadExecutor(dg.Executor):
    def __init__(self, retries: RetryMode, max_concurrent: int | None) -> None:
        self._retries, self._max_concurrent = retries, max_concurrent

    @property
    def retries(self) -> RetryMode:
        return self._retries

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
        yield DagsterEvent.engine_event(
            plan_context,
            f"Executing steps in threads (pid: {os.getpid()})",
            EngineEventData.in_process(os.getpid(), execution_plan.step_keys_to_execute),
        )
        manager = PlanExecutionContextManager(
            job=plan_context.job,
            retry_mode=plan_context.retry_mode,
            execution_plan=execution_plan,
            run_config=plan_context.run_config,
            dagster_run=plan_context.dagster_run,
            instance=plan_context.instance,
            raise_on_error=plan_context.raise_on_error,
            output_capture=plan_context.output_capture,
        )
        yield from ExecuteRunWithPlanIterable(execution_plan, self._steps, manager)

    def _steps(
        self, execution_plan: ExecutionPlan, job_context: PlanExecutionContext
    ) -> Iterator[DagsterEvent]:
        limit = self._max_concurrent or _limit(job_context)
        with ExitStack() as stack:
            pools = InstanceConcurrencyContext(job_context.instance, job_context.dagster_run)
            active = execution_plan.start(
                job_context.retry_mode,
                max_concurrent=limit,
                instance_concurrency_context=stack.enter_context(pools),
            )
            stack.enter_context(active)
            capture = stack.enter_context(ExitStack())
            yield from _capture(capture, job_context, execution_plan)
            with ThreadPoolExecutor(limit, thread_name_prefix="step") as threads:
                yield from _Steps(job_context, active, threads).run()
            try:
                capture.close()
            except Exception:
                yield from _handle_compute_log_teardown_error(job_context, sys.exc_info())


class _Steps:
    """The steps of a run. One thread does all bookkeeping; the others only run steps."""

    def __init__(
        self,
        job_context: PlanExecutionContext,
        active: ActiveExecution,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._job_context, self._active, self._threads = job_context, active, threads
        self._news: Queue[_News] = Queue()
        self._running: dict[str, list[DagsterEvent]] = {}
        """The events so far of each running step."""
        self._stopping = False

    def run(self) -> Iterator[DagsterEvent]:
        while self._running or not (self._stopping or self._active.is_complete):
            if self._active.check_for_interrupts():
                self._stopping = True
                self._active.mark_interrupted()
            if not self._stopping:
                yield from self._begin()
            try:
                step_context, news = self._news.get(timeout=_LOOK_AFTER)
            except Empty:
                continue
            yield from self._take(step_context, news)
        if self._stopping:
            raise dg.DagsterExecutionInterruptedError

    def _begin(self) -> Iterator[DagsterEvent]:
        steps = self._active.get_steps_to_execute()
        yield from self._active.concurrency_event_iterator(self._job_context)
        for step in steps:
            # Copy the set of outputs: this thread keeps adding to it.
            known = self._active.get_known_state()
            known = known._replace(ready_outputs=set(known.ready_outputs))
            step_context = self._job_context.for_step(step, known)
            self._running[step.key] = []
            self._threads.submit(copy_context().run, self._work, step_context)

    def _work(self, step_context: dg.StepExecutionContext) -> None:
        try:
            for event in dagster_event_sequence_for_step(step_context):
                self._news.put((step_context, event))
        except BaseException as error:
            self._news.put((step_context, error))
        else:
            self._news.put((step_context, None))

    def _take(
        self, step_context: dg.StepExecutionContext, news: DagsterEvent | BaseException | None
    ) -> Iterator[DagsterEvent]:
        key = step_context.step.key
        if isinstance(news, DagsterEvent):
            self._running[key].append(news)
            yield news
            self._active.handle_event(news)
            return
        events = self._running.pop(key)
        if news is not None:
            raise news
        self._active.verify_complete(self._job_context, key)
        skipped = list(self._active.plan_events_iterator(self._job_context))
        yield from skipped
        yield from _trigger_hook(step_context, [*events, *skipped])


def _limit(job_context: PlanExecutionContext) -> int:
    """The lowest limit among the resources of the run."""
    resources = job_context.scoped_resources_builder.resource_instance_dict.values()
    ours = (each for each in resources if isinstance(each, StreamTablesResource))
    return min((each.max_concurrent_refreshes for each in ours), default=_DEFAULT)


def _capture(
    stack: ExitStack, job_context: PlanExecutionContext, execution_plan: ExecutionPlan
) -> Iterator[DagsterEvent]:
    """Capture the output of all steps in one file, because threads share it, until the stack is
    closed."""
    manager = job_context.instance.compute_log_manager
    log_key = manager.build_log_key_for_run(job_context.run_id, create_compute_log_file_key())
    steps = [step.key for step in execution_plan.get_steps_to_execute_in_topo_order()]
    try:
        log_context = stack.enter_context(manager.capture_logs(log_key))
    except Exception:  # losing captured output must not fail a refresh
        yield from _handle_compute_log_setup_error(job_context, sys.exc_info())
    else:
        yield DagsterEvent.capture_logs(job_context, steps, log_key, log_context)
