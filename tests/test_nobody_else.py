"""The local Spark server answers its owner and nobody else, and no other user sees what it keeps.

As root, what another user would try is tried as that user; else as a stranger without the token.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect.proto import base_pb2
from typer.testing import CliRunner

from dagster_streamtables.cli import app
from dagster_streamtables.runtime.spark.environment import home
from dagster_streamtables.runtime.spark.local_server import ensure_server, key_of, server_status
from dagster_streamtables.runtime.spark.session import open_session
from dagster_streamtables.runtime.spark.supervisor import ServerState
from own_process import python
from tests.test_server import state as server_state

pytestmark = [pytest.mark.spark, pytest.mark.process]

SERVICE = base_pb2.DESCRIPTOR.services_by_name["SparkConnectService"]
METHODS = [each.name for each in SERVICE.methods]

# Run by another user, who has nothing but what everybody sees: the folder's path and the port.
STRANGER = """
import os, sys
import grpc
folder, port = sys.argv[1:]
grpc.insecure_channel("127.0.0.1:" + port).close()  # imports what another user may not read
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    for place in (folder, folder + "/server.json", folder + "/server.log", folder + "/tmp"):
        try:
            os.listdir(place) if os.path.isdir(place) else open(place).close()
            print("read", place)
        except (PermissionError, FileNotFoundError):
            print("closed")
channel = grpc.insecure_channel("127.0.0.1:" + port)
try:
    channel.unary_unary("/spark.connect.SparkConnectService/Config")(b"", timeout=30)
    print("answered")
except grpc.RpcError as error:
    print(error.code().name)
"""


@pytest.fixture
def state(spark: SparkSession) -> ServerState:
    return server_state()


@pytest.fixture(params=["none", "wrong", "empty"])
def stranger(request: pytest.FixtureRequest, state: ServerState) -> Iterator[grpc.Channel]:
    """A channel of who has not the token."""
    token = {"none": None, "wrong": "x" * len(state.token), "empty": ""}[request.param]
    with channel(state.port, token) as opened:
        yield opened


def channel(port: int, token: str | None) -> grpc.Channel:
    if token is None:
        return grpc.insecure_channel(f"127.0.0.1:{port}")
    machine = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
    key = grpc.access_token_call_credentials(token)
    both = grpc.composite_channel_credentials(machine, key)
    return grpc.secure_channel(f"127.0.0.1:{port}", both)


def asked(opened: grpc.Channel, method: str) -> grpc.StatusCode:
    """How the server ends a call, whatever the kind of the method: the frames are the same."""
    ask: Callable[..., object] = opened.stream_stream(f"/{SERVICE.full_name}/{method}")
    request = base_pb2.ConfigRequest(session_id="00112233-4455-6677-8899-aabbccddeeff")
    try:
        list(ask(iter([request.SerializeToString()]), timeout=30))  # type: ignore[call-overload]
    except grpc.RpcError as error:
        return error.code()  # type: ignore[attr-defined]
    return grpc.StatusCode.OK


@pytest.mark.parametrize("method", METHODS)
def test_without_the_token_nothing_is_answered(stranger: grpc.Channel, method: str) -> None:
    assert asked(stranger, method) is grpc.StatusCode.UNAUTHENTICATED


def test_with_the_token_it_is(state: ServerState) -> None:
    with channel(state.port, state.token) as opened:
        assert asked(opened, "AnalyzePlan") is not grpc.StatusCode.UNAUTHENTICATED


def test_another_user_sees_no_file_and_gets_no_answer(state: ServerState) -> None:
    said = python("-c", STRANGER, home(), state.port)

    assert said.returncode == 0, said.stderr
    assert said.stdout.split() == [*["closed"] * (4 * (os.geteuid() == 0)), "UNAUTHENTICATED"]


def test_what_lies_in_the_home_is_the_owners_alone(state: ServerState) -> None:
    assert home().stat().st_mode & 0o777 == 0o700
    for name in ("server.json", "server.log"):
        assert (home() / name).stat().st_mode & 0o077 == 0


def test_the_token_is_told_to_nobody(state: ServerState, spark: SparkSession) -> None:
    said = [repr(state), repr(key_of(ensure_server())), repr(server_status()), ensure_server()]
    said += [(home() / "server.log").read_text(errors="replace"), repr(spark), *os.environ.values()]
    for process in psutil.process_iter():
        try:
            said += process.cmdline()
        except psutil.Error:
            continue

    assert len(state.token) > 40
    assert not [text for text in said if state.token in text]


def test_the_command_line_tells_it_when_it_is_asked(state: ServerState) -> None:
    def told(*words: str) -> str:
        done = CliRunner().invoke(app, ["spark", *words])
        assert done.exit_code == 0, done.output
        return done.output

    assert state.token not in told("status") + told("status", "--json") + told("start")
    assert told("url") == f"sc://localhost:{state.port}/;token={state.token}\n"


def test_a_client_of_somebody_else_opens_by_that_address(state: ServerState) -> None:
    program = (
        "from pyspark.sql import SparkSession\n"
        "print(SparkSession.builder.getOrCreate().sql('SELECT 7 AS x').collect()[0].x)"
    )
    key = key_of(ensure_server())
    assert key is not None

    said = python("-c", program, env={**os.environ, "SPARK_REMOTE": key.address})

    assert said.stdout == "7\n", said.stderr


def test_the_address_alone_opens_for_the_owner(state: ServerState) -> None:
    for host in ("127.0.0.1", "localhost"):
        session = open_session(f"sc://{host}:{state.port}")
        assert session.sql("SELECT 7 AS x").collect()[0].x == 7


def test_a_client_without_the_token_is_told_so(state: ServerState, tmp_path: Path) -> None:
    """As one on another machine, which finds no token there."""
    program = (
        "from dagster_streamtables.runtime.spark.session import open_session\n"
        f"open_session('sc://127.0.0.1:{state.port}')"
    )
    said = python("-c", program, env={**os.environ, "STREAMTABLES_HOME": str(tmp_path / "home")})

    assert "EnvironmentProblem: the Spark server at" in said.stderr
    assert "refuses this client" in said.stderr


def test_an_address_in_a_message_has_no_token() -> None:
    with pytest.raises(Exception, match="no Spark Connect server answers") as raised:
        open_session("sc://127.0.0.1:1/;token=not-to-be-seen")

    assert "not-to-be-seen" not in str(raised.value)


def test_its_other_ports_take_nothing_from_strangers(state: ServerState) -> None:
    """A request of Spark's own protocol, which is taken apart by Java's deserialization."""
    listening = [
        each.laddr.port
        for each in psutil.Process(state.pid).net_connections("tcp")
        if each.status == psutil.CONN_LISTEN and each.laddr.port != state.port
    ]
    body = b"whatever"
    request = struct.pack(">QBqI", 8 + 1 + 8 + 4 + len(body), 3, 7, len(body)) + body
    for port in listening:
        with socket.create_connection(("127.0.0.1", port), 30) as connection:
            connection.sendall(request)
            answer = connection.recv(4096)
        assert re.search(rb"Expected SaslMessage", answer), answer[:300]
    assert listening


def test_a_server_without_a_token_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: ServerState
) -> None:
    text = (home() / "server.json").read_text().replace(state.token, "")
    monkeypatch.setenv("STREAMTABLES_HOME", str(tmp_path))
    (tmp_path / "server.json").write_text(text)

    from dagster_streamtables.runtime.spark.local_server import _running

    assert _running(home()) is None
