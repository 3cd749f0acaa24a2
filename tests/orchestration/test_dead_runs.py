"""Runs whose process is gone are marked failed; others, and those that nobody can judge, are not.

`python -m qa.deployment` shows the same on Dagster's own processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import dagster as dg
import psutil
import pytest
from dagster._core.remote_origin import (
    CodeLocationOrigin,
    GrpcServerCodeLocationOrigin,
    ManagedGrpcPythonEnvCodeLocationOrigin,
)
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._core.test_utils import create_run_for_test
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from dagster_streamtables.orchestration.instance.dagster_runs import PROCESS_TAG, end_dead_runs
from dagster_streamtables.runtime.observe.lease import describe_processes, machine

ELSEWHERE = f"pod-1/{machine()} 7@1.5"
SERVER = GrpcServerCodeLocationOrigin(host="sales", port=4001, location_name="sales")
ADDRESS = json.dumps({"host": "sales", "port": 4001})
LATER, SOON = 600.0, 10.0
"""How long this code server has run, in seconds."""


@pytest.fixture
def ended() -> str:
    """A process of this machine that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = describe_processes(process.pid)
    process.communicate(b"\n")
    return name


def status(
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    tags: dict[str, str],
    server: CodeLocationOrigin | None = SERVER,
    age: float = LATER,
) -> dg.DagsterRunStatus:
    """Of a run that had started with these tags, once the dead ones are ended."""
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags=tags)
    born = psutil.Process().create_time()
    monkeypatch.setattr("time.time", lambda: born + age)
    end_dead_runs(instance, server)
    monkeypatch.undo()
    after = instance.get_run_by_id(run.run_id)
    assert after is not None
    return after.status


def test_its_process_has_ended_on_this_machine(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    found = status(instance, monkeypatch, {PROCESS_TAG: ended}, None)

    assert found is dg.DagsterRunStatus.FAILURE


def test_its_code_server_was_replaced_by_this_one(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = status(instance, monkeypatch, {PROCESS_TAG: ELSEWHERE, GRPC_INFO_TAG: ADDRESS})

    assert found is dg.DagsterRunStatus.FAILURE


@pytest.mark.parametrize(
    ("tags", "server", "age"),
    [
        pytest.param({}, SERVER, LATER, id="nothing is noted on it"),
        pytest.param({PROCESS_TAG: ELSEWHERE}, SERVER, LATER, id="a launcher gave it a machine"),
        pytest.param(
            {PROCESS_TAG: ELSEWHERE, GRPC_INFO_TAG: '{"host": "sales", "port": 4002}'},
            SERVER, LATER, id="the code server of another location",
        ),
        pytest.param(
            {PROCESS_TAG: ELSEWHERE, GRPC_INFO_TAG: '{"host": "sales", "socket": "/run/s"}'},
            SERVER, LATER, id="a socket",
        ),
        pytest.param(
            {PROCESS_TAG: ELSEWHERE, GRPC_INFO_TAG: ADDRESS}, SERVER, SOON,
            id="the machine that is replaced may still end it",
        ),
        pytest.param(
            {PROCESS_TAG: ELSEWHERE, GRPC_INFO_TAG: ADDRESS},
            ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(python_file="a.py"), "a"),
            LATER, id="Dagster starts such servers on several machines",
        ),
        pytest.param(
            {PROCESS_TAG: ELSEWHERE, GRPC_INFO_TAG: ADDRESS}, None, LATER, id="not in a sensor"
        ),
        pytest.param(
            {PROCESS_TAG: describe_processes(os.getpid()), GRPC_INFO_TAG: ADDRESS},
            SERVER, LATER, id="it lives here",
        ),
        pytest.param(
            {PROCESS_TAG: "word", GRPC_INFO_TAG: ADDRESS}, SERVER, LATER, id="an edited name"
        ),
        *(
            pytest.param({PROCESS_TAG: ELSEWHERE, GRPC_INFO_TAG: text}, SERVER, LATER, id=text)
            for text in ("", "{", "[]", "null", '{"port": 4001}')
        ),
    ],
)  # fmt: skip
def test_a_run_that_may_live(
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    tags: dict[str, str],
    server: CodeLocationOrigin | None,
    age: float,
) -> None:
    assert status(instance, monkeypatch, tags, server, age) is dg.DagsterRunStatus.STARTED
