"""Runs whose process is gone are marked failed; others, and those that nobody can judge, are not.

`python -m qa.deployment` shows the same on Dagster's own processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

import dagster as dg
import pytest
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.remote_origin import (
    CodeLocationOrigin,
    GrpcServerCodeLocationOrigin,
    ManagedGrpcPythonEnvCodeLocationOrigin,
)
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._core.test_utils import create_run_for_test
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from dagster_streamtables.orchestration.instance.dagster_runs import PROCESS_TAG, end_dead_runs
from dagster_streamtables.runtime.observe import lease
from dagster_streamtables.runtime.observe.lease import describe_processes, machine

ELSEWHERE = f"pod-1/{machine()} 7@1.5"
SERVER = GrpcServerCodeLocationOrigin(host="sales", port=4001, location_name="sales")
SIDECAR = GrpcServerCodeLocationOrigin(host="127.0.0.1", port=4001, location_name="sales")
OF_DAGSTER = ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(python_file="a.py"), "a")
ADDRESS = json.dumps({"host": "sales", "port": 4001})
NOW = 1000.0
"""Seconds since the run was launched."""


@pytest.fixture
def ended() -> str:
    """A process of this machine that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = describe_processes(process.pid)
    process.communicate(b"\n")
    return name


@dataclass(frozen=True)
class Started:
    """A run that has started, and the process that looks at it."""

    instance: dg.DagsterInstance
    monkeypatch: pytest.MonkeyPatch

    def is_ended(
        self,
        process: str,
        address: str | None = ADDRESS,
        *,
        server: CodeLocationOrigin | None = SERVER,
        age: float = 600.0,
        executes: bool = True,
        repeats: str | None = None,
    ) -> bool:
        """Whether the run is ended.

        Args:
            process: What its tag names.
            address: What Dagster's launcher noted on it.
            server: The code server that looks at it.
            age: For how many seconds that has run.
            executes: Whether the process executes the run, or asked for it.
            repeats: The run that it repeats.
        """
        run = create_run_for_test(
            self.instance, status=dg.DagsterRunStatus.STARTED,
            parent_run_id=repeats, root_run_id=repeats,
        )  # fmt: skip
        start = DagsterEvent(DagsterEventType.RUN_START.value, run.job_name)
        self.instance.report_dagster_event(start, run.run_id)
        tags = {PROCESS_TAG: f"{process} executes {run.run_id}" if executes else process}
        self.instance.add_run_tags(
            run.run_id, tags | ({GRPC_INFO_TAG: address} if address is not None else {})
        )
        now = time.time() + NOW
        self.monkeypatch.setattr("time.time", lambda: now)
        self.monkeypatch.setattr(lease, "age", lambda: age)
        end_dead_runs(self.instance, server)
        self.monkeypatch.undo()
        after = self.instance.get_run_by_id(run.run_id)
        assert after is not None
        return after.status is dg.DagsterRunStatus.FAILURE


@pytest.fixture
def started(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(instance, monkeypatch)


def test_its_process_has_ended_on_this_machine(started: Started, ended: str) -> None:
    assert started.is_ended(ended, None, server=None)


def test_its_code_server_was_replaced_by_this_one(started: Started) -> None:
    assert started.is_ended(ELSEWHERE)


def test_who_asked_for_it_was_replaced_before_a_process_began(started: Started) -> None:
    assert started.is_ended(ELSEWHERE, executes=False)


def test_one_that_waited_in_a_queue_while_who_asked_for_it_ended(
    started: Started, ended: str
) -> None:
    """It was launched after that, by this code server."""
    assert not started.is_ended(ELSEWHERE, executes=False, age=NOW + 60)
    assert not started.is_ended(ended, executes=False, age=NOW + 60)
    assert started.is_ended(ended, executes=False)


def test_a_repeated_run_has_the_tags_of_the_first(started: Started, ended: str) -> None:
    first = create_run_for_test(started.instance)
    of_first = f"{ended} executes {first.run_id}"

    assert not started.is_ended(of_first, executes=False, repeats=first.run_id)
    assert not started.is_ended(ended, executes=False, repeats=first.run_id)
    assert started.is_ended(ended, repeats=first.run_id)


def test_who_has_just_begun_lets_the_machine_before_end_its_runs(started: Started) -> None:
    assert not started.is_ended(ELSEWHERE, age=200.0)


def test_it_began_after_this_code_server(started: Started) -> None:
    """Its steps may have machines of their own."""
    assert not started.is_ended(ELSEWHERE, age=NOW + 60)


def test_it_lives_here(started: Started) -> None:
    assert not started.is_ended(describe_processes(os.getpid()))


@pytest.mark.parametrize("server", [SIDECAR, OF_DAGSTER, None], ids=str)
def test_an_address_that_names_no_single_server(
    started: Started, server: CodeLocationOrigin | None
) -> None:
    """Webserver and daemon may each have one."""
    noted = json.dumps({"host": "127.0.0.1", "port": 4001})

    assert not started.is_ended(ELSEWHERE, server=server)
    assert not started.is_ended(ELSEWHERE, noted, server=server)


@pytest.mark.parametrize(
    "noted",
    [
        None, "", "{", "[]", "null", '{"port": 4001}',
        '{"host": "sales", "port": 4002}', '{"host": "sales", "socket": "/run/s"}',
    ],
)  # fmt: skip
def test_another_launcher_or_code_server_has_it(started: Started, noted: str | None) -> None:
    assert not started.is_ended(ELSEWHERE, noted)


@pytest.mark.parametrize("tag", ["", "word", f"{machine()}", "executes", " executes "])
def test_a_tag_that_somebody_has_edited(started: Started, tag: str) -> None:
    assert not started.is_ended(tag)
    assert not started.is_ended(tag, executes=False)
